//! Decisions about a session of the conversation that this one was forked from.

use super::*;

const PARENT: &str = "tmqx";

/// A fork passes the same guards as an own session, except those about its owner's current
/// activity. Covers all values of all axes, two at a time.
#[test]
fn a_fork_is_decided_as_a_resume_of_what_was_confirmed() {
    let mut bench = Bench::new();
    let mut forks = 0;
    for (i, (_, first_values, first)) in AXES.iter().enumerate() {
        for (_, second_values, second) in AXES.iter().skip(i + 1) {
            for values in 0..first_values * second_values {
                let mut case = Case::fine();
                first(&mut case, values % first_values);
                second(&mut case, values / first_values);
                let alone = Case {
                    in_use: None,
                    snapshot: Shot::No,
                    pin: if case.pin == PinIs::Open {
                        PinIs::Confirmed
                    } else {
                        case.pin
                    },
                    ..case
                };
                let mut expected = expected_plan(&alone);
                if let Ok(TurnPlan::Resume { session, .. }) = &mut expected {
                    session.way = SessionSource::Fork;
                    forks += 1;
                }
                let mut s = bench.situation(&case);
                if let Some(facts) = &mut s.pin {
                    facts.forked_from = Some(PARENT);
                }
                let decision = decide(&s);
                assert_eq!(decision.plan, expected, "{case:#?}");
                let shown = decision.checks.map(|c| (c.check, c.ok));
                assert_eq!(shown.to_vec(), expected_checks(&alone), "{case:#?}");
            }
        }
    }
    assert!(forks > 100, "{forks}");
}

/// The verdict is `resumed`, and the checks name the parent's session.
#[test]
fn its_checks_name_the_parent() {
    let mut bench = Bench::new();
    let mut s = bench.situation(&Case {
        in_use: Some(77),
        pin: PinIs::Open,
        ..Case::fine()
    });
    s.pin.as_mut().unwrap().forked_from = Some(PARENT);
    let Decision { plan, checks } = decide(&s);
    let plan = plan.unwrap();
    assert_eq!((plan.verdict(), plan.reason()), (Verdict::Resumed, None));
    assert_eq!(plan.session().unwrap().way(), SessionSource::Fork);
    let said = |name| {
        let check = checks.iter().find(|c| c.check == name).unwrap();
        check.evidence.to_string()
    };
    assert_eq!(
        [CheckName::Session, CheckName::InUse, CheckName::Bytes].map(said),
        [
            "a copy of s-1 of tmqx, from which this one was forked",
            "a copy is written, not the session itself",
            "what was confirmed of it is there",
        ]
    );
}
