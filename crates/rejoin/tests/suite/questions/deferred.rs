//! A question that outlives the process that asked it: put off after a while, kept with its session, and
//! gone on with when it is answered, wherever that is.

use rejoin_model::{Step, ToolCall};
use rejoin_testkit::{CLAUDE_NEW, CLAUDE_OLD, Model, World, kill, texts, user, wait_for};
use serde_json::{Value, json};

use crate::suite::terminal::{Terminal, steady};

use super::{REJOIN, answer, asking, asks, ended, inbox, only, quiet};

/// Places at which whoever follows such a turn is killed: while it is put off, and while it goes on.
pub(crate) const POINTS: [&str; 4] = [
    "before_deferred",
    "after_deferred",
    "before_again",
    "after_again",
];

fn asks_for(what: &str) -> ToolCall {
    let options =
        json!([{"label": "Yes", "description": "y"}, {"label": "No", "description": "n"}]);
    let question =
        json!({"question": what, "header": "Q", "multiSelect": false, "options": options});
    ToolCall::new("AskUserQuestion", json!({"questions": [question]}))
}

fn model() -> Model {
    let ask = |what| Step {
        tools: vec![asks_for(what)],
        ..Step::text(format!("Before: {what}"))
    };
    let both = Step {
        tools: vec![asks_for("This one?"), asks_for("That one?")],
        ..Step::default()
    };
    Model::scripted([
        (
            "thrice",
            vec![ask("One?"), ask("Two?"), Step::text("Done.")],
        ),
        ("both", vec![both, Step::text("Both heard.")]),
    ])
}

/// Questions are put off after a second.
fn world(version: &str) -> Option<World> {
    let mut world = asking(World::claude_with(REJOIN, version, model)?);
    world.set("REJOIN_QUESTIONS_DEFER_AFTER", "1s");
    Some(world)
}

fn worlds() -> impl Iterator<Item = World> {
    [CLAUDE_OLD, CLAUDE_NEW].into_iter().filter_map(world)
}

fn attempts(turn: &Value) -> Vec<(&str, &str)> {
    let all = turn["attempts"].as_array().unwrap().iter();
    all.map(|a| {
        (
            a["verdict"].as_str().unwrap(),
            a["status"].as_str().unwrap(),
        )
    })
    .collect()
}

/// The turn waits, and nothing of it runs.
#[track_caller]
fn rests(world: &World, times: usize) -> Value {
    let turn = wait_for("the question to be put off", 30, || {
        let turn = world.last_turn();
        let put_off = attempts(&turn)
            .iter()
            .filter(|(_, s)| *s == "deferred")
            .count();
        (put_off == times && turn["status"] == "waiting").then_some(turn)
    });
    only(&turn);
    turn
}

/// How often the model was told something, at the end.
fn heard(world: &World, words: &str) -> usize {
    texts(&world.model.last()).matches(words).count()
}

/// What the model was asked for the sake of a script.
fn asked(world: &World, script: &str) -> usize {
    let requests = world.model.requests();
    requests
        .iter()
        .filter(|r| r.script.as_deref() == Some(script))
        .count()
}

/// The question and its answer, as the model sees them: one call, one result.
#[track_caller]
fn assert_one_pair(world: &World) {
    let body = world.model.last().body.to_string();
    assert_eq!(body.matches(r#""type":"tool_use""#).count(), 1, "{body}");
    assert_eq!(body.matches(r#""type":"tool_result""#).count(), 1, "{body}");
    assert_eq!(heard(world, r#""Which colour?"="Blue""#), 1, "{body}");
}

#[test]
fn an_answer_in_time_is_heard_by_the_process_that_asked() {
    for mut world in worlds() {
        world.set("REJOIN_QUESTIONS_DEFER_AFTER", "1h");
        asks(&world, "#s:ask please", &["-m", "sonnet"]);
        // A hook holds it: the CLI itself has not asked yet.
        assert!(!world.printed("control_request"));
        answer(&world, &["2", "1,3"]).ok();
        let turn = ended(&world);
        assert_eq!(attempts(&turn), [("started", "succeeded")], "{turn}");
        assert_one_pair(&world);
        quiet(&world);
    }
}

/// A daemon that may run one agent runs others while a question is put off, and goes on with it afterwards.
#[test]
fn a_question_that_is_put_off_takes_no_place() {
    let Some(mut world) = world(CLAUDE_NEW) else {
        return;
    };
    world.set("REJOIN_SERVE_MAX_RUNNING", "1");
    let daemon = world.serve(&[]);
    let here = ("workdir", json!(world.work()));
    daemon.say("k", "#s:ask please", std::slice::from_ref(&here));
    let asked = rests(&world, 1);
    let other = daemon.say("other", "hello", &[here, ("agent", json!("demo"))]);
    assert_eq!(other["status"], "succeeded", "{other}");
    let id = asked["turn_id"].as_str().unwrap();
    let answered = json!({"answers": {"1": ["Blue"], "2": ["S", "L"]}});
    daemon
        .post(&format!("/api/turns/{id}/answer"), &answered)
        .ok();
    let turn = wait_for("the turn to go on", 60, || {
        let turn = daemon.get(&format!("/api/turns/{id}")).ok();
        (turn["status"] == "succeeded").then_some(turn)
    });
    assert_eq!(turn["text"], "I need to ask.\n\nThanks for the answer.");
    assert_eq!(daemon.stop(), 0);
    quiet(&world);
}

/// Promises 1, 3, 4, 8: the daemon is killed, the CLI is gone, its home is empty; answered over HTTP,
/// the turn goes on, everything is shown once, and the next turn resumes.
#[test]
fn a_question_outlives_daemon_cli_and_home() {
    for world in worlds() {
        let first = world.say(1, &["-m", "sonnet"]);
        assert_eq!(first["saved"], "stored", "{first}");
        let daemon = world.serve(&[]);
        daemon.say("k", &format!("{} #s:ask please", user(2)), &[]);
        rests(&world, 1);
        // Killed before that, the daemon leaves it to the next one.
        wait_for("the folder of the run to be gone", 20, || {
            world.turn_folders().is_empty().then_some(())
        });
        daemon.kill();
        quiet(&world);
        std::fs::remove_dir_all(world.home().join(".claude")).unwrap();
        let daemon = world.serve(&[]);
        let waiting = daemon.get("/api/inbox").ok();
        let printed = world.run(&["--hub", "none", "inbox", "--json"]).ok();
        assert_eq!(printed.json(), waiting, "one document, one set of keys");
        assert_eq!(waiting["inbox"], waiting["turns"]);
        let waiting = &waiting["turns"][0];
        assert_eq!(waiting["status"], "waiting", "{waiting}");
        let to = format!("/api/turns/{}/answer", waiting["turn_id"].as_str().unwrap());
        daemon
            .post(&to, &json!({"answers": {"1": ["Blue"], "2": ["S", "L"]}}))
            .ok();
        let turn = ended(&world);
        assert_eq!(turn["status"], "succeeded", "{turn}");
        assert_eq!(turn["verdict"], "resumed", "{turn}");
        let both = [("resumed", "deferred"), ("restored", "succeeded")];
        assert_eq!(attempts(&turn), both, "{turn}");
        assert_eq!(turn["text"], "I need to ask.\n\nThanks for the answer.");
        assert_one_pair(&world);
        for n in [1, 2] {
            assert_eq!(heard(&world, &user(n)), 1);
        }
        assert_eq!(asked(&world, "ask"), 2);
        // Of both runs.
        assert_eq!(turn["usage"]["input"], 20, "{turn}");
        assert!(turn["cost_usd"].as_f64().unwrap() > first["cost_usd"].as_f64().unwrap());
        assert_eq!(daemon.stop(), 0);
        let next = world.say(3, &[]);
        assert_eq!(next["verdict"], "resumed", "{next}");
        for n in 1..=3 {
            assert_eq!(heard(&world, &user(n)), 1, "{n}");
        }
        quiet(&world);
    }
}

/// Asked in the first turn of a conversation, and asked again after the answer.
#[test]
fn it_may_ask_again() {
    for world in worlds() {
        asks(&world, "#s:thrice please", &["-m", "sonnet"]);
        let turn = rests(&world, 1);
        assert_eq!(only(&turn)["questions"][0]["text"], "One?");
        quiet(&world);
        answer(&world, &["1"]).ok();
        let turn = rests(&world, 2);
        assert_eq!(only(&turn)["questions"][0]["text"], "Two?");
        quiet(&world);
        // Whatever was lost of it in between.
        std::fs::remove_dir_all(world.home().join(".claude")).unwrap();
        answer(&world, &["deny", "--text", "ask somebody else"]).ok();
        let turn = ended(&world);
        let all = [
            ("started", "deferred"),
            ("resumed", "deferred"),
            ("restored", "succeeded"),
        ];
        assert_eq!(attempts(&turn), all, "{turn}");
        assert_eq!(turn["text"], "Before: One?\n\nBefore: Two?\n\nDone.");
        assert_eq!(turn["denied"].as_array().unwrap().len(), 1, "{turn}");
        assert_eq!(heard(&world, r#""One?"="Yes""#), 1);
        assert_eq!(heard(&world, "ask somebody else"), 1);
        assert_eq!(turn["usage"]["input"], 30, "{turn}");
        assert_eq!(asked(&world, "thrice"), 3);
        let next = world.say(2, &[]);
        assert_eq!(next["verdict"], "resumed", "{next}");
        quiet(&world);
    }
}

/// The CLI keeps only one of several calls that are put off: so none is.
#[test]
fn of_two_questions_at_once_none_is_lost() {
    for world in worlds() {
        asks(&world, "#s:both please", &["-m", "sonnet"]);
        // The CLI itself asks, as soon as it wants to know.
        wait_for("the CLI to ask", 30, || {
            world.printed("can_use_tool").then_some(())
        });
        for _ in 0..2 {
            wait_for("a question", 30, || {
                (!inbox(&world).is_empty()).then_some(())
            });
            answer(&world, &["1"]).ok();
        }
        let turn = ended(&world);
        assert_eq!(attempts(&turn), [("started", "succeeded")], "{turn}");
        assert_eq!(heard(&world, r#""This one?"="Yes""#), 1);
        assert_eq!(heard(&world, r#""That one?"="Yes""#), 1);
        quiet(&world);
    }
}

#[test]
fn what_was_put_off_can_be_cancelled() {
    for world in worlds() {
        world.say(1, &["-m", "sonnet"]);
        let session = world.sessions().remove(0);
        let before = std::fs::read(&session).unwrap();
        asks(&world, "#s:ask please", &[]);
        rests(&world, 1);
        world.run(&["cancel", "k"]).ok();
        let turn = ended(&world);
        assert_eq!(turn["status"], "cancelled", "{turn}");
        let summary = turn["summary"].as_str().unwrap();
        assert!(summary.contains("no tool ran"), "{summary}");
        assert!(inbox(&world).is_empty());
        assert_eq!(std::fs::read(&session).unwrap(), before);
        let next = world.say(2, &[]);
        assert_eq!(next["verdict"], "resumed", "{next}");
        quiet(&world);
    }
}

/// Whoever sits at the terminal may take their time, or leave: nothing looks different there.
#[test]
fn a_person_at_the_terminal_answers_late_or_cancels() {
    let Some(mut world) = world(CLAUDE_NEW).map(steady) else {
        return;
    };
    world.unset("REJOIN_QUESTIONS_ASK");
    let Some(terminal) = Terminal::open(&world) else {
        return;
    };
    terminal.keys("rejoin send -k k -m sonnet '#s:ask please'");
    terminal.wait_until(|screen| screen.contains("or deny:"));
    rests(&world, 1);
    terminal.keys("2");
    let screen = terminal.wait_until(|screen| screen.contains("Which sizes?"));
    assert!(!screen.contains("nobody answered"), "{screen}");
    terminal.keys("1,3");
    let screen = terminal.wait_until(|screen| screen.trim_end().ends_with("\n$"));
    assert!(screen.contains("Thanks for the answer."), "{screen}");
    let both = [("started", "deferred"), ("resumed", "succeeded")];
    assert_eq!(attempts(&world.last_turn()), both);
    assert_one_pair(&world);

    terminal.clear();
    terminal.keys("rejoin send -k k '#s:ask again'");
    terminal.wait_until(|screen| screen.contains("or deny:"));
    rests(&world, 1);
    terminal.press(&["C-c"]);
    terminal.wait_until(|screen| screen.trim_end().ends_with("\n$"));
    assert_eq!(world.last_turn()["status"], "cancelled");
}

/// The same store, another machine: its home is empty, and whoever asked is not heard of there.
#[test]
fn it_goes_on_on_another_machine() {
    let Some(mut world) = world(CLAUDE_NEW).and_then(World::on_server) else {
        return;
    };
    asks(&world, "#s:ask please", &["-m", "sonnet"]);
    rests(&world, 1);
    quiet(&world);
    world.go_to("elsewhere");
    world.set("REJOIN_FAKE_MACHINE", "elsewhere");
    answer(&world, &["2", "1,3"]).ok();
    let turn = ended(&world);
    let both = [("started", "deferred"), ("restored", "succeeded")];
    assert_eq!(attempts(&turn), both, "{turn}");
    assert_one_pair(&world);
    let next = world.say(2, &[]);
    assert_eq!(next["verdict"], "resumed", "{next}");
    quiet(&world);
}

/// Without the session, and without a snapshot of it, it is as if its process had been killed.
#[test]
fn without_its_session_the_answer_is_a_message() {
    for mut world in worlds() {
        world.without_snapshots();
        asks(&world, "#s:ask please", &["-m", "sonnet"]);
        rests(&world, 1);
        std::fs::remove_dir_all(world.home().join(".claude")).unwrap();
        answer(&world, &["2", "1,3"]).ok();
        let turn = ended(&world);
        assert_eq!(turn["status"], "lost", "{turn}");
        assert_eq!(only(&turn)["state"], "gone", "{turn}");
        let turn = answer(&world, &["k", "2", "1,3"]).ok().json();
        assert_eq!(turn["status"], "succeeded", "{turn}");
        assert_eq!(heard(&world, "Which colour?\nMy answer: Blue"), 1);
        quiet(&world);
    }
}

/// Promises 3 and 4 at each of them: nothing is lost, and the model is asked nothing twice.
#[test]
fn whoever_follows_may_be_killed_at_every_point() {
    for (n, point) in POINTS.into_iter().enumerate() {
        let version = [CLAUDE_NEW, CLAUDE_OLD][n % 2];
        let Some(mut world) = world(version) else {
            return;
        };
        let gone = |world: &World| {
            wait_for("whoever follows to die", 30, || {
                world.leftovers().is_empty().then_some(())
            });
        };
        let putting_off = point.ends_with("deferred");
        if putting_off {
            world.set("REJOIN_FAIL", point);
        }
        asks(&world, "#s:ask please", &["-m", "sonnet"]);
        if putting_off {
            gone(&world);
            world.unset("REJOIN_FAIL");
        }
        rests(&world, 1);
        gone(&world);
        if !putting_off {
            world.set("REJOIN_FAIL", point);
        }
        answer(&world, &["2", "1,3"]).ok();
        if !putting_off {
            gone(&world);
            world.unset("REJOIN_FAIL");
        }
        let turn = ended(&world);
        assert_eq!(turn["status"], "succeeded", "{point}: {turn}");
        let both = [("started", "deferred"), ("resumed", "succeeded")];
        assert_eq!(attempts(&turn), both, "{point}: {turn}");
        assert_eq!(turn["text"], "I need to ask.\n\nThanks for the answer.");
        assert_eq!(asked(&world, "ask"), 2, "{point}: run twice, or never");
        assert_one_pair(&world);
        quiet(&world);
    }
}

/// Kill -9 of the CLI after it was put off finds nobody; before, it is as it always was.
#[test]
fn a_cli_that_is_killed_before_it_put_its_question_off_is_gone() {
    for mut world in worlds() {
        world.set("REJOIN_QUESTIONS_DEFER_AFTER", "1h");
        asks(&world, "#s:ask please", &["-m", "sonnet"]);
        kill(world.cli().unwrap(), "KILL");
        let turn = ended(&world);
        assert_eq!(turn["status"], "lost", "{turn}");
        assert_eq!(only(&turn)["state"], "gone", "{turn}");
        quiet(&world);
    }
}
