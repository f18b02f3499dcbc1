//! What is on this machine, for whoever asks: which programs, what is known of them, what is left
//! of turns. Looks only; but for [`prove_again`], which is asked for.

use std::path::{Path, PathBuf};

use rejoin_agents::{Adapter, Facts, ProofEnv, ProofRow};
use rejoin_core::Runtime;
use rejoin_hub::{Hub, HubLink};
use rejoin_store::StoredTurn;

use crate::binary::{find_out, identity, program_of, version};
use crate::config::RunnerConfig;
use crate::error::{Error, Result};
use crate::lease::{Hands, hands};
use crate::leftovers::MARKERS;
use crate::place::Place;
use crate::process::tree;
use crate::prove::{Subject, matrix, no_resume};
use crate::warm;

/// The program that would be run, if there is one.
pub fn program(config: &RunnerConfig, adapter: &'static dyn Adapter) -> Option<PathBuf> {
    let settings = config.agent(adapter.name());
    program_of(
        adapter,
        settings.bin.as_deref().or(adapter.program())?,
        config,
    )
}

/// What is known of it, without running it.
pub async fn known(link: &impl HubLink, path: &Path) -> Result<Option<Facts>> {
    let identity = identity(path).map_err(Error::io(format!("looking at {}", path.display())))?;
    Ok(link.binary(&identity).await?)
}

/// Is somebody following this turn, as far as can be seen from this home?
pub async fn is_attended(hub: &Hub, home: &Path, turn: &StoredTurn) -> Result<bool> {
    let here = Place::seen_from(home);
    Ok(matches!(
        hands(hub, &here, turn).await?,
        Hands::Held | Hands::Resting
    ))
}

/// What `--version` says.
pub async fn runtime(
    config: &RunnerConfig,
    adapter: &'static dyn Adapter,
    path: &Path,
) -> Result<Runtime> {
    version(config, adapter, path).await
}

/// Can this agent be led to the built-in model? One that the user describes cannot.
pub fn provable(adapter: &dyn Adapter) -> bool {
    let (url, home) = ("http://127.0.0.1:9", Path::new("/"));
    adapter.proof(&ProofEnv { url, home }).is_some()
}

/// Everything that rejoin relies on is tried, whatever is known already; kept if there is a store.
/// `seen` hears of each row as it is known.
pub async fn prove_again(
    link: Option<&impl HubLink>,
    config: &RunnerConfig,
    adapter: &'static dyn Adapter,
    path: &Path,
    seen: &mut dyn FnMut(&ProofRow),
) -> Result<Facts> {
    let identity = identity(path).map_err(Error::io(format!("looking at {}", path.display())))?;
    let (mut facts, _late) = find_out(config, adapter, path).await?;
    // An agent that cannot be led to the built-in model has not failed for that.
    if !provable(adapter) {
        return Ok(facts);
    }
    let subject = Subject {
        adapter,
        program: path,
        facts: &facts,
        path: &config.var("PATH").unwrap_or_default(),
    };
    let rows = matrix(subject, seen).await;
    facts.no_resume = no_resume(&rows).or(facts.no_resume);
    facts.rows = rows;
    facts.proven_at = Some(rejoin_hub::Clock.now());
    if let Some(link) = link {
        link.keep_binary(&identity, adapter.name(), &facts).await?;
    }
    Ok(facts)
}

/// What this machine offers for keeping hold of a turn's processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// Orphans of a turn come to its shim.
    pub subreaper: bool,
    /// Processes of others can be seen.
    pub proc: bool,
    /// Where turns are kept; none: unknown.
    pub free_bytes: Option<u64>,
}

pub fn machine(home: &Path) -> Machine {
    // The folder may not have been made yet.
    let there = home.ancestors().find(|folder| folder.exists());
    let stat = there.and_then(|folder| nix::sys::statvfs::statvfs(folder).ok());
    Machine {
        subreaper: nix::sys::prctl::get_child_subreaper().is_ok(),
        proc: tree::read(nix::unistd::getpid().as_raw()).is_some(),
        free_bytes: stat.map(|s| s.blocks_available() * s.fragment_size()),
    }
}

/// A process that carries the marker of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnProcess {
    pub pid: i32,
    pub turn: String,
    pub command: String,
}

/// Every living process of any turn.
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

/// Turns whose folder is still there.
pub fn turn_folders(home: &Path) -> Vec<String> {
    let entries = fs_err::read_dir(home.join("turns"));
    let names = entries.into_iter().flatten().flatten();
    names
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}

/// How many processes stay up for the next message.
pub fn resting(home: &Path) -> usize {
    warm::all_resting(home).len()
}
