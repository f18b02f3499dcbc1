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
use rejoin_runner::wall::{self as kernel, Standing};
use rejoin_runner::{Asks, RunnerConfig, WallMode, inspect};
use serde_json::{Value, json};

use self::report::{Report, bytes};
use crate::app::{data_home, here, wall};
use crate::config::{Config, Loaded, Source, sources};
use crate::failure::Result;
use crate::output::Output;

/// Less than this, and a turn may fill the disk.
const LITTLE: u64 = 200 << 20;

/// Check agents, logins, configuration and store
///
/// Looks only; --prove also holds a conversation with each installed CLI against a built-in model,
/// without key or tokens, and shows what of it works. Exits with 1 if something needs attention.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin doctor\n  rejoin doctor --prove claude    does this very binary resume?"
)]
pub(crate) struct DoctorArgs {
    /// Prove what installed agents do: all, or this one
    #[arg(long, value_name = "AGENT", num_args = 0..=1, default_missing_value = "all")]
    prove: Option<String>,

    /// Print the page about agents and their permissions
    #[arg(long, hide = true)]
    docs: bool,
}

pub(crate) async fn run(args: &DoctorArgs, out: Output, explicit: Option<&Path>) -> Result<u8> {
    if args.docs {
        out.text(permissions::page().trim_end());
        return Ok(0);
    }
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
        (Standing::Built(_), _) => report.good("wall", &text),
        (Standing::Impossible(_), WallMode::Required) => {
            report.bad("wall", &text, "[wall] mode = \"auto\" in the configuration");
        }
        (Standing::Impossible(_) | Standing::Off, _) => report.note("wall", &text),
    }
    let mechanism = standing.wall().map(|wall| wall.mechanism.name());
    json!({"mechanism": mechanism, "text": text})
}

fn machine(report: &mut Report, home: &Path) -> Value {
    report.section("machine");
    let found = inspect::machine(home);
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
