//! `$VISUAL` and `$EDITOR`, for commands without a text on a terminal.

use rejoin_testkit::World;

use super::terminal::{Terminal, world};

/// A world whose editor is a shell script, which has the file as `$1`.
fn with_editor(script: &str) -> World {
    let mut world = world();
    let file = world.root().join("editor.sh");
    std::fs::write(&file, script).unwrap();
    world.set("EDITOR", &format!("sh {}", file.display()));
    world
}

fn texts(world: &World) -> Vec<String> {
    let shown = world.show();
    let messages = shown["messages"].as_array().unwrap().iter();
    let mine = messages.filter(|m| m["role"] == "user");
    mine.map(|m| m["text"].as_str().unwrap().to_owned())
        .collect()
}

fn kept(world: &World) -> Vec<String> {
    let Ok(files) = std::fs::read_dir(world.data().join("drafts")) else {
        return vec![];
    };
    files
        .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap())
        .collect()
}

/// Joins the lines that a narrow screen broke.
fn flat(screen: &str) -> String {
    screen.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_message_is_written_in_the_editor() {
    let world = with_editor("printf 'first UWORD1\\n\\n  second line\\n' >\"$1\"");
    let terminal = Terminal::open(&world).unwrap();
    let screen = flat(&terminal.run("rejoin send -k k -a demo"));
    assert!(
        screen.contains("You said “first UWORD1 second line”"),
        "{screen}"
    );
    assert_eq!(texts(&world), ["first UWORD1\n\n  second line"]);
    assert!(kept(&world).is_empty());
    // VISUAL comes first.
    terminal.run("echo 'echo reply UWORD2 >$1' >v.sh; VISUAL='sh v.sh' rejoin reply");
    assert_eq!(texts(&world)[1..], ["reply UWORD2"]);
    // A message that is not accepted stays in its file.
    let screen = flat(&terminal.run("VISUAL='sh v.sh' rejoin reply -a claude"));
    assert!(screen.contains("the text is kept in"), "{screen}");
    assert_eq!(kept(&world), ["reply UWORD2\n"]);
}

#[test]
fn nothing_written_is_nothing_sent_and_a_failing_editor_loses_nothing() {
    let world = with_editor("true");
    let terminal = Terminal::open(&world).unwrap();
    let screen = terminal.run("rejoin send -k k -a demo; echo code $?");
    assert!(
        screen.contains("nothing was sent") && screen.contains("code 2"),
        "{screen}"
    );
    assert!(kept(&world).is_empty());
    drop(terminal);

    let world = with_editor("echo half UWORD1 >\"$1\"; exit 3");
    let terminal = Terminal::open(&world).unwrap();
    let screen = flat(&terminal.run("rejoin send -k k -a demo; echo code $?"));
    assert!(
        screen.contains("failed; the text is kept in") && screen.contains("code 2"),
        "{screen}"
    );
    assert_eq!(kept(&world), ["half UWORD1\n"]);
    assert_eq!(
        world.run(&["list", "--json"]).ok().json()["conversations"],
        serde_json::json!([])
    );
}

#[test]
fn a_message_is_changed_in_the_editor() {
    let world = with_editor("sed -i s/UWORD1/UWORD2/ \"$1\"");
    world
        .run(&["send", "-k", "k", "-a", "demo", "one UWORD1"])
        .ok();
    let terminal = Terminal::open(&world).unwrap();
    let screen = terminal.run("rejoin edit k:1 --dry-run");
    assert!(screen.contains("would be done"), "{screen}");
    assert_eq!(texts(&world), ["one UWORD1"]);
    let screen = terminal.run("rejoin edit k:1");
    assert!(screen.contains("edited"), "{screen}");
    assert_eq!(texts(&world), ["one UWORD2"]);
    let screen = terminal.run("rejoin edit k:1; echo code $?");
    assert!(
        screen.contains("unchanged") && screen.contains("code 0"),
        "{screen}"
    );
    let screen = terminal.run("echo ': >$1' >e.sh; EDITOR='sh e.sh' rejoin edit k:1");
    assert!(screen.contains("unchanged"), "{screen}");
    assert_eq!(texts(&world), ["one UWORD2"]);
    // Without an editor: the text is an argument, and the error says so.
    let screen = flat(&terminal.run("EDITOR= rejoin edit k:1"));
    assert!(screen.contains("no editor is set in EDITOR"), "{screen}");
    assert!(screen.contains("other words"), "{screen}");
}
