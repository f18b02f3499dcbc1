//! Tiers: permission levels of the configuration. Names of tests begin with the id of their scenario in
//! `docs/requirements.md`.

mod agents;
mod approvals;
mod climbs;
mod config;
mod costs;
mod handoff;
mod limits;
mod policy;
mod templates;
mod turns;

use rejoin_testkit::World;
use serde_json::Value;

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

/// The tiers of the guide: an observer with commands, a repairer, and an administrator.
const TIERS: &str = r#"
[[tier]]
name = "observe"
role = "Tier 1, observer"
model = "haiku"
permission = "read-only"
tools = ["Bash", "Read", "Grep", "Glob"]
deny_tools = ["Bash(docker restart:*)", "Bash(touch:*)"]
may = ["read logs", "run health checks"]

[[tier]]
name = "remediate"
role = "Tier 2, safe remediation"
model = "sonnet"
permission = "edit"
tools = ["Bash", "Read", "Write", "Edit", "Grep", "Glob"]
deny_tools = ["Bash(ansible:*)", "Bash(helm:*)"]
may = ["restart a container", "open a pull request", "do #s:second"]

[[tier]]
name = "full"
role = "Tier 3, full remediation"
model = "opus"
permission = "edit"
tools = ["Bash", "Read", "Write", "Edit", "Grep", "Glob"]
may = ["everything in this folder", "do #s:third"]
"#;

/// Writes the user's configuration.
fn configure(world: &World, text: &str) {
    let folder = world.home().join(".config/rejoin");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), text).unwrap();
}

fn argv(turn: &Value) -> Vec<String> {
    let args = turn["command"].as_array().unwrap().iter();
    args.map(|a| a.as_str().unwrap().to_owned()).collect()
}

/// Returns the value of a flag in the command of a turn.
fn flag(turn: &Value, name: &str) -> Option<String> {
    let args = argv(turn);
    let at = args.iter().position(|arg| arg == name)?;
    args.get(at + 1).cloned()
}
