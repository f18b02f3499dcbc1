//! Which session is gone on with: the one that was asked for, or none.

use std::fs;

use rejoin_testkit::{Chronicle, Continued};

use super::{stand_in_front, world};

/// Given no session it would start a new one, and say so only by its id: noticed at its first
/// event, stopped, told anew.
#[test]
fn a_cli_that_starts_fresh_instead_is_noticed() {
    let Some(mut world) = world() else { return };
    let flag = world.root().join("fresh");
    let body = format!(
        r#"args=()
while [ $# -gt 0 ]; do
  if [ "$1" = -s ] && [ -e {} ]; then shift 2; continue; fi
  args+=("$1"); shift
done
exec "$real" "${{args[@]}}""#,
        flag.display()
    );
    stand_in_front(&mut world, &body);
    let mut story = Chronicle::begun(world);
    fs::write(&flag, "").unwrap();
    story.turn(Continued::Reseeded("rejected"), &[]);
    fs::remove_file(&flag).unwrap();
    story.resumes(&[]);
    story.world.assert_quiet();
}

/// Our own look finds the session as it was, the CLI does not find it at all.
#[test]
fn a_refused_session_is_retried_once_as_a_record() {
    let Some(mut world) = world() else { return };
    let (flag, other) = (world.root().join("refuse"), world.root().join("other.db"));
    let body = format!(
        r#"if [ -e {} ] && [[ " $* " == *" -s "* ]]; then export OPENCODE_DB={}; fi
exec "$real" "$@""#,
        flag.display(),
        other.display()
    );
    stand_in_front(&mut world, &body);
    let mut story = Chronicle::begun(world);
    fs::write(&flag, "").unwrap();
    let asked = story.world.model.requests().len();
    story.turn(Continued::Reseeded("rejected"), &[]);
    assert_eq!(story.world.model.requests().len(), asked + 1);
    // Not even then if it must not be told anew.
    let flags = ["send", "--json", "-k", "k", "--no-reseed", "not-kept-word"];
    let refused = story.world.run(&flags);
    assert_eq!(refused.code, 5, "{refused:?}");
    assert_eq!(refused.json()["error"]["code"], "would_reseed");
    assert_eq!(story.world.model.requests().len(), asked + 1);
    fs::remove_file(&flag).unwrap();
    story.turn(Continued::Reseeded("session_retired"), &[]);
    story.world.assert_quiet();
}

/// An id that is none of this CLI's is not kept, so it is never passed on.
#[test]
fn a_malformed_id_is_never_passed_on() {
    let Some(mut world) = world() else { return };
    let log = world.root().join("calls");
    let body = format!(
        r#"echo "$*" >> {}
exec "$real" "$@" > >(sed -u 's/"sessionID":"ses_[A-Za-z0-9]*"/"sessionID":"..\/..\/etc"/')"#,
        log.display()
    );
    stand_in_front(&mut world, &body);
    world.say(1, &[]);
    let second = world.say(2, &[]);
    assert_eq!(second["verdict"], "reseeded", "{second}");
    let words = [rejoin_testkit::said(1..2), vec![rejoin_testkit::user(2)]].concat();
    rejoin_testkit::assert_shown(&world.model.last(), &words);
    let calls = fs::read_to_string(&log).unwrap();
    assert!(!calls.contains(".."), "{calls}");
    assert!(
        !calls.contains("--continue") && !calls.contains(" -c "),
        "{calls}"
    );
}
