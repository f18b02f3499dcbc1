//! What is said of an archive that is not taken.

use insta::assert_snapshot;
use rejoin_testkit::World;

use super::{REJOIN, demo, export, path};
use crate::suite::errors::said;

#[test]
fn damage_is_one_sentence() {
    let world = demo(1);
    let file = export(&world);
    let whole = std::fs::read(&file).unwrap();
    let other = crate::suite::terminal::steady(World::new(REJOIN));
    let bad = other.root().join("bad");
    let told = |bytes: &[u8]| {
        std::fs::write(&bad, bytes).unwrap();
        said(&other, &["import", path(&bad)])
    };
    assert_snapshot!(told(&whole[..whole.len() / 2]), @r"
    exit 11, bad_archive
    error: it ends too early: a part of it is missing; nothing of it was taken
      try: rejoin export CONV, once more where it came from
    ");
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 4;
    assert!(told(&flipped).starts_with("exit 11, bad_archive\n"));
    assert_snapshot!(told(b"hello"), @r"
    exit 2, usage
    error: it is not an archive of rejoin
      try: rejoin export CONV -o FILE
    ");
    assert_snapshot!(told(b"rejoin archive 7\n"), @r"
    exit 2, usage
    error: it was written by a newer rejoin (form 7, this one knows 1)
      try: rejoin --version, and install a newer one
    ");
    assert_eq!(
        other.run(&["list", "--json"]).ok().json()["conversations"],
        serde_json::json!([])
    );
}

#[test]
fn two_that_went_on() {
    let world = demo(1);
    let file = export(&world);
    let other = crate::suite::terminal::steady(World::new(REJOIN));
    other.run(&["import", path(&file)]).ok();
    let _theirs = other.say(2, &[]);
    let _ours = world.say(3, &[]);
    let late = other.root().join("late");
    std::fs::rename(export(&world), &late).unwrap();
    let told = said(&other, &["import", path(&late)]);
    assert_snapshot!(told, @r"
    exit 4, diverged
    error: tmqx went on here, and went on otherwise in this archive; nothing was changed
      try: rejoin import /world/late --as-copy
    ");
}
