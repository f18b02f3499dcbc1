//! `rejoin costs`: sums of a period, on the command line and over HTTP.

use rejoin_testkit::{CLAUDE_NEW, World, sql};
use serde_json::Value;

use super::terminal::{steady, world};

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

fn costs(world: &World, more: &[&str]) -> Value {
    let args = [&["costs", "--json"], more].concat();
    world.run(&args).ok().json()
}

fn row<'a>(costs: &'a Value, name: &str) -> &'a Value {
    let mut rows = costs["rows"].as_array().unwrap().iter();
    rows.find(|row| row["name"] == name)
        .unwrap_or_else(|| panic!("{name} in {costs}"))
}

/// The sum is that of the turns, by agent, model, folder and day; an unknown cost makes it a lower bound.
#[test]
fn costs_are_those_of_the_turns() {
    let Some(world) = World::claude(REJOIN, CLAUDE_NEW) else {
        return;
    };
    let world = steady(world);
    let spent: f64 = (1..=2)
        .map(|n| {
            world.say(n, &["-m", "sonnet"])["cost_usd"]
                .as_f64()
                .unwrap()
        })
        .sum();
    world
        .run(&["send", "-k", "k", "-a", "demo", "for nothing"])
        .ok();
    let all = costs(&world, &["--by", "agent"]);
    let near = |found: &Value| (found.as_f64().unwrap() - spent).abs() < 1e-6;
    assert!(near(&all["total"]["cost_usd"]), "{all} {spent}");
    assert_eq!(
        (&all["total"]["turns"], &all["total"]["unknown"]),
        (&3.into(), &0.into())
    );
    assert!(near(&row(&all, "claude")["cost_usd"]), "{all}");
    assert_eq!(row(&all, "demo")["cost_usd"], 0.0);
    assert_eq!(
        all["rows"][0]["name"], "claude",
        "the highest cost first: {all}"
    );
    let folder = world.work().canonicalize().unwrap();
    assert_eq!(
        row(
            &costs(&world, &["--by", "folder"]),
            folder.to_str().unwrap()
        )["turns"],
        3
    );
    let models = costs(&world, &["--by", "model"]);
    assert_eq!(row(&models, "demo")["turns"], 1, "{models}");
    let days = costs(&world, &[]);
    assert_eq!(days["by"], "day");
    assert_eq!(days["rows"].as_array().unwrap().len(), 1, "{days}");
    assert_eq!(
        days["rows"][0]["name"],
        days["until"].as_str().unwrap()[..10]
    );

    let page = world.run(&["costs", "--by", "agent"]).ok().stdout;
    assert!(
        page.contains(&"█".repeat(24)) && page.contains("total"),
        "{page}"
    );
    assert!(!page.contains("at least"), "{page}");
    sql(
        &world.data().join("rejoin.db"),
        "update turns set cost = null where agent = 'demo'",
    );
    let page = world.run(&["costs", "--by", "agent"]).ok().stdout;
    assert!(
        page.contains("unknown") && page.contains("at least"),
        "{page}"
    );

    // The same over HTTP, and a refusal in words.
    let daemon = world.serve(&[]);
    let over = daemon.get("/api/costs?by=agent").json();
    assert_eq!(
        over["rows"],
        costs(&world, &["--by", "agent", "--hub", "none"])["rows"]
    );
    for (query, code) in [
        ("by=colour", 400),
        ("since=yesterday", 400),
        ("zone=Nowhere/None", 400),
    ] {
        assert_eq!(
            daemon.get(&format!("/api/costs?{query}")).status,
            code,
            "{query}"
        );
    }
    assert_eq!(daemon.stop(), 0);
}

/// A turn of ten days ago is in the sum of thirty days, and not in that of a week. A turn that never ran is in none.
#[test]
fn the_period_bounds_the_sum() {
    let world = world();
    for n in 1..=3 {
        world
            .run(&["send", "-k", "k", "-a", "demo", &format!("UWORD{n}")])
            .ok();
    }
    let ten_days = 10 * 86_400_000_000_i64;
    sql(
        &world.data().join("rejoin.db"),
        &format!(
            "update turns set created_at = created_at - {ten_days} where id = (select min(id) from turns)"
        ),
    );
    assert_eq!(costs(&world, &[])["total"]["turns"], 2);
    let month = costs(&world, &["--since", "30d"]);
    assert_eq!(month["total"]["turns"], 3);
    let days: Vec<&str> = (month["rows"].as_array().unwrap().iter())
        .map(|row| row["name"].as_str().unwrap())
        .collect();
    assert_eq!(days.len(), 2);
    assert!(days[0] < days[1], "{days:?}");
    assert_ne!(
        world
            .run(&["send", "-k", "k", "-a", "claude", "not installed"])
            .code,
        0
    );
    assert_eq!(costs(&world, &[])["total"]["turns"], 2);

    // By dates, which the page names.
    let today = month["until"].as_str().unwrap()[..10].to_owned();
    let of_today = costs(&world, &["--since", &today]);
    assert_eq!(of_today["total"]["turns"], 2);
    let past = costs(&world, &["--since", "30d", "--until", days[0]]);
    assert_eq!(
        past["total"]["turns"], 0,
        "the ids of the turns are of today: {past}"
    );
    let all = costs(&world, &["--since", "30d", "--until", &today]);
    assert_eq!(all["total"]["turns"], 3, "{all}");
    let page = world.run(&["costs", "--since", days[0], "--until", &today]);
    let head = format!("{} to {today}, by day", days[0]);
    assert_eq!(page.ok().stdout.lines().next(), Some(head.as_str()));
    let wrong = world.run(&["costs", "--since", &today, "--until", days[0]]);
    assert_eq!(wrong.code, 2, "{wrong:?}");
    let none = world.run(&["costs", "--since", "1ms"]).ok();
    assert!(
        none.stderr.contains("no turn ran in this period"),
        "{none:?}"
    );
    for (wrong, word) in [
        (["--since", "soon"], "a time is a number"),
        (["--by", "colour"], "agent, folder or model"),
    ] {
        let done = world.run(&["costs", wrong[0], wrong[1]]);
        assert!(done.code == 2 && done.stderr.contains(word), "{done:?}");
    }
}
