//! Reports the state of this machine: programs, facts about them, remains of turns. Changes
//! nothing, except [`prove_again`], which must be requested.

use std::path::{Path, PathBuf};

use rejoin_agents::{Adapter, Facts, ProofRow};
use rejoin_core::Runtime;
use rejoin_hub::Hub;
use rejoin_store::StoredTurn;

use crate::binary::{find_out, identity, program_of, version};
use crate::config::RunnerConfig;
use crate::error::{Error, Result};
use crate::lease::{Ownership, ownership};
use crate::location::HomeLocation;
use crate::process::tree;
use crate::prove::{Subject, matrix, no_resume};
use crate::stray_processes::MARKERS;
use crate::warm;

/// Returns the program that would run, if there is one.
pub fn program(config: &RunnerConfig, adapter: &'static dyn Adapter) -> Option<PathBuf> {
    let settings = config.agent(adapter.name());
    program_of(
        adapter,
        settings.bin.as_deref().or(adapter.profile().program)?,
        config,
    )
}

/// Returns the stored facts about a program, without running it.
pub async fn known(hub: &Hub, path: &Path) -> Result<Option<Facts>> {
    let identity = identity(path).map_err(Error::io(format!("looking at {}", path.display())))?;
    Ok(hub.binary(&identity).await?)
}

/// Returns true if the turn is held or deferred, as far as this home can see.
pub async fn is_attended(hub: &Hub, home: &Path, turn: &StoredTurn) -> Result<bool> {
    let here = HomeLocation::seen_from(home);
    Ok(matches!(
        ownership(hub, &here, turn).await?,
        Ownership::Held | Ownership::Deferred
    ))
}

/// Asks a program for its version.
pub async fn runtime(
    config: &RunnerConfig,
    adapter: &'static dyn Adapter,
    path: &Path,
) -> Result<Runtime> {
    version(config, adapter, path).await
}

/// Returns true if this agent can be directed to the built-in model. An agent that the user
/// describes cannot.
pub fn provable(adapter: &dyn Adapter) -> bool {
    adapter.capabilities().proof.is_some()
}

/// Tries everything that rejoin relies on, regardless of the facts that are known, and stores the
/// result if there is a store. Calls `seen` with each row as soon as it is known.
pub async fn prove_again(
    hub: Option<&Hub>,
    config: &RunnerConfig,
    adapter: &'static dyn Adapter,
    path: &Path,
    seen: &mut dyn FnMut(&ProofRow),
) -> Result<Facts> {
    let identity = identity(path).map_err(Error::io(format!("looking at {}", path.display())))?;
    let (mut facts, _late) = find_out(config, adapter, path).await?;
    // An agent that cannot be directed to the built-in model has not failed the proof.
    if !provable(adapter) {
        return Ok(facts);
    }
    let subject = Subject {
        adapter,
        program: path,
        facts: &facts,
        path: &config.var("PATH").unwrap_or_default(),
        wall: &config.wall,
    };
    let rows = matrix(subject, seen).await;
    facts.no_resume = no_resume(&rows).or(facts.no_resume);
    facts.rows = rows;
    facts.proven_at = Some(rejoin_hub::Clock.now());
    if let Some(hub) = hub {
        hub.keep_binary(&identity, adapter.name(), &facts).await?;
    }
    Ok(facts)
}

/// Features of this machine for controlling a turn's processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// True if orphans of a turn become children of its shim.
    pub subreaper: bool,
    /// True if other processes are visible.
    pub proc: bool,
    /// Free bytes at the place of the turns; None if unknown.
    pub free_bytes: Option<u64>,
}

pub fn machine(home: &Path) -> Machine {
    // The folder may not exist yet.
    let there = home.ancestors().find(|folder| folder.exists());
    let stat = there.and_then(|folder| nix::sys::statvfs::statvfs(folder).ok());
    Machine {
        subreaper: nix::sys::prctl::get_child_subreaper().is_ok(),
        proc: tree::read(nix::unistd::getpid().as_raw()).is_some(),
        free_bytes: stat.map(|s| s.blocks_available() * s.fragment_size()),
    }
}

/// Process that carries the marker of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnProcess {
    pub pid: i32,
    pub turn: String,
    pub command: String,
}

/// Returns all live processes of all turns.
pub fn turn_processes() -> Vec<TurnProcess> {
    let marked = |pid: i32| {
        let environment = fs_err::read(tree::file(pid, "environ")).ok()?;
        let turn = environment.split(|byte| *byte == 0).find_map(|variable| {
            let (name, value) = std::str::from_utf8(variable).ok()?.split_once('=')?;
            MARKERS.contains(&name).then(|| value.to_owned())
        });
        turn.map(|turn| TurnProcess {
            pid,
            turn,
            command: tree::command(pid),
        })
    };
    let living = tree::all().into_iter().filter(|entry| !entry.zombie);
    living.filter_map(|entry| marked(entry.pid)).collect()
}

/// Returns the turns whose folders still exist.
pub fn turn_folders(home: &Path) -> Vec<String> {
    let entries = fs_err::read_dir(home.join("turns"));
    let names = entries.into_iter().flatten().flatten();
    names
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}

/// Returns the number of processes that stay up for the next message.
pub fn resting(home: &Path) -> usize {
    warm::all_resting(home).len()
}
