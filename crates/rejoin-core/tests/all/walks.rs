//! Promise 1 over random walks: whatever happened, the model is shown the history in scope, each
//! message once, in order and as it reads today, and the new message. The world asserts it in
//! every turn; here are the ways to walk.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use rejoin_core::{Class, Fresh, Reason, Scope};

use super::world::{AGENTS, Ending, Left, Obstacle, Snapshots, Turn, World};

#[derive(Debug, Clone)]
enum Step {
    Send(Turn),
    Edit(usize),
    Truncate(usize),
    Replace(usize),
    Undo,
    SetScope(Scope),
    DeleteSession(&'static str),
    StaleSession(&'static str),
    ContinueByHand(&'static str),
    LoseNewestSnapshot(&'static str),
}

fn agent() -> impl Strategy<Value = &'static str> {
    // Mostly two, so that they meet again.
    prop_oneof![4 => Just(AGENTS[0]), 3 => Just(AGENTS[1]), 1 => Just(AGENTS[2])]
}

fn scope() -> impl Strategy<Value = Scope> {
    prop_oneof![Just(Scope::Full), Just(Scope::Agent)]
}

fn ending() -> impl Strategy<Value = Ending> {
    let class = prop_oneof![
        4 => Just(Class::Transient),
        2 => Just(Class::Crashed),
        2 => Just(Class::Lost),
        1 => Just(Class::Poisoned),
    ];
    let left = prop_oneof![
        2 => Just(Left::Nothing),
        4 => Just(Left::CutBack),
        1 => Just(Left::Retired),
        2 => Just(Left::OpenWithPrompt),
        1 => Just(Left::OpenWithout),
    ];
    prop_oneof![
        10 => Just(Ending::Answered),
        1 => Just(Ending::Refused),
        4 => (class, left).prop_map(|(class, left)| Ending::Failed(class, left)),
    ]
}

fn turn() -> impl Strategy<Value = Turn> {
    let fresh = prop_oneof![
        15 => Just(None),
        1 => prop_oneof![Just(Fresh::Asked), Just(Fresh::Retry), Just(Fresh::Always)].prop_map(Some),
    ];
    let obstacle = prop_oneof![
        12 => Just(None),
        1 => prop_oneof![
            Just(Obstacle::NoCapability),
            Just(Obstacle::OtherFolder),
            Just(Obstacle::OlderRuntime),
            Just(Obstacle::ContextFull),
            Just(Obstacle::InUse),
        ]
        .prop_map(Some),
        1 => Just(Some(Obstacle::NoReseed)),
    ];
    let snapshots = prop_oneof![
        4 => Just(Snapshots::On),
        4 => Just(Snapshots::Off),
        1 => Just(Snapshots::Damaged),
        1 => Just(Snapshots::Expired),
    ];
    (agent(), fresh, obstacle, snapshots, ending()).prop_map(
        |(agent, fresh, obstacle, snapshots, ending)| Turn {
            agent,
            fresh,
            obstacle,
            snapshots,
            ending,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        24 => turn().prop_map(Step::Send),
        2 => (0..30_usize).prop_map(Step::Edit),
        2 => (0..30_usize).prop_map(Step::Truncate),
        1 => (0..30_usize).prop_map(Step::Replace),
        3 => Just(Step::Undo),
        1 => scope().prop_map(Step::SetScope),
        1 => agent().prop_map(Step::DeleteSession),
        1 => agent().prop_map(Step::StaleSession),
        1 => agent().prop_map(Step::ContinueByHand),
        1 => agent().prop_map(Step::LoseNewestSnapshot),
    ]
}

fn walk() -> impl Strategy<Value = (Scope, Vec<Step>)> {
    (scope(), prop::collection::vec(step(), 1..40))
}

type Said = (&'static str, Option<Reason>);

/// Takes the steps; returns how the turns were continued.
fn take((scope, steps): (Scope, Vec<Step>)) -> BTreeSet<Said> {
    let mut world = World::new(scope);
    let mut said = BTreeSet::new();
    for step in steps {
        match step {
            Step::Send(turn) => {
                said.insert(world.send(turn).said());
            }
            Step::Edit(at) => drop(world.edit(at)),
            Step::Truncate(at) => drop(world.truncate(at)),
            Step::Replace(at) => drop(world.replace(at)),
            Step::Undo => drop(world.undo()),
            Step::SetScope(scope) => world.scope = scope,
            Step::DeleteSession(agent) => world.delete_session(agent),
            Step::StaleSession(agent) => world.stale_session(agent),
            Step::ContinueByHand(agent) => world.continue_by_hand(agent),
            Step::LoseNewestSnapshot(agent) => world.lose_newest_snapshot(agent),
        }
    }
    said
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    /// Promises 1 and 2; ..A-29, A-35, A-42..A-47 at every step.
    #[test]
    fn every_turn_shows_each_message_in_scope_once(walk in walk()) {
        take(walk);
    }
}

/// The walks are worth something only if they come by every way a turn can be continued.
#[test]
fn walks_reach_every_verdict_and_reason() {
    let mut reached = BTreeSet::new();
    let mut runner = TestRunner::deterministic();
    for _ in 0..400 {
        let walk = walk().new_tree(&mut runner).unwrap().current();
        reached.extend(take(walk));
    }
    let reasons = Reason::ALL.iter().filter(|reason| {
        // Facts that this world does not have, or that hold a turn back.
        !matches!(
            reason,
            Reason::OtherProvider | Reason::ModelChanged | Reason::Compacted | Reason::InUse
        )
    });
    let expected: BTreeSet<Said> = reasons
        .map(|reason| ("reseeded", Some(*reason)))
        .chain([("started", Some(Reason::FirstTurn))])
        .chain(["resumed", "restored", "would_reseed", "in_use"].map(|word| (word, None)))
        .collect();
    assert_eq!(reached, expected);
}
