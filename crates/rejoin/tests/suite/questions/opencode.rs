//! OpenCode asks: whether it may use a tool, and its own questions. Its server is spoken with through a
//! hidden command of ours.

use rejoin_testkit::{
    OPENCODE, Talk, World, answer as said, assert_shown, kill, steps, texts, user, wait_for,
};
use serde_json::{Value, json};

use super::killed::nobody_follows;
use super::{REJOIN, answer, asking, asks, ended, inbox, only, quiet};

const ASK: [&str; 4] = ["-a", "opencode", "--permission", "ask"];

fn world() -> Option<World> {
    World::of(REJOIN, &OPENCODE).map(asking)
}

fn bash(command: &str) -> Value {
    json!({"name": "bash", "input": {"command": command, "description": "x"}})
}

/// One step with these calls, then an answer.
fn calls(n: usize, tools: &[Value]) -> String {
    steps(n, &json!([{"tools": tools}, {"text": said(n)}]))
}

fn ran(world: &World) -> String {
    std::fs::read_to_string(world.work().join("ran.txt")).unwrap_or_default()
}

/// How often the model was told something, at the end.
fn heard(world: &World, words: &str) -> usize {
    texts(&world.model.last()).matches(words).count()
}

/// Whether the model was offered this tool.
fn offers(world: &World, tool: &str) -> bool {
    let tools = world.model.last().body["tools"].clone();
    let mut tools = tools.as_array().unwrap().iter();
    tools.any(|one| one["function"]["name"] == tool)
}

#[track_caller]
fn succeeded(world: &World, n: usize, verdict: &str) -> Value {
    let turn = ended(world);
    assert_eq!(turn["status"], "succeeded", "{turn:#}");
    assert_eq!(turn["text"], said(n), "{turn:#}");
    assert_eq!(turn["verdict"], verdict, "{turn:#}");
    turn
}

/// Promise 7: what a person decides counts for what was asked, and is asked again in the next turn.
#[test]
fn permissions_are_asked_for() {
    let Some(mut world) = world() else { return };
    let asked = |turn: &Value, command: &str| {
        let question = only(turn);
        assert_eq!(question["kind"], "approval", "{turn}");
        assert_eq!(question["tool"], "bash", "{turn}");
        assert_eq!(question["input"]["command"], command, "{turn}");
    };
    let once = "echo once >> ran.txt";
    asked(&asks(&world, &calls(1, &[bash(once)]), &ASK), once);
    answer(&world, &["deny", "--text", "not on a Friday"]).ok();
    let first = succeeded(&world, 1, "started");
    assert_eq!(first["denied"].as_array().unwrap().len(), 1, "{first:#}");
    assert_eq!(heard(&world, "not on a Friday"), 1);
    assert_eq!(ran(&world), "");

    asked(&asks(&world, &calls(2, &[bash(once)]), &[]), once);
    answer(&world, &["allow"]).ok();
    let turn = succeeded(&world, 2, "resumed");
    assert_eq!(turn["denied"], json!([]), "{turn:#}");
    assert_eq!(ran(&world), "once\n");
    // Of the turn alone: as many steps, as many words.
    let (now, before) = (&turn["usage"]["output"], &first["usage"]["output"]);
    assert!(now == before && now.as_u64() > Some(0), "{turn:#}");

    // Always: for the rest of this process, and no longer.
    for n in [3, 4] {
        let again = bash("echo again >> ran.txt");
        let twice = json!([{"tools": [again]}, {"tools": [again]}, {"text": said(n)}]);
        let turn = asks(&world, &steps(n, &twice), &[]);
        asked(&turn, "echo again >> ran.txt");
        answer(&world, &["always"]).ok();
        succeeded(&world, n, "resumed");
        assert_eq!(ran(&world).matches("again").count(), (n - 2) * 2);
    }
    assert!(inbox(&world).is_empty());

    // Without the plugin that looks at commands there is no shell.
    assert!(offers(&world, "bash"));
    world.set("OPENCODE_PURE", "1");
    world.say(5, &[]);
    assert!(!offers(&world, "bash") && offers(&world, "edit"));
    quiet(&world);
}

/// A-03, A-52: questions work in a first turn and under resume alike. Of several calls at once each has
/// its own answer, though the server takes a no for a no to all of them.
#[test]
fn questions_and_several_calls_at_once() {
    let Some(world) = world() else { return };
    for (n, verdict) in [(1, "started"), (2, "resumed")] {
        let option = |label: &str| json!({"label": label, "description": "d"});
        let items = json!([
            {"question": "Which colour?", "header": "c", "options": [option("Red"), option("Blue")]},
            {"question": "Which sizes?", "header": "s", "multiple": true,
                "options": [option("S"), option("M"), option("L")]},
        ]);
        let tool = json!({"name": "question", "input": {"questions": items}});
        let turn = asks(&world, &calls(n, &[tool]), &ASK);
        let question = only(&turn);
        assert_eq!(question["kind"], "question", "{turn:#}");
        assert_eq!(question["questions"][1]["multi"], true, "{turn:#}");
        assert_eq!(question["questions"][0]["options"][1]["label"], "Blue");
        answer(&world, &["2", "1,3"]).ok();
        let turn = succeeded(&world, n, verdict);
        assert_eq!(turn["denied"], json!([]), "{turn:#}");
    }
    assert_eq!(heard(&world, r#""Which colour?"="Blue""#), 2);
    assert_eq!(heard(&world, r#""Which sizes?"="S, L""#), 2);

    let precious = world.work().join("precious.txt");
    std::fs::write(&precious, "x").unwrap();
    let written = world.work().join("written.txt");
    let write = json!({"name": "write", "input": {"filePath": written, "content": "w"}});
    // The CLI itself asks about none of the last three.
    let tools = [
        bash("echo no >> ran.txt"),
        bash("echo yes >> ran.txt"),
        write,
        bash("> precious.txt"),
        bash("2> precious.txt"),
        bash("case x in esac > precious.txt"),
    ];
    asks(&world, &calls(3, &tools), &[]);
    wait_for("all of them to be asked about", 60, || {
        let asked = inbox(&world)[0]["questions"].as_array()?.len();
        (asked == 3).then_some(())
    });
    for _ in 0..3 {
        let first = inbox(&world)[0]["questions"][0].clone();
        let no = first["input"]["command"] == "echo no >> ran.txt";
        answer(&world, &[if no { "deny" } else { "allow" }]).ok();
    }
    let turn = succeeded(&world, 3, "resumed");
    assert_eq!(ran(&world), "yes\n");
    assert_eq!(std::fs::read_to_string(&written).unwrap(), "w");
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), "x");
    assert_eq!(turn["denied"].as_array().unwrap().len(), 4, "{turn:#}");
    quiet(&world);
}

/// Promises 1 and 11: a session goes on over either protocol, and the model is shown everything once.
/// Whoever follows a turn that waits may be killed.
#[test]
fn a_session_goes_on_over_either_protocol() {
    let Some(world) = world() else { return };
    let mut talk = Talk::begin(world);
    talk.good("started", &["-a", "opencode", "--permission", "edit"]);
    assert!(!offers(&talk.world, "question"));
    talk.good("resumed", &["--permission", "ask"]);
    // Though `run` denies them to the sessions it begins.
    assert!(offers(&talk.world, "question"));
    talk.good("resumed", &[]);
    assert!(!offers(&talk.world, "question"));
    let flags = ["--permission", "ask"];
    let world = &talk.world;
    let script = calls(4, &[bash("echo x >> ran.txt")]);
    let text = format!("{} /init @/etc/hostname --continue {script}", user(4));
    let turn = asks(world, &text, &flags);
    assert_eq!(turn["verdict"], "resumed", "{turn:#}");
    nobody_follows(world);
    assert_eq!(world.last_turn()["status"], "waiting");
    answer(world, &["allow"]).ok();
    succeeded(world, 4, "resumed");
    assert_eq!(ran(world), "x\n");
    let told = texts(&world.model.last());
    assert_eq!(told.matches(&text).count(), 1, "{told}");
    talk.n += 1;
    talk.words.extend([user(4), said(4)]);
    talk.good("resumed", &[]);
    let parent = talk.good("resumed", &flags);
    // The first turn of a fork has a copy of it, and all of it.
    let world = &talk.world;
    world.run(&["fork", "k", "--key", "fork"]).ok();
    let text = format!("{} #s:a7", user(7));
    let args = ["send", "--json", "-k", "fork", "--permission", "ask", &text];
    let turn = world.run(&args).ok().json();
    assert_eq!(turn["verdict"], "resumed", "{turn:#}");
    assert_eq!(turn["text"], said(7), "{turn:#}");
    assert_ne!(turn["session_id"], parent["session_id"]);
    talk.words.push(user(7));
    assert_shown(&world.model.last(), &talk.words);
    quiet(world);
}

/// Its process is gone, or it is told to stop: no question waits for ever, nothing goes on, and the
/// session is as it was.
#[test]
fn what_becomes_of_a_question_nobody_can_answer() {
    let Some(world) = world() else { return };
    let mut talk = Talk::begin(world);
    talk.good("started", &ASK);
    let world = &talk.world;
    let script = |n| format!("{} {}", user(n), calls(n, &[bash("echo x >> ran.txt")]));
    asks(world, &script(2), &[]);
    world.run(&["cancel", "k"]).ok();
    let turn = ended(world);
    assert_eq!(turn["status"], "cancelled", "{turn:#}");
    assert!(inbox(world).is_empty());
    quiet(world);
    asks(world, &script(3), &[]);
    kill(world.cli().unwrap(), "KILL");
    let turn = ended(world);
    assert_eq!(turn["status"], "lost", "{turn:#}");
    assert_eq!(only(&turn)["state"], "gone", "{turn:#}");
    quiet(world);
    assert_eq!(ran(world), "");
    talk.n += 2;
    talk.words.extend([user(2), user(3)]);
    talk.unanswered += 2;
    let turn = talk.good("resumed", &[]);
    assert_eq!(turn["denied"], json!([]), "{turn:#}");
    quiet(&talk.world);
}

/// A session that the server does not know is told anew, once; a server that does not come up is a
/// failure that says so.
#[test]
fn a_server_that_refuses_and_one_that_does_not_come_up() {
    let Some(mut world) = world() else { return };
    let (real, front) = (world.bin(), world.root().join("in-front"));
    let (refuse, broken) = (world.root().join("refuse"), world.root().join("broken"));
    let body = format!(
        "#!/bin/bash\nif [ -e {} ] && rm {0}; then export OPENCODE_DB={0}.db; fi\n\
         if [ -e {} ]; then echo ready; exit 3; fi\nexec {} \"$@\"\n",
        refuse.display(),
        broken.display(),
        real.display()
    );
    world.script(&front, &body);
    world.use_bin(&front);
    let mut talk = Talk::begin(world);
    talk.good("started", &ASK);
    std::fs::write(&refuse, "").unwrap();
    talk.n += 1;
    let turn = talk.world.say(2, &[]);
    assert_eq!(turn["verdict"], "reseeded", "{turn:#}");
    assert_eq!(turn["reason"], "rejected", "{turn:#}");
    assert_eq!(turn["attempts"][0]["status"], "refused", "{turn:#}");
    let words = [vec![user(1), said(1)], vec![user(2)]].concat();
    assert_shown(&talk.world.model.last(), &words);
    talk.words.extend([user(2), said(2)]);
    std::fs::write(&broken, "").unwrap();
    let turn = talk.bad("#s:a3", &[], ("failed", "not_started", 1));
    let message = turn["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("opencode serve did not come up"),
        "{message}"
    );
}
