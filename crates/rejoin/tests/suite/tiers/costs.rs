//! What each tier cost, for a CLI that reports the cost of a run and for one that reports the total
//! of its session. No real CLI can be told its price, so this one is a program of the test's own.

use rejoin_testkit::World;
use serde_json::{Value, json};

use super::{REJOIN, configure};

/// Asks for the next tier twice. Prices by turn of the session: 0.03, 0.47, 2.00 dollars.
const CLI: &str = r#"#!/usr/bin/env python3
import json, os, signal, sys, uuid
args = sys.argv[1:]
if args[:1] == ["--version"]: print("pricecli version 1.0.0"); sys.exit()
home = os.path.expanduser("~/.pricecli"); os.makedirs(home, exist_ok=True)
session = args[args.index("--resume") + 1] if "--resume" in args else str(uuid.uuid4())
path = f"{home}/{session}.jsonl"
past = [json.loads(l) for l in open(path)] if os.path.exists(path) else []
prompt = sys.stdin.read()
hello = {"type": "hello"} if os.environ.get("PRICE_MUTE") else {"type": "hello", "id": session}
print(json.dumps(hello), flush=True)
with open(path, "a") as f: f.write(json.dumps({"type": "user", "content": prompt}) + "\n")
tier = 2 if "Tier 3" in prompt else 1 if "Tier 2" in prompt else 0
if tier == 1 and os.environ.get("PRICE_DIES"): os.kill(os.getpid(), signal.SIGKILL)
prices = [0.03, 0.47, 2.00]
price = sum(prices[:tier + 1]) if os.environ["PRICE_TOTALS"] == "session" else prices[tier]
text = f"answer {tier}"
if tier < 2: text += '\n\n```rejoin\n{"escalate": {"reason": "more is needed"}}\n```'
with open(path, "a") as f: f.write(json.dumps({"type": "assistant", "content": text}) + "\n")
print(json.dumps({"type": "said", "text": text}))
print(json.dumps({"type": "bye", "usd": price}))
"#;

const CONFIG: &str = r#"
default_agent = "price"
[agents.price]
kind = "command"
bin = "BIN"
start_args = ["ask"]
resume_args = ["ask", "--resume", "{session}"]
permission.edit = ["--may-edit"]
session_from = "hello /id"
text_from = ["said /text"]
cost_from = "bye /usd"
totals = "KIND"
done_on = "bye"
session_file = "~/.pricecli/{session}.jsonl"
session_user = "user /content"
session_assistant = "assistant /content"
env = { PRICE_TOTALS = "KIND" }

[[tier]]
name = "one"
role = "Tier 1"
may = ["look"]

[[tier]]
name = "two"
role = "Tier 2"
may = ["act"]

[[tier]]
name = "three"
role = "Tier 3"
may = ["act more"]
"#;

/// A world with this CLI; `more` are variables of its environment.
pub(super) fn world(totals: &str, more: &str) -> World {
    let world = World::new(REJOIN);
    let bin = world.root().join("pricecli");
    world.script(&bin, CLI);
    let config = CONFIG.replace("BIN", bin.to_str().unwrap());
    let config = config.replace("KIND\" }", &format!("KIND\"{more} }}"));
    configure(&world, &config.replace("KIND", totals));
    world
}

fn costs(chain: &Value) -> Vec<Value> {
    let turns = chain["turns"].as_array().unwrap().iter();
    turns.map(|turn| turn["cost_usd"].clone()).collect()
}

/// C-35, C-37, C-38, C-39: the same costs from both kinds of reports.
#[test]
fn c37_c39_each_tier_costs_its_own_under_both_kinds_of_reports() {
    for totals in ["run", "session"] {
        let world = world(totals, "");
        let last = world
            .run(&["send", "--json", "--tier", "one", "--climb", "look"])
            .ok()
            .json();
        let chain = &last["chain"];
        let verdicts = chain["turns"].as_array().unwrap().iter();
        let verdicts: Vec<_> = verdicts.map(|turn| &turn["verdict"]).collect();
        assert_eq!(verdicts, ["started", "resumed", "resumed"], "{last:#}");
        assert_eq!(costs(chain), [0.03, 0.47, 2.0], "{totals}");
        assert_eq!(chain["total_cost_usd"], 2.5, "{totals}");
        assert_eq!(chain["cost_complete"], true);
        let tiers = ["one", "two", "three"].into_iter().zip([0.03, 0.47, 2.0]);
        let tiers: Vec<Value> = tiers
            .map(|(tier, cost)| json!({"tier": tier, "cost_usd": cost, "turns": 1}))
            .collect();
        assert_eq!(chain["by_tier"], json!(tiers));
        let printed = world.run(&["chain"]).ok().stdout;
        assert!(printed.contains("total $2.50"), "{printed}");
    }
}

/// The cost of a killed tier is unknown, and the total a lower bound.
#[test]
fn a_killed_tier_makes_the_total_a_lower_bound() {
    let world = world("run", ", PRICE_DIES = \"1\"");
    let killed = world.run(&["send", "--json", "--tier", "one", "--climb", "look"]);
    assert_ne!(killed.code, 0, "{killed:?}");
    let last = world.run(&["escalate", "--json"]).ok().json();
    let chain = &last["chain"];
    assert_eq!(
        costs(chain),
        [json!(0.03), Value::Null, json!(2.0)],
        "{chain:#}"
    );
    assert_eq!(chain["total_cost_usd"], 2.03);
    assert_eq!(chain["cost_complete"], false);
    let printed = world.run(&["chain"]).ok().stdout;
    assert!(printed.contains("total at least $2.03"), "{printed}");
}
