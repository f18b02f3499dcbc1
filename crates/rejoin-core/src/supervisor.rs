//! The decision about a climb: a pure function of facts that were read with the turn. The model only
//! asks.

use serde::{Deserialize, Serialize};

use crate::tier::{Tier, Tiers};
use crate::usage::Micros;

/// Name of the check for a person's approval.
pub const APPROVAL: &str = "approval";

/// Facts about a requested climb.
#[derive(Debug, Clone, Copy)]
pub struct ClimbFacts<'a> {
    pub tiers: &'a Tiers,
    /// `None`: the turn has no tier.
    pub current: Option<&'a str>,
    /// `None`: the next tier.
    pub to: Option<&'a str>,
    /// True if `rejoin hold` stopped the climbs of the namespace.
    pub held: bool,
    /// Time since the last climb of the conversation into the tier.
    pub since_last_ms: Option<u64>,
    /// Known cost of the chain.
    pub cost: Micros,
    /// False if the cost of a turn of the chain is unknown.
    pub cost_complete: bool,
    /// State of the approval, if the tier needs one.
    pub approval: Approval<'a>,
    /// Error: the permissions that the agent or the caller's ceiling does not allow.
    pub enforceable: Result<(), &'a str>,
}

/// Approval of a climb by a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approval<'a> {
    /// No person has decided yet.
    Open,
    /// Allowed by the person with this name.
    By(&'a str),
    /// Replaced by a person's command to climb.
    Command,
}

/// Result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClimbCheck {
    pub check: String,
    /// `None`: not applicable.
    pub ok: Option<bool>,
    pub evidence: String,
}

/// Decision about a climb.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClimbDecision {
    /// Name of the tier that was asked for, as far as it is known.
    pub to: Option<String>,
    pub checks: Vec<ClimbCheck>,
    /// True if the climb needs an approval that no person has given yet.
    pub unapproved: bool,
}

impl ClimbDecision {
    /// Returns the check that refuses the climb: the first that failed.
    pub fn refused(&self) -> Option<&ClimbCheck> {
        self.checks.iter().find(|check| check.ok == Some(false))
    }

    /// Returns true if nothing but a person's approval is missing.
    pub fn waits(&self) -> bool {
        self.unapproved && self.refused().is_none()
    }
}

/// Returns the tier that a climb leads to: the one asked for, else the next.
pub fn climb_target<'a>(
    tiers: &'a Tiers,
    current: Option<&str>,
    to: Option<&str>,
) -> Option<(usize, &'a Tier)> {
    match to {
        Some(name) => tiers.find(name),
        None => {
            let next = match current {
                Some(name) => tiers.find(name)?.0 + 1,
                None => 0,
            };
            tiers.tiers.get(next).map(|tier| (next, tier))
        }
    }
}

/// Decides about a climb. Evaluates every check; the first that fails refuses it.
pub fn supervise(facts: &ClimbFacts<'_>) -> ClimbDecision {
    let current = facts.current.and_then(|name| facts.tiers.find(name));
    let target = climb_target(facts.tiers, facts.current, facts.to);
    let mut checks = vec![];
    let mut check = |name: &str, ok: Option<bool>, evidence: String| {
        checks.push(ClimbCheck {
            check: name.to_owned(),
            ok,
            evidence,
        });
    };
    let name = target.map(|(_, tier)| tier.name.clone());
    let named = || name.clone().unwrap_or_default();
    match (&name, facts.to) {
        (Some(name), _) => check("known_tier", Some(true), format!("`{name}` is a tier")),
        (None, Some(asked)) => check(
            "known_tier",
            Some(false),
            format!("there is no tier `{asked}`"),
        ),
        (None, None) => check("known_tier", Some(false), "there is no higher tier".into()),
    }
    let rank = target.map(|(rank, _)| rank);
    let above = rank.map(|rank| current.is_none_or(|(now, _)| rank > now));
    let from = current.map_or("no tier", |(_, tier)| tier.name.as_str());
    check(
        "above_current",
        above,
        format!("from {from} to {}", or_nothing(&named())),
    );
    let most = facts.tiers.max_tier.as_deref();
    let limit = most.and_then(|most| facts.tiers.find(most));
    check(
        "max_tier",
        rank.map(|rank| limit.is_none_or(|(most, _)| rank <= most)),
        most.map_or_else(
            || "no highest tier is set".into(),
            |most| format!("the highest tier is `{most}`"),
        ),
    );
    let (held, by) = match (facts.tiers.hold, facts.held) {
        (true, _) => (true, "climb.hold is set"),
        (false, true) => (true, "climbs are on hold (rejoin hold)"),
        (false, false) => (false, "climbs are not on hold"),
    };
    check("hold", Some(!held), by.into());
    let dry = current.is_some_and(|(_, tier)| tier.dry_run);
    let into_dry = target.map(|(_, tier)| tier.dry_run);
    check(
        "dry_run",
        into_dry.map(|into| !dry || into),
        match (dry, into_dry) {
            (true, Some(false)) => format!("{from} is a dry run, and {} is not", named()),
            (true, _) => format!("{from} is a dry run"),
            (false, _) => format!("{from} is not a dry run"),
        },
    );
    let cooldown = target.and_then(|(_, tier)| tier.cooldown_ms);
    let (ok, evidence) = cooled(cooldown, facts.since_last_ms);
    check("cooldown", ok, evidence);
    let budget = facts.tiers.max_cost;
    let at_least = if facts.cost_complete { "" } else { "at least " };
    check(
        "chain_budget",
        budget.map(|most| facts.cost < most),
        match budget {
            Some(most) => format!(
                "the chain cost {at_least}${:.2} of ${:.2}",
                facts.cost.dollars(),
                most.dollars()
            ),
            None => "no budget is set for a chain".into(),
        },
    );
    let needed = target.map(|(_, tier)| tier.approval);
    let (ok, evidence) = approved(needed, facts.approval);
    check(APPROVAL, ok, evidence);
    let enforced = facts.enforceable.map_or_else(str::to_owned, |()| {
        "the agent can enforce the permissions".into()
    });
    check(
        "enforceable",
        target.map(|_| facts.enforceable.is_ok()),
        enforced,
    );
    ClimbDecision {
        to: name.or_else(|| facts.to.map(str::to_owned)),
        checks,
        unapproved: needed == Some(true) && facts.approval == Approval::Open,
    }
}

fn approved(needed: Option<bool>, approval: Approval<'_>) -> (Option<bool>, String) {
    match (needed, approval) {
        (Some(true), Approval::Open) => (None, "a person must approve the climb".into()),
        (Some(true), Approval::By(person)) => (Some(true), format!("approved by {person}")),
        (Some(true), Approval::Command) => (
            Some(true),
            "a person's command replaces the approval".into(),
        ),
        (Some(false) | None, _) => (None, "no approval is needed".into()),
    }
}

fn cooled(cooldown: Option<u64>, since: Option<u64>) -> (Option<bool>, String) {
    let Some(cooldown) = cooldown else {
        return (None, "no cooldown is set".into());
    };
    match since {
        None => (Some(true), "no earlier climb into this tier".into()),
        Some(since) if since >= cooldown => (
            Some(true),
            format!(
                "last climb {} s ago, cooldown {} s",
                since / 1000,
                cooldown / 1000
            ),
        ),
        Some(since) => {
            let left = (cooldown - since).div_ceil(1000);
            (
                Some(false),
                format!(
                    "last climb {} s ago; again possible in {left} s",
                    since / 1000
                ),
            )
        }
    }
}

fn or_nothing(name: &str) -> &str {
    if name.is_empty() { "nothing" } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tier(name: &str) -> Tier {
        Tier {
            name: name.into(),
            role: name.into(),
            agent: None,
            model: None,
            permission: None,
            tools: None,
            deny_tools: vec![],
            may: vec![],
            dry_run: false,
            timeout_ms: None,
            max_cost: None,
            cooldown_ms: None,
            approval: false,
            limit: vec![],
            prompt: None,
            window: None,
        }
    }

    fn three() -> Tiers {
        Tiers {
            tiers: vec![tier("a"), tier("b"), tier("c")],
            ..Tiers::default()
        }
    }

    fn facts(tiers: &Tiers) -> ClimbFacts<'_> {
        ClimbFacts {
            tiers,
            current: Some("a"),
            to: None,
            held: false,
            since_last_ms: None,
            cost: Micros(0),
            cost_complete: true,
            approval: Approval::Open,
            enforceable: Ok(()),
        }
    }

    fn refused(facts: &ClimbFacts<'_>) -> Option<String> {
        supervise(facts).refused().map(|check| check.check.clone())
    }

    #[test]
    fn each_check_refuses_alone_and_every_check_is_kept() {
        let plain = three();
        assert_eq!(refused(&facts(&plain)), None);
        assert_eq!(supervise(&facts(&plain)).to.as_deref(), Some("b"));
        let with = |change: &dyn Fn(&mut Tiers)| {
            let mut tiers = three();
            change(&mut tiers);
            refused(&facts(&tiers)).unwrap_or_default()
        };
        assert_eq!(
            refused(&ClimbFacts {
                to: Some("x"),
                ..facts(&plain)
            })
            .unwrap(),
            "known_tier"
        );
        assert_eq!(
            refused(&ClimbFacts {
                current: Some("c"),
                ..facts(&plain)
            })
            .unwrap(),
            "known_tier"
        );
        assert_eq!(
            refused(&ClimbFacts {
                to: Some("a"),
                ..facts(&plain)
            })
            .unwrap(),
            "above_current"
        );
        assert_eq!(with(&|tiers| tiers.max_tier = Some("a".into())), "max_tier");
        assert_eq!(with(&|tiers| tiers.hold = true), "hold");
        assert_eq!(
            refused(&ClimbFacts {
                held: true,
                ..facts(&plain)
            })
            .unwrap(),
            "hold"
        );
        assert_eq!(with(&|tiers| tiers.tiers[0].dry_run = true), "dry_run");
        let both = |tiers: &mut Tiers| tiers.tiers.iter_mut().for_each(|tier| tier.dry_run = true);
        assert_eq!(with(&both), "");
        let mut cooling = three();
        cooling.tiers[1].cooldown_ms = Some(60_000);
        for (since, expected) in [
            (None, None),
            (Some(59_999), Some("cooldown")),
            (Some(60_000), None),
        ] {
            let facts = ClimbFacts {
                since_last_ms: since,
                ..facts(&cooling)
            };
            assert_eq!(refused(&facts).as_deref(), expected);
        }
        let spent = ClimbFacts {
            cost: Micros(5),
            ..facts(&plain)
        };
        let mut budget = three();
        budget.max_cost = Some(Micros(5));
        assert_eq!(
            refused(&ClimbFacts {
                tiers: &budget,
                ..spent
            })
            .unwrap(),
            "chain_budget"
        );
        budget.max_cost = Some(Micros(6));
        assert_eq!(
            refused(&ClimbFacts {
                tiers: &budget,
                ..spent
            }),
            None
        );
        assert_eq!(
            refused(&ClimbFacts {
                enforceable: Err("no"),
                ..facts(&plain)
            })
            .unwrap(),
            "enforceable"
        );
        let names: Vec<String> = supervise(&facts(&plain))
            .checks
            .into_iter()
            .map(|c| c.check)
            .collect();
        assert_eq!(
            names,
            [
                "known_tier",
                "above_current",
                "max_tier",
                "hold",
                "dry_run",
                "cooldown",
                "chain_budget",
                "approval",
                "enforceable"
            ]
        );
    }

    #[test]
    fn an_approval_waits_only_if_nothing_else_refuses() {
        let mut tiers = three();
        tiers.tiers[1].approval = true;
        let open = supervise(&facts(&tiers));
        assert!(open.waits() && open.refused().is_none());
        for approval in [Approval::By("ann"), Approval::Command] {
            let decided = supervise(&ClimbFacts {
                approval,
                ..facts(&tiers)
            });
            assert!(!decided.waits() && decided.refused().is_none());
        }
        let refused = supervise(&ClimbFacts {
            enforceable: Err("no"),
            ..facts(&tiers)
        });
        assert!(!refused.waits() && refused.unapproved);
        let other = supervise(&ClimbFacts {
            to: Some("c"),
            ..facts(&tiers)
        });
        assert!(!other.waits());
    }

    /// Whatever the facts, no climb leads to a tier that is not above, nor above the highest.
    #[test]
    fn no_climb_leads_down_or_beyond_the_highest_tier() {
        let names = [None, Some("a"), Some("b"), Some("c"), Some("x")];
        for most in names {
            let mut tiers = three();
            tiers.max_tier = most.map(str::to_owned);
            for current in names {
                for to in names {
                    let decision = supervise(&ClimbFacts {
                        current,
                        to,
                        ..facts(&tiers)
                    });
                    if decision.refused().is_none() {
                        let (target, _) = tiers.find(decision.to.as_deref().unwrap()).unwrap();
                        let above = current.and_then(|name| tiers.find(name));
                        assert!(above.is_none_or(|(now, _)| target > now));
                        let limit = most.and_then(|name| tiers.find(name));
                        assert!(limit.is_none_or(|(most, _)| target <= most));
                    }
                }
            }
        }
    }
}
