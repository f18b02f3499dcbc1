//! `rejoin doctor`

mod agents;
mod permissions;
mod proof;
mod report;
mod snapshots;
mod store;

use std::path::Path;

use clap::Args;
use rejoin_runner::trust::TrustState;
use rejoin_runner::wall::{self as kernel, WallPlan};
use rejoin_runner::{Asks, RunnerConfig, WallMode, doctor_facts};
use serde_json::{Value, json};

pub(crate) use self::permissions::page as agents_page;
use self::report::{Report, bytes};
use crate::app::{Invocation, data_home, here, wall};
use crate::cli::command::{Help, Run, Task};
use crate::config::{Config, Loaded, Source, sources};
use rejoin_errors::Result;

/// Less than this, and a turn may fill the disk.
const LITTLE: u64 = 200 << 20;

/// Check agents, logins, configuration and store
///
/// Reads only. --prove also runs a test conversation with each installed CLI against a built-in model,
/// without key or tokens, and reports which features work. Exits with 1 if something needs attention.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin doctor\n  rejoin doctor --prove claude    tests whether this binary resumes"
)]
pub(crate) struct DoctorArgs {
    /// Test installed agents: all, or this one
    #[arg(long, value_name = "AGENT", num_args = 0..=1, default_missing_value = "all")]
    prove: Option<String>,
}

impl Run for DoctorArgs {
    const NAME: &'static str = "doctor";
    const HELP: Help = Help::SetUp("check the set-up");

    fn task(self) -> Task {
        Task::machine(self, run)
    }
}

async fn run(on: &Invocation, args: &DoctorArgs) -> Result<u8> {
    let (out, explicit) = (on.out, on.config_file());
    let mut report = Report::default();
    let home = data_home()?;
    let (config, sources) = configuration(&mut report, explicit)?;
    let runner = RunnerConfig {
        home: home.clone(),
        agents: config.agents.clone(),
        env: std::env::vars_os()
            .filter_map(|(n, v)| Some((n.into_string().ok()?, v.into_string().ok()?)))
            .collect(),
        models: config.prices.clone(),
        described: config.described.clone(),
        unrun: rejoin_runner::Unrun::default(),
        asks: Asks::Nobody,
        defer_after: None,
        warm: None,
        wall: wall(&config, &home),
    };
    let mut stored = Report::default();
    let (hub, store) = store::look(&mut stored, &config, &home, args.prove.is_some()).await;
    let kept = snapshots::look(&mut stored, &config, hub.as_ref()).await;
    let mut able = Report::default();
    let agents = agents::look(
        &mut able,
        &config,
        &runner,
        hub.as_ref(),
        args.prove.as_deref(),
        out,
    )
    .await?;
    let mut around = Report::default();
    let mut machine = machine(&mut around, &home);
    machine["wall"] = walls(&mut around, &runner);

    // People ask for agents first; they can only be looked at last.
    let all = able.then(report).then(stored).then(around);
    let healthy = all.healthy();
    if out.json {
        let files: Vec<Value> = sources.iter().map(Source::json).collect();
        out.json(&json!({
            "ok": healthy, "agents": agents, "configuration": files, "store": store,
            "snapshots": kept,
            "machine": machine, "problems": all.problems(),
        }));
    } else {
        all.print(out);
    }
    if let Some(hub) = hub {
        hub.store.close().await;
    }
    Ok(u8::from(!healthy))
}

/// With a mistake in a file the rest is looked at as if there were no files.
fn configuration(report: &mut Report, explicit: Option<&Path>) -> Result<(Config, Vec<Source>)> {
    report.section("configuration");
    let here = here()?;
    let loaded = match Loaded::load(explicit, &here).and_then(|l| Ok((Config::resolve(&l)?, l))) {
        Ok(loaded) => loaded,
        Err(failure) => {
            let next = failure.next.unwrap_or_else(|| "rejoin config path".into());
            report.bad("", &failure.message, &next);
            let rest = Loaded::without_files();
            return Ok((Config::resolve(&rest)?, sources(explicit, &here)));
        }
    };
    let (config, Loaded { sources, .. }) = loaded;
    for source in &sources {
        let path = source.path.display().to_string();
        let state = super::config::state(source);
        match source.trust {
            Some(TrustState::Untrusted | TrustState::Changed) => {
                let keys = config
                    .untrusted
                    .as_ref()
                    .map_or_else(String::new, |u| u.keys.join(", "));
                report.bad(&path, &format!("{state}: {keys}"), "rejoin trust");
            }
            Some(TrustState::NotNeeded | TrustState::Trusted) | None if source.exists => {
                report.good(&path, &state);
            }
            Some(TrustState::NotNeeded | TrustState::Trusted) | None => {
                report.note(&path, &state);
            }
        }
    }
    Ok((config, sources))
}

/// The wall that turns on this machine get.
fn walls(report: &mut Report, config: &RunnerConfig) -> Value {
    let standing = kernel::here(config);
    let text = standing.to_string();
    match (&standing, config.wall.mode) {
        (WallPlan::Built(_), _) => report.good("wall", &text),
        (WallPlan::Impossible(_), WallMode::Required) => {
            report.bad("wall", &text, "[wall] mode = \"auto\" in the configuration");
        }
        (WallPlan::Impossible(_) | WallPlan::Off, _) => report.note("wall", &text),
    }
    let mechanism = standing.wall().map(|wall| wall.mechanism.name());
    json!({"mechanism": mechanism, "text": text})
}

fn machine(report: &mut Report, home: &Path) -> Value {
    report.section("machine");
    let found = doctor_facts::machine(home);
    match found.free_bytes {
        Some(free) if free < LITTLE => {
            let text = format!("{} in {}", bytes(free), home.display());
            report.bad(
                "free space",
                &text,
                "make room, or set REJOIN_HOME to a larger disk",
            );
        }
        Some(free) => {
            let text = format!("{} in {}", bytes(free), home.display());
            report.good("free space", &text);
        }
        None => report.note("free space", "unknown"),
    }
    let best_effort =
        "not available: processes that a turn leaves are ended as far as they are found";
    if found.subreaper && found.proc {
        report.good("processes", "subreaper and /proc available");
    } else {
        let missing = if found.proc { "subreaper" } else { "/proc" };
        report.note("processes", &format!("{missing} {best_effort}"));
    }
    json!({"free_bytes": found.free_bytes, "subreaper": found.subreaper, "proc": found.proc})
}
