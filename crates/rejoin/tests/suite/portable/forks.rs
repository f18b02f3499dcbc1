//! Forks travel without their parent, and arrive where the parent is.

use rejoin_testkit::{World, user};
use serde_json::Value;

use super::{REJOIN, code, demo, export, import, path};

/// A fork `f` of `k` whose last message, taken over from the parent, was retried.
fn fork_with_retry(world: &World) -> std::path::PathBuf {
    world.run(&["fork", "k", "--key", "f", "--json"]).ok();
    world.run(&["retry", "f:3", "--json"]).ok();
    export_fork(world)
}

fn export_fork(world: &World) -> std::path::PathBuf {
    let file = world.root().join("f.rejoin");
    world.run(&["export", "f", "-o", path(&file)]).ok();
    file
}

fn show(world: &World, key: &str) -> Value {
    world.run(&["show", key, "--all", "--json"]).ok().json()
}

fn texts(shown: &Value) -> Vec<String> {
    let messages = shown["messages"].as_array().unwrap();
    let text = |m: &Value| m["text"].as_str().unwrap().to_owned();
    messages.iter().map(text).collect()
}

#[test]
fn fork_with_a_retried_message_arrives_beside_its_parent() {
    let world = demo(2);
    let fork = fork_with_retry(&world);
    let other = World::new(REJOIN);
    import(&other, &export(&world), &[]).ok();
    let parent = show(&other, "k");
    let imported = import(&other, &fork, &[]).ok().json();
    assert_eq!(imported["outcome"], "imported");
    assert_eq!(show(&other, "k"), parent, "the parent is untouched");
    assert_eq!(texts(&show(&other, "f")), texts(&show(&world, "f")));
    // The retry is taken back in the fork alone.
    let undone = other.run(&["undo", "f", "--json"]).ok().json();
    assert_eq!(undone["change"], "retry", "{undone}");
    assert_eq!(show(&other, "k"), parent, "the parent is untouched");
    let sent = ["send", "-k", "f", "--json", &user(3)];
    let text = other.run(&sent).ok().json()["text"].to_string();
    for n in 1..=3 {
        assert_eq!(text.matches(&user(n)).count(), 1, "{n}: {text}");
    }
    other.run(&["retry", "f:3", "--json"]).ok();
    assert_eq!(show(&other, "k"), parent, "the parent is untouched");
}

#[test]
fn fork_with_a_retried_message_comes_back_to_its_parent() {
    let world = demo(2);
    let fork = fork_with_retry(&world);
    let parent = show(&world, "k");
    let other = World::new(REJOIN);
    import(&other, &fork, &[]).ok();
    other.run(&["send", "-k", "f", "--json", &user(3)]).ok();
    other.run(&["retry", "f:1", "--json"]).ok();
    other.run(&["undo", "f"]).ok();
    let back = export_fork(&other);
    let taken = import(&world, &back, &[]).ok().json();
    assert_eq!(taken["outcome"], "taken_over", "{taken}");
    assert_eq!(show(&world, "k"), parent, "the parent is untouched");
    let text = world.run(&["send", "-k", "f", "--json", &user(4)]).ok();
    let text = text.json()["text"].to_string();
    for n in 1..=4 {
        assert_eq!(text.matches(&user(n)).count(), 1, "{n}: {text}");
    }
    // A second copy beside both.
    let copy = import(&world, &back, &["--as-copy"]);
    assert_eq!(copy.ok().json()["outcome"], "copied");
    assert_eq!(show(&world, "k"), parent, "the parent is untouched");
    // A deleted fork, from its file.
    world.run(&["delete", "f", "--yes"]).ok();
    let again = import(&world, &back, &[]);
    assert_eq!(code(&again).0, 0, "{again:?}");
    assert_eq!(show(&world, "k"), parent, "the parent is untouched");
}
