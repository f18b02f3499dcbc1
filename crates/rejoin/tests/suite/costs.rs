//! Cost is the turn's own (promise 8, C-34, C-36, C-37, C-39): 2.1.197 reports totals per process, 2.1.325 over
//! the whole session, and which of them a binary does is proven on first sight.

mod limit;

use rejoin_testkit::{
    CLAUDE_NEW, CLAUDE_OLD, Chronicle, Continued, World, answer, answering, claude, costing,
    on_both_claudes, steps,
};
use serde_json::{Value, json};

on_both_claudes!(
    every_turn_costs_what_it_costs,
    ten_turns_sum_up_to_the_sessions_total,
    sub_agents_are_included,
    estimates_are_made_from_earlier_turns,
);

fn cost(turn: &Value) -> f64 {
    turn["cost_usd"]
        .as_f64()
        .unwrap_or_else(|| panic!("no cost: {turn:#}"))
}

#[track_caller]
fn assert_money(found: f64, expected: f64) {
    assert!(
        (found - expected).abs() < 2.5e-6,
        "${found}, expected ${expected}"
    );
}

/// A dear turn first, so that a running total cannot pass for the cost of a cheap one.
struct Prices {
    cheap: f64,
    per_output: f64,
}

impl Prices {
    /// Two turns: 100,000 tokens of output, then 100; ten of input each.
    #[track_caller]
    fn learn(story: &mut Chronicle) -> Self {
        let first = story.scripted(Continued::Started, &answering(1, 10, 100_000), &[]);
        let second = story.scripted(Continued::Resumed, &answering(2, 10, 100), &[]);
        let (dear, cheap) = (cost(&first), cost(&second));
        assert!(
            dear > 0.5 && cheap > 0.0 && cheap < dear / 500.0,
            "{dear} {cheap}"
        );
        Self {
            cheap,
            per_output: (dear - cheap) / 99_900.0,
        }
    }

    fn of(&self, output: u32) -> f64 {
        self.cheap + self.per_output * (f64::from(output) - 100.0)
    }
}

fn every_turn_costs_what_it_costs(world: World) {
    let mut story = Chronicle::new(world);
    let prices = Prices::learn(&mut story);
    // One call that is paid for, then a failure; the session is cut back, and with it what it
    // remembers of its cost.
    let tool = json!({"tools": [{"name": "Read", "input": {"file_path": "none"}}]});
    let script = json!([costing(10, 50_000, &tool), {"status": 400}]);
    let failed = story.fails(&steps(3, &script), &[]);
    assert_money(cost(&failed), prices.of(50_000));
    let after = story.scripted(Continued::Resumed, &answering(4, 10, 100), &[]);
    assert_money(cost(&after), prices.cheap);
    let retold = Continued::Reseeded("fresh_requested");
    let fresh = story.scripted(retold, &answering(5, 10, 100), &["--fresh-session"]);
    assert_money(cost(&fresh), prices.cheap);

    let shown = story.world.run(&["show", "k", "--json"]).ok().json();
    let turns = shown["turns"].as_array().unwrap();
    let sum: f64 = turns.iter().map(cost).sum();
    assert_eq!(turns.len(), 5);
    assert_money(shown["conversation"]["cost_usd"].as_f64().unwrap(), sum);
}

/// Rising, so that none can pass for another; none is counted twice.
fn ten_turns_sum_up_to_the_sessions_total(world: World) {
    let mut story = Chronicle::new(world);
    let prices = Prices::learn(&mut story);
    let (mut tokens, mut dollars) = (0, 0.0);
    for n in 3..=12 {
        let output = 1000 * n as u32;
        let script = answering(n, 10, output.into());
        let turn = story.scripted(Continued::Resumed, &script, &[]);
        assert_money(cost(&turn), prices.of(output));
        tokens += turn["usage"]["output"].as_u64().unwrap();
        dollars += cost(&turn);
    }
    assert_eq!(tokens, (3..=12).map(|n| 1000 * n).sum::<u64>());
    let shown = story.world.run(&["show", "k", "--json"]).ok().json();
    let learned: f64 = prices.of(100_000) + prices.cheap;
    assert_money(
        shown["conversation"]["cost_usd"].as_f64().unwrap(),
        dollars + learned,
    );
}

fn sub_agents_are_included(world: World) {
    let mut story = Chronicle::new(world);
    let prices = Prices::learn(&mut story);
    let job = json!([costing(10, 70_000, &json!({"text": "the sub job is done"}))]);
    let call = json!({"tools": [{"name": "Agent", "input": {
        "description": "sub job", "subagent_type": "general-purpose",
        "run_in_background": false, "prompt": format!("do it #j:{job}#"),
    }}]});
    let last = costing(10, 100, &json!({"text": answer(3)}));
    let script = steps(3, &json!([costing(10, 100, &call), last]));
    let turn = story.scripted(Continued::Resumed, &script, &[]);
    assert_eq!(turn["usage"]["input"], 30, "{turn:#}");
    assert_eq!(turn["usage"]["output"], 70_200, "{turn:#}");
    assert_money(cost(&turn), 2.0 * prices.cheap + prices.of(70_000));
    let after = story.scripted(Continued::Resumed, &answering(4, 10, 100), &[]);
    assert_money(cost(&after), prices.cheap);
}

/// A script that answers with the word of turn `n` for so many tokens: new, cached, of output.
fn using(n: usize, (new, cached, output): (u64, u64, u64)) -> String {
    let mut step = costing(new, output, &json!({"text": answer(n)}));
    step["usage"]["cache_read_input_tokens"] = cached.into();
    steps(n, &json!([step]))
}

/// What would be: the next turn, a resumed one without its session, a re-told one with it. Each is
/// what those tokens really cost, by the list price of `sonnet` that the CLI charges.
fn estimates_are_made_from_earlier_turns(world: World) {
    let mut story = Chronicle::new(world);
    let mut say = |how, tokens| {
        let script = using(story.next(), tokens);
        let turn = story.scripted(how, &script, &[]);
        let next = story.world.run(&["explain", "k", "--next", "--json"]);
        (turn, next.ok().json()["cost_estimate_usd"].clone())
    };
    let (first, next) = say(Continued::Started, (10_000, 0, 100));
    let (new, cached) = if first["version"].as_str().unwrap().contains(CLAUDE_OLD) {
        (3e-6, 0.3e-6)
    } else {
        (2e-6, 0.1e-6)
    };
    assert_eq!(next, Value::Null, "nothing is known of a cache");
    say(Continued::Resumed, (500, 10_000, 4_000));
    let (third, next) = say(Continued::Resumed, (500, 9_000, 400));
    let summary = third["summary"].as_str().unwrap();
    let fresh = cost(&third) + 9_000.0 * (new - cached);
    assert!(
        summary.contains(&format!("${:.3} (fresh ≈ ${fresh:.3})", cost(&third))),
        "${fresh}: {summary}"
    );
    // An answer of 1,500 tokens, the session read from the cache, and a few words around it.
    let held = third["context"]["used"].as_f64().unwrap();
    let least = held * cached + 1_500.0 * 5.0 * new;
    let next = next.as_f64().unwrap();
    assert!(
        (least..least + 100.0 * new).contains(&next),
        "${next}, at least ${least}"
    );
    let other = ["explain", "k", "--next", "--json", "-m", "haiku"];
    let other = story.world.run(&other).ok().json();
    assert_eq!(other["cost_estimate_usd"], Value::Null, "another model");
    std::fs::remove_file(story.session_file()).unwrap();
    story.world.without_snapshots();
    let gone = story.world.run(&["explain", "k", "--next"]).ok().stdout;
    let anew = held * new + 1_500.0 * 5.0 * new;
    assert!(
        gone.contains(&format!(
            "costs     ≈ ${anew:.3}, by what earlier turns cost"
        )),
        "${anew}: {gone}"
    );
    let retold = Continued::Reseeded("session_missing");
    let script = using(story.next(), (12_000, 0, 400));
    let fourth = story.scripted(retold, &script, &[]);
    let page = story.world.run(&["explain", "k"]).ok().stdout;
    let (cost, resumed) = (cost(&fourth), cost(&fourth) - held * (new - cached));
    let line = format!("cost      ${cost:.3}, a resume would have been ≈ ${resumed:.3}; 12");
    assert!(page.contains(&line), "{line}: {page}");
    assert!(!fourth["summary"].as_str().unwrap().contains("fresh"));
}

/// Without a store that knows the binary: it is proven before its first turn.
fn proven_on_first_sight(version: &str) {
    let Some(bin) = claude(version) else { return };
    let mut world = World::new(env!("CARGO_BIN_EXE_rejoin"));
    world.use_claude(&bin);
    let mut story = Chronicle::new(world);
    Prices::learn(&mut story);
    // The proof has a model, a home and a folder of its own.
    assert_eq!(story.world.model.requests().len(), 2);
    assert_eq!(story.world.sessions().len(), 1);
}

#[test]
fn claude_2_1_197_is_proven_on_first_sight() {
    proven_on_first_sight(CLAUDE_OLD);
}

#[test]
fn claude_2_1_325_is_proven_on_first_sight() {
    proven_on_first_sight(CLAUDE_NEW);
}

/// 2.1.325 counts from zero in a session that 2.1.197 wrote: the dear turns before are not its own.
#[test]
fn an_upgraded_binary_charges_only_its_own_turn() {
    let rejoin = env!("CARGO_BIN_EXE_rejoin");
    let (Some(world), Some(new)) = (World::claude(rejoin, CLAUDE_OLD), claude(CLAUDE_NEW)) else {
        return;
    };
    let mut story = Chronicle::new(world);
    story.scripted(Continued::Started, &answering(1, 10, 50_000), &[]);
    story.world.use_claude(&new);
    let turn = |story: &mut Chronicle, output| {
        let script = answering(story.next(), 10, output);
        cost(&story.scripted(Continued::Resumed, &script, &[]))
    };
    let dear = turn(&mut story, 100_000);
    assert_money(turn(&mut story, 100_000), dear);
    assert!(dear > 1e3 * turn(&mut story, 1) / 2.0);
}
