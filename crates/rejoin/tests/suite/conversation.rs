//! A conversation over many separate `rejoin send` calls.

use rejoin_testkit::{CLAUDE_OLD, World, assert_shown, on_every_cli, said, user};
use serde_json::Value;

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

/// What a resumed turn is told, so that an old question is not answered again.
pub(super) const ANTI_ECHO: &str = "Questions asked earlier in this session have been dealt with; the message that follows is the one to act on.";

on_every_cli!(turns_resume);
rejoin_testkit::on_cli!(claude_2_1_20, CLAUDE_20, turns_resume);

#[expect(clippy::needless_pass_by_value, reason = "as every test on a world")]
pub(super) fn turns_resume(world: World) {
    let model = world.cli.models()[0];
    let mut bytes = vec![];
    for n in 1..=5 {
        let turn = world.say(n, &["-m", model]);
        let (verdict, reason) = if n == 1 {
            ("started", Value::from("first_turn"))
        } else {
            ("resumed", Value::Null)
        };
        assert_eq!(
            (&turn["verdict"], &turn["reason"]),
            (&verdict.into(), &reason)
        );
        assert_eq!(turn["status"], "succeeded");
        assert_eq!(turn["sent"]["resumed"], 2 * (n - 1));
        assert_eq!(turn["attempts"].as_array().unwrap().len(), 1);
        let mut words = said(1..n);
        words.push(user(n));
        assert_shown(&world.model.last(), &words);
        // nothing was asked, so nothing is said about questions.
        let history = world.model.last().history().to_string();
        assert_eq!(history.matches(ANTI_ECHO).count(), 0, "{history}");
        bytes.push(turn["sent"]["bytes"].as_u64().unwrap());
        assert!(turn["usage"]["output"].as_u64().unwrap() > 0, "{turn}");
        assert_eq!(
            turn["cost_usd"].is_null(),
            !world.cli.knows_money(),
            "{turn}"
        );
    }
    // prompt bytes do not grow.
    assert!(bytes[1..].iter().all(|b| *b == bytes[1]), "{bytes:?}");
    assert_eq!(world.leftovers(), []);
}

fn argv(turn: &Value) -> String {
    let args = turn["command"].as_array().unwrap().iter();
    args.map(|a| a.as_str().unwrap())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Promise 7: a flag of one turn adds to what is denied, and lifts nothing.
#[test]
fn an_earlier_denial_is_not_lifted_by_a_later_one() {
    let Some(world) = World::claude(REJOIN, CLAUDE_OLD) else {
        return;
    };
    world.say(1, &["-m", "sonnet", "--deny-tools", "Bash"]);
    let both = argv(&world.say(2, &["--deny-tools", "WebFetch"]));
    let denied = both.split("--disallowedTools").nth(1).unwrap();
    assert!(
        denied.contains("Bash") && denied.contains("WebFetch"),
        "{both}"
    );
    let own = argv(&world.say(3, &[]));
    assert!(own.contains("Bash") && !own.contains("WebFetch"), "{own}");
}

/// Promise 7: what came with a message that was not kept is not kept either.
#[test]
fn a_message_that_was_taken_back_grants_nothing() {
    let Some(world) = World::claude(REJOIN, CLAUDE_OLD) else {
        return;
    };
    world.say(1, &["-a", "demo"]);
    let held = world.send(
        2,
        "#s:a2",
        &["-a", "claude", "--tools", "Bash", "--no-reseed"],
    );
    assert_eq!(held.code, 5, "{held:?}");
    let plain = argv(&world.say(3, &["-a", "claude"]));
    assert!(
        !plain.contains("--tools") && !plain.contains("--allowedTools"),
        "{plain}"
    );
}

/// standing text is told once, and again only when it changed; by a command as over HTTP, here and
/// through a daemon.
#[test]
fn instructions_of_a_command_are_told_once() {
    let Some(world) = World::claude(REJOIN, CLAUDE_OLD) else {
        return;
    };
    let shown = |word: &str| {
        let history = world.model.last().history().to_string();
        history.matches(word).count()
    };
    let say = |n: usize, text: &str| world.say(n, &["-m", "sonnet", "--instructions", text]);
    say(1, "Always be kind: rule-alpha.");
    assert_eq!(shown("rule-alpha"), 1);
    assert_eq!(say(2, "Always be kind: rule-alpha.")["verdict"], "resumed");
    assert_eq!(shown("rule-alpha"), 1);
    let daemon = world.serve(&[]);
    say(3, "Always be kind: rule-alpha.");
    assert_eq!(shown("rule-alpha"), 1);
    say(4, "Be brief: rule-beta.");
    assert_eq!((shown("rule-alpha"), shown("rule-beta")), (1, 1));
    assert_eq!(daemon.stop(), 0);
}
