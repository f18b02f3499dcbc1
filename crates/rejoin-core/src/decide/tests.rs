//! The guard matrix: compares `decide` with the table in `table.rs`.
//!
//! Two enumerations without sampling: every subset of failing guards, times all interacting states
//! of pin, session and snapshot; and all triples of axes with all their values.

use std::collections::BTreeSet;

use super::*;
use crate::agent::{AgentName, Runtime, Version};
use crate::ids::{PinId, SessionId, TurnId};
use crate::pin::{Folder, Pin, PinState, SeenPrefix};
use crate::reason::Verdict;
use crate::scope::ScopeValue;
use crate::situation::{
    AfterCompaction, FolderFact, HistoryFacts, ModelChange, Policy, Prefix, Request, SessionFact,
};
use crate::usage::Context;

mod fork;
mod table;

use table::{
    AXES, Answers, Before, Case, Failures, PinIs, Shot, TABLE, expected_checks, expected_plan,
};

/// Constant facts of all cases, and the pin, which varies.
struct Bench {
    agent: AgentName,
    runtimes: [Runtime; 4],
    pin: Pin,
    /// Results reached so far. A matrix that reaches too few of them fails.
    reached: BTreeSet<(&'static str, Option<Reason>)>,
    cases: u64,
}

impl Bench {
    fn new() -> Self {
        let agent = AgentName::new("claude").unwrap();
        let runtime = |product: &str, version: &str| Runtime {
            product: product.into(),
            version: Version(version.into()),
        };
        let pin = Pin {
            id: PinId::from_parts(1, [1; 10]),
            agent: agent.clone(),
            session: SessionId::new("s-1").unwrap(),
            state: PinState::Confirmed,
            seen: seen(0),
            folder: Folder {
                path: "/w".into(),
                device: 1,
                inode: 2,
                checkout: None,
            },
            runtime: runtime("claude", "2.1.197"),
            machine: "here".into(),
            home: String::new(),
            files: vec![],
            cursor: None,
            total: None,
            usage: None,
            context: None,
            model: None,
            provider: None,
            failures: 0,
            compacted: false,
            instructions: None,
        };
        let runtimes = [
            ("claude", "2.1.197"),
            ("claude", "2.1.99"),
            ("claude", "2.1.325"),
            ("openclaude", "2.1.197"),
        ]
        .map(|(product, version)| runtime(product, version));
        Self {
            agent,
            runtimes,
            pin,
            reached: BTreeSet::new(),
            cases: 0,
        }
    }

    fn situation(&mut self, case: &Case) -> Situation<'_> {
        let pin = &mut self.pin;
        pin.state = match case.pin {
            PinIs::Open => PinState::Open(TurnId::from_parts(5, [5; 10])),
            PinIs::Retired => PinState::Retired("the API refuses its history".into()),
            PinIs::Confirmed | PinIs::Absent => PinState::Confirmed,
        };
        pin.seen = seen(case.seen());
        pin.seen.summarised = u64::from(case.compacted);
        (pin.failures, _) = limits(case);
        pin.provider = case.provider.map(|_| "acme".into());
        pin.context = case.context.map(|(used, window)| Context { used, window });
        pin.model = case.model.0.map(Into::into);
        pin.compacted = case.compacted;
        Situation {
            agent: &self.agent,
            request: Request {
                fresh: case.fresh,
                no_reseed: case.no_reseed,
                relocate: case.relocate,
            },
            policy: Policy {
                context_threshold: 0.80,
                breaker: limits(case).1,
                model_change: case.model_change,
                after_compaction: case.after_compaction,
            },
            history: HistoryFacts {
                messages: case.messages(),
                answered: case.history == Before::Answered,
            },
            runtime: &self.runtimes[case.runtime as usize],
            capability: case.capability,
            model: case.model.1,
            window: None,
            permissions: case.permissions,
            pin: case.pinned().then_some(PinFacts {
                pin: &self.pin,
                prefix: case.prefix,
                folder: case.folder,
                has_provider: case.provider == Some(true),
                session: case.session,
                snapshot: match case.snapshot {
                    Shot::No => SnapshotFact::None,
                    Shot::Verified | Shot::LongerThanHistory => SnapshotFact::Usable {
                        seen: SeenPrefix {
                            summarised: u64::from(case.compacted),
                            ..seen(case.snapshot_seen())
                        },
                    },
                    Shot::Damaged => SnapshotFact::Damaged,
                    Shot::Expired => SnapshotFact::Expired,
                    Shot::Unreachable => SnapshotFact::Unreachable("it does not answer"),
                },
                elsewhere: case.elsewhere,
                in_use: case.in_use,
                writers_visible: true,
                forked_from: None,
            }),
        }
    }

    fn check(&mut self, case: &Case) {
        self.cases += 1;
        let Decision { plan, checks } = decide(&self.situation(case));
        let expected = expected_plan(case);
        assert_eq!(plan, expected, "{case:#?}");

        let shown: Vec<_> = checks.iter().map(|c| (c.check, c.ok)).collect();
        assert_eq!(shown, expected_checks(case), "{case:#?}");
        for check in &checks {
            let silent = matches!(check.evidence, Evidence::NotApplicable);
            assert_eq!(silent, check.ok.is_none(), "{check:?} {case:#?}");
        }
        let said = in_words(&expected);
        if let Ok(plan) = &plan {
            assert_eq!((plan.verdict().as_str(), plan.reason()), said, "{case:#?}");
        }
        self.reached.insert(said);
    }

    /// Calls `check` for every combination of the given values of the given axes.
    fn product(&mut self, case: Case, axes: &[(&str, &[usize])]) {
        let Some(((name, values), rest)) = axes.split_first() else {
            return self.check(&case);
        };
        let (_, _, set) = AXES.iter().find(|axis| axis.0 == *name).unwrap();
        for value in *values {
            let mut next = case;
            set(&mut next, *value);
            self.product(next, rest);
        }
    }
}

/// Formats a result as in the outer contract: `first_turn` with `started`, no reason with `resumed`
/// and `restored`.
fn in_words(plan: &Result<TurnPlan, Blocker>) -> (&'static str, Option<Reason>) {
    match plan {
        Ok(TurnPlan::Start { .. }) => ("started", Some(Reason::FirstTurn)),
        Ok(TurnPlan::Resume { session, .. }) => match session.way {
            SessionSource::InPlace | SessionSource::Fork => ("resumed", None),
            SessionSource::Live => ("live", None),
            SessionSource::Snapshot => ("restored", None),
        },
        Ok(TurnPlan::Reseed { why, .. }) => ("reseeded", Some(*why)),
        Err(Blocker::InUse { .. }) => ("in_use", None),
        Err(Blocker::WouldReseed { why }) => ("would_reseed", Some(*why)),
        Err(Blocker::Permissions) => ("envelope", None),
    }
}

/// All possible results of a decision.
fn all_words() -> BTreeSet<(&'static str, Option<Reason>)> {
    let ends = ["resumed", "restored", "in_use", "envelope"].map(|word| (word, None));
    let reasons = TABLE
        .iter()
        .map(|row| row.0)
        .filter(|r| *r != Reason::InUse);
    reasons
        .flat_map(|why| [("reseeded", Some(why)), ("would_reseed", Some(why))])
        .chain(ends)
        .chain([("started", Some(Reason::FirstTurn))])
        .collect()
}

fn seen(messages: u64) -> SeenPrefix {
    SeenPrefix {
        summarised: 0,
        value: ScopeValue([7; 32]),
        messages,
        last_seq: messages as i64,
        last: None,
    }
}

/// Failures in a row, and the number that retires a session.
fn limits(case: &Case) -> (u32, u32) {
    match case.failures {
        Failures::Below => (1, 2),
        Failures::AtLimit => (2, 2),
        Failures::Above => (3, 2),
        Failures::NoLimit => (9, 0),
    }
}

#[test]
fn the_table_has_every_reason_in_order() {
    let table: Vec<_> = TABLE
        .iter()
        .map(|row| row.0)
        .chain([Reason::Rejected])
        .collect();
    assert_eq!(table, Reason::ALL);
}

/// Every subset of failing guards (2^12), times all states of pin, session, snapshot and history:
/// promise 2, A-18..A-25, A-29, A-30, A-42, A-57. The first reason must be the right one.
#[test]
fn every_subset_of_failing_guards() {
    const BOTH: &[usize] = &[0, 1];
    let mut bench = Bench::new();
    let strict = Case {
        model_change: ModelChange::Reseed,
        after_compaction: AfterCompaction::Reseed,
        ..Case::fine()
    };
    let guards = [
        ("fresh", BOTH),
        ("capability", BOTH),
        ("failures", BOTH),
        ("prefix", BOTH),
        ("folder", BOTH),
        ("runtime", BOTH),
        ("provider", BOTH),
        ("context", BOTH),
        ("in_use", BOTH),
        ("model", BOTH),
        ("compacted", BOTH),
        ("no_reseed", BOTH),
    ];
    let states: [(&str, &[usize]); 4] = [
        ("history", BOTH),
        ("pin", BOTH),
        ("session", &[0, 1, 2, 3, 4]),
        ("snapshot", &[0, 1, 2, 3]),
    ];
    bench.product(strict, &[&states[..], &guards[..]].concat());
    assert_eq!(bench.cases, (1 << 12) * 2 * 2 * 5 * 4);

    let unpinned = Case {
        pin: PinIs::Absent,
        ..strict
    };
    bench.product(
        unpinned,
        &[
            &[("permissions", BOTH), ("history", &[0, 1, 2])],
            &guards[..],
        ]
        .concat(),
    );
    assert_eq!(bench.reached, all_words());
}

/// All values of all axes, three axes at a time, around a session in place and around a restore.
#[test]
fn all_triples_of_facts() {
    let restore = Case {
        session: SessionFact::Missing,
        snapshot: Shot::Verified,
        ..Case::fine()
    };
    let mut bench = Bench::new();
    for base in [Case::fine(), restore] {
        for (i, (_, first_values, first)) in AXES.iter().enumerate() {
            for (j, (_, second_values, second)) in AXES.iter().enumerate().skip(i + 1) {
                for (_, third_values, third) in AXES.iter().skip(j + 1) {
                    for values in 0..first_values * second_values * third_values {
                        let mut case = base;
                        first(&mut case, values % first_values);
                        second(&mut case, values / first_values % second_values);
                        third(&mut case, values / first_values / second_values);
                        bench.check(&case);
                    }
                }
            }
        }
    }
    assert!(bench.cases > 1 << 16, "{}", bench.cases);
    assert_eq!(bench.reached, all_words());
}

/// C-55, C-58..C-60: 7.5 % and 85 % of the window, and another threshold.
#[test]
fn the_context_threshold_is_the_configured_one() {
    let mut bench = Bench::new();
    let mut verdict = |used, threshold| {
        let mut s = bench.situation(&Case {
            context: Some((used, 200_000)),
            ..Case::fine()
        });
        s.policy.context_threshold = threshold;
        decide(&s).plan.unwrap().verdict()
    };
    assert_eq!(verdict(15_000, 0.80), Verdict::Resumed);
    assert_eq!(verdict(170_000, 0.80), Verdict::Reseeded);
    assert_eq!(verdict(159_999, 0.80), Verdict::Resumed);
    assert_eq!(verdict(160_000, 0.80), Verdict::Reseeded);
    assert_eq!(verdict(150_000, 0.70), Verdict::Reseeded);
    assert_eq!(verdict(139_999, 0.70), Verdict::Resumed);
}

/// The window of the next model counts, not that of the last one.
#[test]
fn the_context_is_compared_with_the_window_of_the_next_model() {
    let mut bench = Bench::new();
    let mut verdict = |window| {
        let mut s = bench.situation(&Case {
            context: Some((100_000, 1_000_000)),
            ..Case::fine()
        });
        s.window = window;
        decide(&s).plan.unwrap().verdict()
    };
    assert_eq!(verdict(None), Verdict::Resumed);
    assert_eq!(verdict(Some(200_000)), Verdict::Resumed);
    assert_eq!(verdict(Some(125_000)), Verdict::Reseeded);
}

/// Promise 6: every guard formats its evidence, including the guards after the one that failed.
#[test]
fn every_check_says_what_it_saw() {
    let case = Case {
        prefix: Prefix::Changed {
            by: Some(crate::HistoryChange::Edited(2)),
        },
        folder: FolderFact::Other,
        runtime: Answers::Older,
        context: Some((85, 100)),
        provider: None,
        session: SessionFact::Missing,
        ..Case::fine()
    };
    let mut bench = Bench::new();
    let told = decide(&bench.situation(&case)).checks.map(
        |Check {
             check,
             ok,
             evidence,
         }| {
            let mark = match ok {
                Some(true) => '+',
                Some(false) => '!',
                None => '-',
            };
            format!("{mark} {check}: {evidence}")
        },
    );
    assert_eq!(
        told,
        [
            "+ envelope: the agent can be held to these permissions",
            "+ turns: 6 messages in scope before this one",
            "+ fresh: a resume is allowed",
            "+ capability: resume proven on this binary",
            "+ session: s-1",
            "+ breaker: 1 failed turns in a row, limit 2",
            "! history: message 2 was edited",
            "! folder: the session belongs to /w",
            "! runtime: written by claude 2.1.197, here is claude 2.1.99",
            "- provider: does not apply",
            "! context: 85 of 100 tokens (85.0 %, limit 80 %)",
            "! present: not here, and no snapshot of it",
            "+ in_use: nobody else is writing it",
            "- bytes: does not apply",
            "+ model: opus",
            "+ compaction: not compacted",
            "- snapshot: does not apply",
        ]
    );
}

#[test]
fn snapshot_from_before_a_compaction_is_not_compacted() {
    let case = Case {
        session: SessionFact::Missing,
        snapshot: Shot::Verified,
        after_compaction: AfterCompaction::Reseed,
        ..Case::fine()
    };
    let mut bench = Bench::new();
    let compacted = Pin {
        compacted: true,
        seen: SeenPrefix {
            summarised: 4,
            ..seen(4)
        },
        ..bench.pin.clone()
    };
    let mut s = bench.situation(&case);
    let pin = s.pin.map(|facts| PinFacts {
        pin: &compacted,
        ..facts
    });
    s.pin = pin;
    let checks = decide(&s).checks;
    let check = checks.iter().find(|c| c.check == CheckName::Compaction);
    assert_eq!(check.map(|c| c.ok), Some(Some(true)));
}
