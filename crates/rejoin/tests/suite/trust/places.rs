//! Trust is for a place: links, devices, named files, stores.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use rejoin_testkit::World;

use super::{REJOIN, write};

/// A store that an untrusted file names is not opened, nor silently replaced by another.
#[test]
fn a_store_is_not_chosen_by_a_repository() {
    let mut world = World::new(REJOIN);
    let store = world.root().join("theirs.db");
    write(
        &world,
        &format!("[database]\nurl = \"sqlite:{}\"\n", store.display()),
    );
    for args in [&["list"][..], &["send", "-a", "demo", "hello"]] {
        let done = world.run(args);
        assert_eq!(done.code, 5, "{done:?}");
        assert!(done.stderr.contains("sets database.url"), "{done:?}");
    }
    assert!(!store.exists());
    world.run(&["config", "show"]).ok();
    // The user has said which store: then the file is only left out.
    world.set(
        "REJOIN_DATABASE_URL",
        &format!("sqlite:{}", world.root().join("own.db").display()),
    );
    let done = world.run(&["list"]).ok();
    assert!(done.stderr.contains("leaves out database.url"), "{done:?}");
    world.unset("REJOIN_DATABASE_URL");
    world.run(&["trust"]).ok();
    world.run(&["list"]).ok();
    assert!(store.exists());
}

/// Trust is for a place: the same words in another folder, or a link to a trusted file, are not it.
#[test]
fn a_link_to_a_trusted_file_is_not_trusted() {
    let world = World::new(REJOIN);
    let text = "[agents.claude]\nbin = \"./evil\"\n";
    let file = write(&world, text);
    world.run(&["trust"]).ok();
    let send = |folder: &PathBuf| {
        let child = world
            .command(&["send", "-a", "demo", "hi"])
            .current_dir(folder)
            .spawn()
            .unwrap();
        rejoin_testkit::Done::of(child).code
    };
    assert_eq!(send(&world.work()), 0);
    let other = world.root().join("other");
    std::fs::create_dir(&other).unwrap();
    symlink(&file, other.join("rejoin.toml")).unwrap();
    assert_eq!(send(&other), 5);
    // The folder by another name is the same folder.
    let alias = world.root().join("alias");
    symlink(world.work(), &alias).unwrap();
    assert_eq!(send(&alias), 0);
    // A link in the place of the trusted file, to other words.
    std::fs::write(
        world.root().join("elsewhere.toml"),
        "[agents.claude]\nbin = \"/bin/sh\"\n",
    )
    .unwrap();
    std::fs::remove_file(&file).unwrap();
    symlink(world.root().join("elsewhere.toml"), &file).unwrap();
    assert_eq!(send(&world.work()), 5);
}

#[test]
fn a_file_that_never_ends_or_is_none_is_left_alone() {
    let world = World::new(REJOIN);
    symlink("/dev/zero", world.work().join("rejoin.toml")).unwrap();
    world.run(&["list"]).ok();
    let done = world.run(&["trust"]);
    assert_eq!((done.code, done.stdout.as_str()), (3, ""), "{done:?}");
}

/// A file that is named by the user is the user's word.
#[test]
fn a_named_file_needs_no_trust() {
    let world = World::new(REJOIN);
    write(&world, "default_agent = \"demo\"\n");
    assert_eq!(world.run(&["send", "hi"]).code, 5);
    world.run(&["send", "--config", "rejoin.toml", "hi"]).ok();
}
