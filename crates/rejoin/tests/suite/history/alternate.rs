//! Agents that take turns.

use rejoin_testkit::{CLAUDE_325, CODEX_166, Cli, Model, World, answer, assert_shown, user};
use serde_json::{Value, json};

/// From the second round on every turn is resumed and caught up on what the other said; what is sent
/// does not grow.
#[test]
fn two_agents_alternate_for_ten_turns() {
    let clis: [&'static dyn Cli; 2] = [&CLAUDE_325, &CODEX_166];
    let rejoin = env!("CARGO_BIN_EXE_rejoin");
    let Some(world) = World::of_all(rejoin, &clis, Model::start()) else {
        return;
    };
    let mut words = vec![];
    let mut bytes: Vec<(String, u64)> = vec![];
    for n in 11..=20 {
        let agent = clis[n % 2].agent();
        let turn = world.say(n, &["-a", agent]);
        words.push(user(n));
        assert_shown(&world.model.last(), &words);
        words.push(answer(n));
        if n >= 13 {
            assert_eq!(
                (
                    &turn["verdict"],
                    &turn["reason"],
                    &turn["sent"]["caught_up"]
                ),
                (&json!("resumed"), &Value::Null, &json!(2)),
                "{turn:#}"
            );
            let told = format!("caught up on 2 messages by {}", clis[(n + 1) % 2].agent());
            assert!(
                turn["summary"].as_str().unwrap().contains(&told),
                "{turn:#}"
            );
            bytes.push((agent.to_owned(), turn["sent"]["bytes"].as_u64().unwrap()));
        }
    }
    // Each word is as long as any other; only the numbers of the two messages get another digit.
    for agent in clis.map(Cli::agent) {
        let own = bytes.iter().filter(|(a, _)| a == agent);
        let own: Vec<u64> = own.map(|(_, b)| *b).collect();
        let growth = own.iter().max().unwrap() - own.iter().min().unwrap();
        assert!(own.len() == 4 && growth <= 2, "{bytes:?}");
    }
}
