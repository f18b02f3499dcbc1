//! The folder beside a bundle: it counts only if the user's own rejoin made it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use rejoin_testkit::{World, user};

use super::bundle::{beside, send};
use super::narrowed::rows;
use super::{REJOIN, code, path};

fn folder_of(file: &Path) -> PathBuf {
    PathBuf::from(format!("{}.rejoin", file.display()))
}

/// Kills a turn that had just been accepted: its message waits in the folder.
fn killed(world: &mut World, file: &Path, n: usize, more: &[&str]) {
    world.set("REJOIN_FAIL", "after_accept");
    assert_eq!(send(world, file, n, more).code, -9);
    world.unset("REJOIN_FAIL");
    assert!(folder_of(file).join("rejoin.db").exists());
}

fn copy(from: &Path, to: &Path) {
    let done = Command::new("cp").arg("-a").args([from, to]).status();
    assert!(done.unwrap().success());
}

fn bytes(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    let read = |path: PathBuf| (path.clone(), std::fs::read(&path).unwrap_or_default());
    entries.map(|entry| read(entry.path())).collect()
}

#[track_caller]
fn assert_refused(world: &World, file: &Path) {
    let (folder, was) = (folder_of(file), std::fs::read(file).ok());
    let before = bytes(&folder);
    let refused = send(world, file, 9, &["-a", "demo", "--permission", "read-only"]);
    assert_eq!(code(&refused), (4, "conflict".into()), "{refused:?}");
    let error = &refused.json()["error"];
    assert!(error["message"].as_str().unwrap().contains("not known as"));
    let next = format!("mv {0} {0}.aside", folder.display());
    assert_eq!(error["try"], next);
    assert_eq!(bytes(&folder), before, "the folder was changed");
    assert_eq!(std::fs::read(file).ok(), was, "the bundle was changed");
    assert_eq!(world.leftovers(), []);
}

/// A copied folder, a cloned one and one of another user's machine hold turns of somebody else.
#[test]
fn a_folder_from_elsewhere_runs_nothing() {
    let mut author = World::new(REJOIN);
    let repository = author.root().join("repository");
    std::fs::create_dir(&repository).unwrap();
    let file = repository.join("talk");
    let _first = send(&author, &file, 1, &["-a", "demo"]).ok();
    killed(&mut author, &file, 2, &["--permission", "full"]);
    // Beside another bundle of the same user.
    let other = repository.join("other");
    copy(&file, &other);
    copy(&folder_of(&file), &folder_of(&other));
    assert_refused(&author, &other);
    // In a clone.
    let git = |args: &[&str]| {
        let who = ["-c", "user.name=a", "-c", "user.email=a@example.invalid"];
        let mut git = Command::new("git");
        git.args(who).args(args).current_dir(&repository);
        assert!(git.status().unwrap().success(), "{args:?}");
    };
    git(&["init", "-q"]);
    git(&["add", "-f", "."]);
    git(&["commit", "-qm", "all"]);
    let victim = World::new(REJOIN);
    let clone = victim.root().join("clone");
    git(&["clone", "-q", ".", path(&clone)]);
    let cloned = clone.join("talk");
    assert!(folder_of(&cloned).join("rejoin.db").exists());
    assert_refused(&victim, &cloned);
    // Private, and whole.
    let moved = victim.root().join("talk");
    copy(&file, &moved);
    copy(&folder_of(&file), &folder_of(&moved));
    assert_refused(&victim, &moved);
    // Out of the way, it is no obstacle.
    let aside = PathBuf::from(format!("{}.aside", folder_of(&moved).display()));
    std::fs::rename(folder_of(&moved), &aside).unwrap();
    let text = send(&victim, &moved, 3, &[]).ok().json()["text"].to_string();
    assert!(!text.contains(&user(2)), "{text}");
    // Its owner goes on with it, also under another name.
    let renamed = repository.join("renamed");
    std::fs::rename(&file, &renamed).unwrap();
    std::fs::rename(folder_of(&file), folder_of(&renamed)).unwrap();
    let text = send(&author, &renamed, 4, &[]).ok().json()["text"].to_string();
    assert!(text.contains(&user(2)), "{text}");
    assert_eq!(beside(&renamed), Vec::<PathBuf>::new());
    let records = std::fs::read_dir(author.data().join("bundles")).unwrap();
    assert_eq!(records.count(), 0, "a record of a folder that is gone");
}

/// Files of somebody else are neither removed nor written beside.
#[test]
fn a_folder_with_other_files_is_kept() {
    let world = World::new(REJOIN);
    let file = world.root().join("talk");
    let folder = folder_of(&file);
    for files in [
        &["keep"][..],
        &["lock", "keep"],
        &["base"],
        &["bundle-id", "lock"],
    ] {
        std::fs::create_dir(&folder).unwrap();
        for name in files {
            std::fs::write(folder.join(name), "precious").unwrap();
        }
        assert_refused(&world, &file);
        std::fs::remove_dir_all(&folder).unwrap();
    }
    // An id that names another file is none.
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("bundle-id"), "../rejoin.db").unwrap();
    assert_refused(&world, &file);
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::create_dir(&folder).unwrap();
    let _empty = send(&world, &file, 1, &["-a", "demo"]).ok();
    assert!(!folder.exists());
}

/// A lock that is a link or a pipe leads nowhere.
#[test]
fn a_lock_that_is_no_file() {
    let world = World::new(REJOIN);
    let file = world.root().join("talk");
    let folder = folder_of(&file);
    let elsewhere = world.root().join("elsewhere");
    std::fs::create_dir(&folder).unwrap();
    std::os::unix::fs::symlink(&elsewhere, folder.join("lock")).unwrap();
    let refused = send(&world, &file, 1, &["-a", "demo"]);
    assert_eq!(code(&refused), (6, "unavailable".into()));
    assert!(!elsewhere.exists());
    std::fs::remove_file(folder.join("lock")).unwrap();
    let made = Command::new("mkfifo").arg(folder.join("lock")).status();
    assert!(made.unwrap().success());
    let refused = send(&world, &file, 1, &["-a", "demo"]);
    assert_eq!(code(&refused), (6, "unavailable".into()));
}

/// A message that waits in an own folder does at most what the next command may.
#[test]
fn a_message_that_waits_is_held_to_the_next_command() {
    for (configured, flags, waiting) in [
        ("edit", &[][..], "edit"),
        ("full", &[], "edit"),
        ("read-only", &[], "read-only"),
        ("edit", &["--permission", "read-only"], "read-only"),
        ("read-only", &["--permission", "full"], "full"),
    ] {
        let mut world = World::new(REJOIN);
        let file = world.root().join("talk");
        let _first = send(&world, &file, 1, &["-a", "demo"]).ok();
        let away = ["--permission", "full", "--keep-background", "-w", "/"];
        killed(&mut world, &file, 2, &away);
        world.set("REJOIN_PERMISSION", configured);
        let next = send(&world, &file, 3, flags).ok();
        let told = next.stderr.contains("a message of an earlier run");
        assert_eq!(told, waiting != "full", "{next:?}");
        let turns = rows(&file, b'T');
        let request = &turns[1]["request"];
        assert_eq!(
            request["envelope"]["mode"], waiting,
            "{configured} {flags:?}"
        );
        assert_eq!(request["keep_background"], waiting == "full");
        let work = world.work().canonicalize().unwrap();
        assert_eq!(request["workdir"], path(&work));
        assert_eq!(turns[1]["status"], "succeeded");
        let conversation = &rows(&file, b'C')[0];
        assert_ne!(conversation["permission"], "full", "{configured} {flags:?}");
    }
}

/// A record that cannot be written costs no message: it is said, and the turn runs.
#[test]
fn a_folder_without_a_record() {
    let mut world = World::new(REJOIN);
    let file = world.root().join("talk");
    let records = world.data().join("bundles");
    std::fs::write(&records, "").unwrap();
    let first = send(&world, &file, 1, &["-a", "demo"]).ok();
    assert!(first.stderr.contains("could not be recorded"), "{first:?}");
    assert_eq!(beside(&file), Vec::<PathBuf>::new());
    killed(&mut world, &file, 2, &[]);
    assert_refused(&world, &file);
    std::fs::remove_file(&records).unwrap();
    assert_refused(&world, &file);
}
