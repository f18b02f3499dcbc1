//! Another folder, and what only looks like one.

use std::fs;
use std::path::Path;
use std::process::Command;

use rejoin_testkit::{Chronicle, Continued, World, on_every_cli};

on_every_cli!(
    a_session_belongs_to_its_folder,
    the_same_place_in_a_second_clone_is_the_same_folder,
);

///
fn a_session_belongs_to_its_folder(world: World) {
    let mut story = Chronicle::begun(world);
    let root = story.world.root().to_str().unwrap().to_owned();
    let [other, third, renamed, link] =
        ["other", "third", "renamed", "link"].map(|name| format!("{root}/{name}"));
    fs::create_dir(&other).unwrap();
    story.reseeds("other_folder", &["-w", &other]);

    fs::create_dir(&third).unwrap();
    let moved = story.resumes(&["-w", &third, "--relocate"]);
    assert_eq!(moved["session_id"], story.sessions[1]);
    story.resumes(&["-w", &third]);
    // There and back: the older copy left behind is not in the way.
    story.resumes(&["-w", &other, "--relocate"]);
    story.resumes(&["-w", &third, "--relocate"]);

    fs::rename(&third, &renamed).unwrap();
    story.resumes(&["-w", &renamed]);

    std::os::unix::fs::symlink(&renamed, &link).unwrap();
    story.resumes(&["-w", &link]);
}

///
fn the_same_place_in_a_second_clone_is_the_same_folder(world: World) {
    let root = world.root().to_path_buf();
    let place = |path: &str| root.join(path).to_str().unwrap().to_owned();
    let (one, two) = (place("one/sub"), place("two/sub"));
    fs::create_dir_all(&one).unwrap();
    fs::write(root.join("one/sub/file"), "content").unwrap();
    git(&root.join("one"), &["init", "-q"]);
    git(&root.join("one"), &["add", "."]);
    git(&root.join("one"), &["commit", "-q", "-m", "first"]);
    git(&root, &["clone", "-q", "one", "two"]);

    let mut story = Chronicle::new(world);
    story.turn(Continued::Started, &["-w", &one]);
    story.resumes(&["-w", &two]);
    story.resumes(&["-w", &two]);
    // Here the CLI finds the session of the other work tree too, and must not go on with that one.
    git(&root.join("two"), &["worktree", "add", "-q", "../three"]);
    let three = place("three/sub");
    story.resumes(&["-w", &three]);
    story.resumes(&["-w", &three]);
    let elsewhere = place("two");
    story.turn(Continued::Reseeded("other_folder"), &["-w", &elsewhere]);
}

fn git(folder: &Path, args: &[&str]) {
    let who = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
    let done = Command::new("git")
        .args(who)
        .args(args)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
}
