//! A turn of a fork costs what it costs: what the session it was made of had counted is not charged
//! again (promise 8).

use rejoin_testkit::{World, answering, on_both_claudes, on_cli};
use serde_json::Value;

use super::branch::Branch;

on_both_claudes!(its_first_turn_costs_its_own);
on_cli!(codex, CODEX_166, its_first_turn_costs_its_own);
on_cli!(opencode, OPENCODE, its_first_turn_costs_its_own);

/// A dear turn first, so that a running total cannot pass for the cost of a cheap one.
fn its_first_turn_costs_its_own(world: World) {
    let mut parent = Branch::new("parent");
    let say = |branch: &mut Branch, n, verdict, output| {
        branch.says_so(&world, n, verdict, &answering(n, 10, output), &[])
    };
    let dear = say(&mut parent, 1, "started", 100_000);
    assert_eq!(dear["usage"]["output"], 100_000, "{dear:#}");
    let mut child = parent.fork(&world, "c", &[]);
    let cheap = say(&mut parent, 2, "resumed", 100);
    let mut early = child.fork(&world, "e", &[]);
    let books = |turn: &Value| (turn["usage"].clone(), turn["cost_usd"].clone());
    for (branch, n) in [(&mut child, 3), (&mut early, 4)] {
        if world.cli.agent() == "opencode" {
            break;
        }
        let turn = say(branch, n, "resumed", 100);
        assert_eq!(books(&turn), books(&cheap), "{turn:#}");
    }
    let mut late = parent.fork(&world, "late", &[]);
    for n in [5, 6] {
        let turn = say(&mut late, n, "resumed", 100);
        assert_eq!(books(&turn), books(&cheap), "{turn:#}");
    }
}
