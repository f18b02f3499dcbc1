//! A CLI that rejoin does not know, described in the configuration: a small program of this test's
//! own, with sessions in files and a real model behind it.

use std::path::PathBuf;

use rejoin_testkit::{World, answer, assert_shown, said, user};
use serde_json::{Value, json};

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

/// Reads a prompt, asks the model with all it remembers, and remembers.
const CLI: &str = r#"#!/usr/bin/env python3
import json, os, sys, urllib.request, uuid
args = sys.argv[1:]
if args[:1] == ["--version"]: print("smallcli version 1.2.3"); sys.exit()
if "--terminal" in args and not sys.stdout.isatty():
    print("no terminal", file=sys.stderr); sys.exit(5)
home = os.path.expanduser("~/.smallcli/sessions/x"); os.makedirs(home, exist_ok=True)
session = args[args.index("--resume") + 1] if "--resume" in args else str(uuid.uuid4())
path = f"{home}/{session}.jsonl"
if "--resume" in args and not os.path.exists(path):
    print("who is that?", file=sys.stderr); sys.exit(4)
past = [json.loads(l) for l in open(path)] if os.path.exists(path) else []
prompt = args[-1] if "--argument" in args else sys.stdin.read()
assert os.environ["PWD"] == os.getcwd(), os.environ["PWD"]
messages = [{"role": m["type"], "content": m["content"]} for m in past]
messages.append({"role": "user", "content": prompt})
body = json.dumps({"model": "m1", "messages": messages}).encode()
request = urllib.request.Request(os.environ["SMALL_URL"] + "/v1/chat/completions", body, {"content-type": "application/json"})
print(json.dumps({"type": "hello", "id": session, "args": args}), flush=True)
with open(path, "a") as f: f.write(json.dumps({"type": "user", "content": prompt}) + "\n")
try: reply = json.load(urllib.request.urlopen(request))
except Exception as e: print(json.dumps({"type": "trouble", "why": str(e)})); sys.exit(1)
text = reply["choices"][0]["message"]["content"]
with open(path, "a") as f: f.write(json.dumps({"type": "assistant", "content": text}) + "\n")
print(json.dumps({"type": "said", "parts": [{"text": text}]}))
print(json.dumps({"type": "bye", "in": reply["usage"]["prompt_tokens"], "out": 7, "usd": 0.25}))
"#;

/// All of it; a test takes lines out, or puts some in.
const SECTION: &str = r#"
default_agent = "small"
[agents.small]
kind = "command"
bin = "BIN"
start_args = ["ask", "--model", "{model}"]
resume_args = ["ask", "--resume", "{session}", "--model", "{model}"]
permission.edit = ["--may-edit"]
session_from = "hello /id"
text_from = ["said /parts"]
error_from = "trouble /why"
input_from = "bye /in"
output_from = "bye /out"
cost_from = "bye /usd"
totals = "run"
done_on = "bye"
refused = "who is that"
session_file = "~/.smallcli/sessions/*/{session}.jsonl"
session_user = "user /content"
session_assistant = "assistant /content"
"#;

fn world(change: impl Fn(String) -> String) -> World {
    let mut world = World::new(REJOIN);
    let bin = world.root().join("smallcli");
    world.script(&bin, CLI);
    let section = SECTION.replace("BIN", bin.to_str().unwrap());
    let config = world.home().join(".config/rejoin/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(&config, change(section)).unwrap();
    let url = world.model.url.clone();
    world.set("SMALL_URL", &url);
    world
}

fn without(line: &'static str) -> impl Fn(String) -> String {
    move |section| {
        let kept = section.lines().filter(|l| !l.starts_with(line));
        kept.collect::<Vec<_>>().join("\n")
    }
}

fn sessions(world: &World) -> Vec<PathBuf> {
    let folder = world.home().join(".smallcli/sessions/x");
    let mut found: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|f| f.unwrap().path())
        .collect();
    found.sort_by_key(|f| std::fs::metadata(f).unwrap().modified().unwrap());
    found
}

/// One turn; the model is shown everything once.
#[track_caller]
fn turn(world: &World, n: usize, verdict: &str, reason: &Value, more: &[&str]) -> Value {
    let turn = world.say(n, more);
    assert_eq!(
        (&turn["verdict"], &turn["reason"]),
        (&json!(verdict), reason),
        "{turn:#}"
    );
    assert_eq!(turn["text"], answer(n));
    let mut words = said(1..n);
    words.push(user(n));
    assert_shown(&world.model.last(), &words);
    turn
}

/// A path without `*` is known only when the CLI has chosen the id in it.
#[test]
fn a_session_at_a_fixed_path_is_resumed_by_the_id_that_the_cli_chose() {
    let world = world(|section| section.replace("/*/", "/x/"));
    turn(&world, 1, "started", &json!("first_turn"), &[]);
    turn(&world, 2, "resumed", &Value::Null, &[]);
    std::fs::remove_file(&sessions(&world)[0]).unwrap();
    turn(&world, 3, "restored", &Value::Null, &[]);
}

#[test]
fn it_is_resumed_by_its_own_id_and_told_when_that_is_gone() {
    let mut world = world(|section| section);
    let first = turn(&world, 1, "started", &json!("first_turn"), &[]);
    assert_eq!(first["version"], "small 1.2.3");
    let second = turn(&world, 2, "resumed", &Value::Null, &["-m", "m2"]);
    let command = second["command"].to_string();
    let id = first["session_id"].as_str().unwrap();
    let args = format!(r#""ask","--resume","{id}","--model","m2","--may-edit""#);
    assert!(command.contains(&args), "{command}");
    assert_eq!(
        (&second["cost_usd"], &second["usage"]["output"]),
        (&json!(0.25), &json!(7))
    );
    // Gone before we look, and gone behind our back.
    std::fs::remove_file(&sessions(&world)[0]).unwrap();
    world.without_snapshots();
    turn(&world, 3, "reseeded", &json!("session_missing"), &[]);
    turn(&world, 4, "resumed", &Value::Null, &[]);
    // Cut back after a turn that failed, and used again.
    let before = std::fs::read(&sessions(&world)[0]).unwrap();
    let failed = world.send(5, "#s:e400", &[]);
    assert_eq!(failed.code, 1, "{failed:?}");
    assert_eq!(std::fs::read(&sessions(&world)[0]).unwrap(), before);
    let sixth = world.say(6, &[]);
    assert_eq!(sixth["verdict"], "resumed", "{sixth:#}");
    assert_eq!(sixth["sent"]["caught_up"], 1);
    world.assert_quiet();
}

#[test]
fn what_is_not_described_is_not_relied_on() {
    let world = world(without("session_file"));
    turn(&world, 1, "started", &json!("first_turn"), &[]);
    let second = turn(&world, 2, "reseeded", &json!("no_capability"), &[]);
    let summary = second["summary"].as_str().unwrap();
    assert!(summary.contains("session_file"), "{summary}");
    let refused = world.send(3, "#s:a3", &["--permission", "full"]);
    assert_eq!(refused.code, 5, "{refused:?}");
    let said = refused.json()["error"]["message"].to_string();
    assert!(said.contains("arguments for edit"), "{said}");
    let refused = world.send(3, "#s:a3", &["--deny-tools", "shell"]);
    assert_eq!(refused.code, 5, "{refused:?}");
}

#[test]
fn a_mistake_in_its_description_is_named() {
    let world = world(|s| s.replace("\"hello /id\"", "\"hello id\""));
    let done = world.send(1, "#s:a1", &[]);
    assert_eq!(done.code, 2, "{done:?}");
    let said = done.json()["error"]["message"].to_string();
    assert!(
        said.contains("agents.small.session_from") && said.contains("TYPE /key/key"),
        "{said}"
    );
    let world = self::world(|s| s.replace("[agents.small]", "[agents.claude]"));
    let done = world.send(1, "#s:a1", &[]);
    assert_eq!(done.code, 2, "{done:?}");
}

#[test]
fn a_prompt_may_be_an_argument_and_stdout_a_terminal() {
    let world = world(|section| {
        let section = section.replace("\"ask\",", "\"ask\", \"--terminal\", \"--argument\",");
        section + "prompt = \"argument\"\nstdout = \"pty\"\n"
    });
    turn(&world, 1, "started", &json!("first_turn"), &[]);
    turn(&world, 2, "resumed", &Value::Null, &[]);
    world.assert_quiet();
}

/// Money and window of a model are what the user says, where the CLI says nothing.
#[test]
fn a_model_costs_and_holds_what_the_user_says() {
    let prices = "[models.m2]\nwindow = 2000\nprice.input = 3\nprice.output = 15\n";
    let mut world = world(|section| without("cost_from")(section) + "\n" + prices);
    let first = turn(&world, 1, "started", &json!("first_turn"), &["-m", "m2"]);
    let read = first["usage"]["input"].as_u64().unwrap();
    let dollars = (read as f64 * 3.0 + 7.0 * 15.0) / 1e6;
    let cost = first["cost_usd"].as_f64().unwrap();
    assert!((cost - dollars).abs() < 1e-6, "{cost}, not {dollars}");
    assert_eq!(first["context"], json!({"used": read, "window": 2000}));
    // Another model: nobody has said anything of it.
    let second = turn(&world, 2, "resumed", &Value::Null, &["-m", "m3"]);
    let unknown = (&Value::Null, &Value::Null);
    assert_eq!((&second["cost_usd"], &second["context"]), unknown);
    turn(&world, 3, "resumed", &Value::Null, &["-m", "m2"]);
    world.set("REJOIN_RESUME_CONTEXT_THRESHOLD", "0.2");
    turn(&world, 4, "reseeded", &json!("context_full"), &["-m", "m2"]);
}

/// A cost that a price is missing for is unknown, not guessed, and the missing key is named.
#[test]
fn a_missing_price_is_named() {
    let prices = "[models.\"m.2\"]\nprice.input = 3\n";
    let world = world(|section| without("cost_from")(section) + "\n" + prices);
    let first = turn(&world, 1, "started", &json!("first_turn"), &["-m", "m.2"]);
    assert_eq!(first["cost_usd"], Value::Null, "{first:#}");
    let explained = world.run(&["explain"]).ok().stdout;
    let row = "unknown, no price is set: models.\"m.2\".price.output";
    assert!(explained.contains(row), "{explained}");
}

/// A turn that switches to a model with a smaller window is measured by that one.
#[test]
fn the_window_of_the_next_model_counts() {
    let models = "[models.large]\nwindow = 1000000\n[models.small]\nwindow = 1000\n";
    let mut world = world(|section| section.clone() + "\n" + models);
    world.set("REJOIN_RESUME_CONTEXT_THRESHOLD", "0.2");
    let (large, small) = (["-m", "large"], ["-m", "small"]);
    turn(&world, 1, "started", &json!("first_turn"), &large);
    turn(&world, 2, "resumed", &Value::Null, &large);
    turn(&world, 3, "resumed", &Value::Null, &large);
    turn(&world, 4, "reseeded", &json!("context_full"), &small);
    turn(&world, 5, "resumed", &Value::Null, &large);
}

/// The smallest there is: what it prints is the answer, with or without a line end. Nobody can lead it
/// to the built-in model, which is nothing against it.
#[test]
fn a_program_that_only_prints() {
    let world = World::new(REJOIN);
    let config = world.home().join(".config/rejoin/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    let section = "[agents.echo]\nkind = \"command\"\nbin = \"/bin/cat\"\npermission.edit = []\n";
    std::fs::write(&config, section).unwrap();
    let done = world
        .run(&["send", "-a", "echo", "-k", "k", "hello there"])
        .ok();
    assert_eq!(done.stdout, "hello there\n", "{done:?}");
    let report = world.run(&["doctor", "--prove", "--json"]).json();
    let agents = report["agents"].as_array().unwrap();
    let echo = agents.iter().find(|a| a["name"] == "echo").unwrap();
    assert_eq!(echo["proof"], Value::Null, "{echo:#}");
    assert_ne!(echo["resume"], "absent", "{echo:#}");
    let named = world.run(&["doctor", "--prove", "echo"]);
    assert_eq!(named.code, 3, "{named:?}");
}

/// Says what it finds in its environment.
const TELLER: &str = r#"#!/usr/bin/env python3
import json, os, sys
if sys.argv[1:2] == ["--version"]: print("smallcli version 1.2.3"); sys.exit()
sys.stdin.read()
print(json.dumps({"type": "hello", "id": "s-1"}))
print(json.dumps({"type": "said", "parts": [{"text": os.environ.get("ANTHROPIC_API_KEY", "nothing")}]}))
print(json.dumps({"type": "bye", "in": 1, "out": 1, "usd": 0}))
"#;

/// Whoever is reached under a name that leads elsewhere answers in its own environment, not in that of
/// the agent which the name had before.
#[test]
fn whoever_answers_has_its_own_environment() {
    let mut world = world(|section| section);
    world.script(&world.root().join("smallcli"), TELLER);
    world.set("ANTHROPIC_API_KEY", "a-key");
    world
        .run(&["send", "-k", "first", "-a", "demo", "one"])
        .ok();
    world.run(&["send", "-k", "second", "two"]).ok();
    world.run(&["merge", "first", "second"]).ok();
    let turn = world
        .run(&["send", "-k", "first", "--json", "three"])
        .json();
    assert_eq!(
        (&turn["agent"], &turn["text"]),
        (&json!("small"), &json!("a-key")),
        "{turn:#}"
    );
}

/// Prints the names of its variables.
const NAMER: &str = r#"#!/usr/bin/env python3
import json, os, sys
if sys.argv[1:2] == ["--version"]: print("smallcli version 1.2.3"); sys.exit()
sys.stdin.read()
print(json.dumps({"type": "hello", "id": "s-1"}))
print(json.dumps({"type": "said", "parts": [{"text": " ".join(sorted(os.environ))}]}))
print(json.dumps({"type": "bye", "in": 1, "out": 1, "usd": 0}))
"#;

#[test]
fn logins_of_the_store_reach_an_agent_only_when_they_are_passed_by_name() {
    const LOGINS: [&str; 6] = [
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "DATABASE_URL",
        "PGHOST",
        "PGPASSWORD",
        "PGSSLKEY",
    ];
    let mut world = world(|section| section);
    world.script(&world.root().join("smallcli"), NAMER);
    for name in LOGINS {
        world.set(name, "secret");
    }
    let received = |world: &World, key: &str| {
        let turn = world.run(&["send", "-k", key, "--json", "which?"]).json();
        let names = turn["text"].as_str().unwrap().to_owned();
        assert!(names.contains("REJOIN_TURN"), "{turn:#}");
        LOGINS.map(|login| names.split(' ').any(|name| name == login))
    };
    assert_eq!(received(&world, "one"), [false; 6]);
    world.set("REJOIN_AGENTS_SMALL_PASS_ENV", "PGPASSWORD,DATABASE_URL");
    let passed = [false, false, true, false, true, false];
    assert_eq!(received(&world, "two"), passed);
}

/// Counts that its CLI does not report are unknown, not zero.
#[test]
fn unreported_tokens_are_null() {
    let silent = |section: String| {
        let counts =
            |line: &&str| !line.starts_with("input_from") && !line.starts_with("output_from");
        section
            .lines()
            .filter(counts)
            .collect::<Vec<_>>()
            .join("\n")
    };
    let world = world(silent);
    let turn = world.say(1, &[]);
    let nothing = json!({"input": null, "cache_read": null, "cache_write": null, "output": null});
    assert_eq!(turn["usage"], nothing, "{turn:#}");
    let summary = turn["summary"].as_str().unwrap();
    assert!(!summary.contains("cached"), "{summary}");
    assert!(!summary.contains(" out "), "{summary}");
    let explained = world.run(&["explain", "k"]).ok().stdout;
    assert!(!explained.contains("0% cached"), "{explained}");
}

/// An unreported cache count is left out; the counts beside it are shown.
#[test]
fn an_unreported_cache_count_is_left_out() {
    let world = world(|section| section);
    let turn = world.say(1, &[]);
    assert_eq!(turn["usage"]["cache_read"], Value::Null, "{turn:#}");
    assert!(turn["usage"]["input"].is_u64(), "{turn:#}");
    let explained = world.run(&["explain", "k"]).ok().stdout;
    for shown in [turn["summary"].as_str().unwrap(), &explained] {
        assert!(!shown.contains("cached"), "{shown}");
        assert!(shown.contains(" in") && shown.contains(" out"), "{shown}");
    }
}
