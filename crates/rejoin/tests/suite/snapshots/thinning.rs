//! Streamed pieces of texts: removed from succeeded turns after their retention, never from others.

use rejoin_model::Step;
use rejoin_store::Store;
use rejoin_testkit::{CLAUDE_NEW, Model, World, slowly, wait_for};
use serde_json::Value;

use super::REJOIN;

/// Number of pieces and of whole texts of a turn.
fn texts(world: &World, turn: &Value) -> (usize, usize) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let id = turn["turn_id"].as_str().unwrap().parse().unwrap();
    let events = runtime.block_on(async {
        let store = Store::open_sqlite(&world.data().join("rejoin.db"))
            .await
            .unwrap();
        let mut read = store.read().await.unwrap();
        read.events().of_turn(id, 0, 1_000).await.unwrap()
    });
    let of = |kind: &str| events.iter().filter(|e| e.body.kind() == kind).count();
    (of("text.delta"), of("text"))
}

#[test]
fn pieces_of_succeeded_turns_are_removed() {
    let model = || {
        let part = slowly("an answer in many pieces that ends with UWORD1", 10);
        let slow = slowly("an answer that nobody waits for, which is cut off", 40);
        Model::scripted([
            ("pieces", vec![part]),
            ("cut", vec![slow]),
            ("two", vec![Step::text("second")]),
        ])
    };
    let Some(mut world) = World::claude_with(REJOIN, CLAUDE_NEW, model) else {
        return;
    };
    let flags = ["-m", "sonnet"];
    let whole = world.send(1, "#s:pieces", &flags).ok().json();
    let mut running = world.start(2, "#s:cut", &flags);
    wait_for("some pieces", 60, || {
        let shown = world.run(&["show", "k", "--json"]).ok().json();
        let turn = shown["turns"].as_array()?.last()?.clone();
        (turn["status"] == "running" && texts(&world, &turn).0 > 2).then_some(())
    });
    world.run(&["cancel", "k"]).ok();
    running.wait().unwrap();
    let shown = world.run(&["show", "k", "--json"]).ok().json();
    let cut = shown["turns"].as_array().unwrap().last().unwrap().clone();
    let (pieces, left) = (texts(&world, &whole), texts(&world, &cut));
    assert!(pieces.0 > 2 && pieces.1 == 1, "{pieces:?}");

    let kept = world.run(&["sweep", "--json"]).ok().json();
    assert_eq!(kept["thinned"]["events"], 0, "{kept}");
    world.set("REJOIN_RETENTION_DELTAS", "0s");
    let plan = world.run(&["sweep", "--dry-run", "--json"]).ok().json();
    assert_eq!(texts(&world, &whole), pieces);
    let swept = world.run(&["sweep", "--json"]).ok().json();
    assert_eq!(plan["thinned"], swept["thinned"]);
    assert_eq!(swept["thinned"]["turns"], 1, "{swept}");
    assert_eq!(swept["thinned"]["events"], pieces.0 - 1);
    // The first one has the time of the first text.
    assert_eq!(texts(&world, &whole), (1, 1));
    assert_eq!(texts(&world, &cut), left);
    let again = world.run(&["sweep", "--json"]).ok().json();
    assert_eq!(again["thinned"]["turns"], 0, "{again}");

    let after = world.run(&["show", "k", "--json"]).ok().json();
    assert_eq!(after["messages"], shown["messages"]);
    let partial = |shown: &Value| shown["turns"][1]["partial_text"].clone();
    assert_eq!(partial(&after), partial(&shown));
    let turn = world.send(3, "#s:two", &flags).ok().json();
    assert_eq!(turn["verdict"], "resumed", "{turn:#}");
}
