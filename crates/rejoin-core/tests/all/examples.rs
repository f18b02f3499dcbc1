//! The requirements on scope and history, one by one. The world asserts in every turn that the
//! model is shown exactly what it should; here is whether that came from the session.

use rejoin_core::{Class, Fresh, Reason, Scope};

use super::world::{Ending, Left, Obstacle, Snapshots, Turn, Went, World};

const CLAUDE: Turn = Turn {
    agent: "claude",
    fresh: None,
    obstacle: None,
    snapshots: Snapshots::Off,
    ending: Ending::Answered,
};
const CODEX: Turn = Turn {
    agent: "codex",
    ..CLAUDE
};

fn resumed(went: &Went, held: u64, caught_up: u64) {
    assert_eq!(went.said(), ("resumed", None));
    assert_eq!(went.told(), (held, caught_up, 0));
}

fn reseeded(went: &Went, why: Reason, told: u64) {
    assert_eq!(went.said(), ("reseeded", Some(why)));
    assert_eq!(went.told(), (0, 0, told));
}

fn started(went: &Went) {
    assert_eq!(went.said(), ("started", Some(Reason::FirstTurn)));
    assert_eq!(went.told(), (0, 0, 0));
}

fn world(scope: Scope, turns: &[Turn]) -> World {
    let mut world = World::new(scope);
    for turn in turns {
        world.send(*turn);
    }
    world
}

/// Messages 0 1 of claude, 2 3 of codex, 4 5 of claude: under scope `agent`, claude sees 4 5 and
/// its boundary is 3; codex sees nothing, its boundary is 5.
fn alternating() -> World {
    world(Scope::Agent, &[CLAUDE, CODEX, CLAUDE])
}

///
#[test]
fn turns_of_one_agent_resume_with_nothing_told_again() {
    for scope in [Scope::Full, Scope::Agent] {
        let mut world = World::new(scope);
        started(&world.send(CLAUDE));
        resumed(&world.send(CLAUDE), 2, 0);
        resumed(&world.send(CLAUDE), 4, 0);
    }
}

/// another agent has no session here; the first one comes back to what it missed.
#[test]
fn an_agent_that_comes_back_is_told_what_it_missed() {
    let mut world = world(Scope::Full, &[CLAUDE]);
    reseeded(&world.send(CODEX), Reason::NoSession, 2);
    resumed(&world.send(CLAUDE), 2, 2);
    resumed(&world.send(CODEX), 4, 2);
}

/// under scope `agent` a foreign answer is a new beginning.
#[test]
fn under_scope_agent_a_foreign_answer_is_a_new_beginning() {
    let mut world = World::new(Scope::Agent);
    started(&world.send(CLAUDE));
    resumed(&world.send(CLAUDE), 2, 0);
    started(&world.send(CODEX));
    started(&world.send(CLAUDE));
    resumed(&world.send(CLAUDE), 2, 0);
}

/// an edit counts for the agents that see the message, and for no other; undoing it
/// makes the old session usable again.
#[test]
fn an_edit_in_the_slice_changes_it_and_undoing_it_does_not() {
    let mut world = alternating();
    assert_eq!(world.edit(4), ["claude"]);
    assert_eq!(world.undo(), ["claude"]);
    resumed(&world.send(CLAUDE), 2, 0);
    assert_eq!(world.edit(5), ["claude"]);
    reseeded(&world.send(CLAUDE), Reason::HistoryChanged, 4);
}

/// it is the output that is compared, not where the mutation was.
#[test]
fn an_edit_before_the_slice_does_not_count() {
    let mut world = alternating();
    assert_eq!(world.edit(0), [""; 0]);
    assert_eq!(world.edit(2), [""; 0]);
    resumed(&world.send(CLAUDE), 2, 0);

    world.scope = Scope::Full;
    assert_eq!(world.edit(0), ["claude", "codex", "gemini"]);
}

/// what the agent saw began after another message.
#[test]
fn truncating_the_boundary_counts() {
    let mut world = alternating();
    assert_eq!(world.truncate(3), ["claude", "codex", "gemini"]);
    reseeded(&world.send(CLAUDE), Reason::HistoryChanged, 3);
}

/// the boundary answered anew, and not a word after it is different.
#[test]
fn replacing_the_boundary_counts() {
    let mut world = alternating();
    assert_eq!(world.replace(3), ["claude"]);
    reseeded(&world.send(CLAUDE), Reason::HistoryChanged, 2);
}

///
#[test]
fn editing_the_boundary_does_not_count() {
    let mut world = alternating();
    assert_eq!(world.edit(3), [""; 0]);
    resumed(&world.send(CLAUDE), 2, 0);
}

/// a truncation in what the session saw, and one behind it.
#[test]
fn a_truncation_counts_for_the_sessions_that_saw_what_is_gone() {
    let mut world = world(Scope::Full, &[CLAUDE, CODEX]);
    assert_eq!(world.truncate(3), ["claude", "codex", "gemini"]);
    resumed(&world.send(CLAUDE), 2, 1);
    reseeded(&world.send(CODEX), Reason::HistoryChanged, 5);
}

///
#[test]
fn a_fresh_session_is_told_everything() {
    for fresh in [Fresh::Asked, Fresh::Retry, Fresh::Always] {
        let mut world = world(Scope::Full, &[CLAUDE]);
        let turn = Turn {
            fresh: Some(fresh),
            ..CLAUDE
        };
        reseeded(&world.send(turn), Reason::FreshRequested, 2);
        resumed(&world.send(CLAUDE), 4, 0);
    }
}

///
#[test]
fn another_folder_or_runtime_is_told_everything() {
    for (obstacle, why) in [
        (Obstacle::OtherFolder, Reason::OtherFolder),
        (Obstacle::OlderRuntime, Reason::OtherRuntime),
        (Obstacle::NoCapability, Reason::NoCapability),
    ] {
        let mut world = world(Scope::Full, &[CLAUDE]);
        let turn = Turn {
            obstacle: Some(obstacle),
            ..CLAUDE
        };
        reseeded(&world.send(turn), why, 2);
    }
}

/// refused at run time, continued from its transcript.
#[test]
fn a_refused_resume_is_told_as_a_record() {
    let mut world = world(Scope::Full, &[CLAUDE, CODEX]);
    let turn = Turn {
        ending: Ending::Refused,
        ..CLAUDE
    };
    reseeded(&world.send(turn), Reason::Rejected, 4);
    resumed(&world.send(CLAUDE), 6, 0);
}

/// Nothing answered yet: the unanswered message is told, there is no session to resume.
#[test]
fn an_unanswered_first_message_is_told_once() {
    let mut world = World::new(Scope::Full);
    let fails = Turn {
        ending: Ending::Failed(Class::Transient, Left::CutBack),
        ..CLAUDE
    };
    started(&world.send(fails));
    reseeded(&world.send(CLAUDE), Reason::FirstTurn, 1);
    resumed(&world.send(CLAUDE), 3, 0);
}

/// What a failed turn left decides over the session: cut back it goes on, else it does not.
#[test]
fn a_failed_turn_is_told_once_whatever_it_left() {
    for (left, expected) in [
        (Left::Nothing, ("resumed", None)),
        (Left::CutBack, ("resumed", None)),
        (Left::Retired, ("reseeded", Some(Reason::SessionRetired))),
        (
            Left::OpenWithPrompt,
            ("reseeded", Some(Reason::SessionDirty)),
        ),
        (Left::OpenWithout, ("reseeded", Some(Reason::SessionDirty))),
    ] {
        let mut world = world(Scope::Full, &[CLAUDE]);
        world.send(Turn {
            ending: Ending::Failed(Class::Transient, left),
            ..CLAUDE
        });
        assert_eq!(world.send(CLAUDE).said(), expected, "{left:?}");
    }
}

/// Two failures in a row retire a session, those of the network do not.
#[test]
fn the_breaker_counts_failures_that_are_the_sessions() {
    for (class, expected) in [
        (Class::Crashed, ("reseeded", Some(Reason::SessionRetired))),
        (Class::Transient, ("resumed", None)),
        (Class::Quota, ("resumed", None)),
        (Class::Auth, ("resumed", None)),
    ] {
        let mut world = world(Scope::Full, &[CLAUDE]);
        let fails = Turn {
            ending: Ending::Failed(class, Left::CutBack),
            ..CLAUDE
        };
        resumed(&world.send(fails), 2, 0);
        resumed(&world.send(fails), 2, 1);
        assert_eq!(world.send(CLAUDE).said(), expected, "{class}");
    }
}

/// B-01: gone or an older copy, a snapshot takes its place; an older snapshot is caught up.
#[test]
fn a_snapshot_takes_the_place_of_a_lost_session() {
    let restore = Turn {
        snapshots: Snapshots::On,
        ..CLAUDE
    };
    let mut world = world(Scope::Full, &[CLAUDE, CLAUDE]);
    world.delete_session("claude");
    let went = world.send(restore);
    assert_eq!((went.said(), went.told()), (("restored", None), (4, 0, 0)));

    world.stale_session("claude");
    world.lose_newest_snapshot("claude");
    let went = world.send(restore);
    assert_eq!((went.said(), went.told()), (("restored", None), (4, 2, 0)));
    resumed(&world.send(CLAUDE), 8, 0);

    world.continue_by_hand("claude");
    reseeded(&world.send(CLAUDE), Reason::SessionChanged, 10);
    world.send(CLAUDE);
    world.stale_session("claude");
    reseeded(&world.send(CLAUDE), Reason::SessionDamaged, 14);
}
