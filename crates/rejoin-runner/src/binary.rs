//! Finds the program of an agent and the facts about it: its version, if a resume is proven, and
//! the scope of its totals. Determined once per binary, then remembered.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rejoin_agents::{Adapter, Facts, MentionEscape, RepositoryIsolation};
use rejoin_core::{Runtime, TotalsScope};
use rejoin_hub::Hub;

use crate::config::RunnerConfig;
use crate::contained_call::{ContainedCall, wall_of};
use crate::error::{Error, Result};
use crate::process::{Captured, SELF};
use crate::prove::{Proof, prove};

const PROBE_MAY_TAKE: Duration = Duration::from_secs(30);

/// Program of an agent.
#[derive(Debug, Clone)]
pub struct Binary {
    pub path: PathBuf,
    /// Identity of the file; changes whenever the file does.
    pub identity: String,
    pub facts: Facts,
}

/// Program that this process proves at the moment.
static PROVING: Mutex<Option<String>> = Mutex::new(None);

/// Returns product and version of the program that this process proves at the moment, which takes
/// seconds.
pub fn proving() -> Option<String> {
    PROVING
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone()
}

fn set_proving(program: Option<String>) {
    *PROVING.lock().unwrap_or_else(PoisonError::into_inner) = program;
}

pub async fn find(
    hub: &Hub,
    config: &RunnerConfig,
    adapter: &'static dyn Adapter,
) -> Result<Binary> {
    let Some(usual) = adapter.profile().program else {
        return builtin(adapter);
    };
    let settings = config.agent(adapter.name());
    let program = settings.bin.clone().unwrap_or_else(|| usual.to_owned());
    let path = program_of(adapter, &program, config).ok_or_else(|| Error::AgentMissing {
        agent: adapter.name().into(),
        program: program.clone(),
        install: adapter.profile().install.into(),
        configured: settings.bin.is_some(),
        others: others(adapter, config),
    })?;
    let identity = identity(&path).map_err(Error::io(format!("looking at {}", path.display())))?;
    let known = hub.binary(&identity).await?;
    let complete = |facts: &Facts| facts.usage.is_some() && facts.contained.is_some();
    if let Some(facts) = known.filter(complete) {
        return Ok(Binary {
            path,
            identity,
            facts,
        });
    }
    let (facts, late) = find_out(config, adapter, &path).await?;
    set_proving(None);
    // A result that a busy machine may have caused is not remembered.
    if !late {
        hub.keep_binary(&identity, adapter.name(), &facts).await?;
    }
    Ok(Binary {
        path,
        identity,
        facts,
    })
}

/// Returns the names of the other agents whose programs are found.
fn others(missing: &dyn Adapter, config: &RunnerConfig) -> Vec<String> {
    let found = |adapter: &&'static dyn Adapter| {
        let usual = adapter.profile().program;
        let bin = config.agent(adapter.name()).bin.clone();
        let program = bin.or_else(|| usual.map(str::to_owned));
        program.is_some_and(|program| program_of(*adapter, &program, config).is_some())
    };
    let all = rejoin_agents::ADAPTERS.iter().copied();
    let others = all.filter(|adapter| adapter.name() != missing.name());
    let names = others
        .filter(found)
        .map(|adapter| adapter.name().to_owned());
    names.collect()
}

/// Returns an agent that is part of rejoin: it has our version, and it needs no proof.
fn builtin(adapter: &'static dyn Adapter) -> Result<Binary> {
    let version = env!("CARGO_PKG_VERSION");
    let text = format!("rejoin {} agent {version}", adapter.name());
    let runtime = adapter
        .runtime(&text)
        .ok_or_else(|| Error::Internal(format!("`{text}` is no version")))?;
    let facts = Facts {
        runtime,
        no_resume: None,
        proven: true,
        totals: TotalsScope::PerRun,
        usage: Some(TotalsScope::PerRun),
        neutral: MentionEscape::ByPlace,
        contained: Some(RepositoryIsolation::NoFlags),
        rows: vec![],
        proven_at: None,
    };
    Ok(Binary {
        path: SELF.into(),
        identity: text,
        facts,
    })
}

/// Returns the program itself: behind a wrapper, the program that the wrapper would start.
pub fn program_of(
    adapter: &'static dyn Adapter,
    program: &str,
    config: &RunnerConfig,
) -> Option<PathBuf> {
    let found = locate(program, config)?;
    let wrapper = adapter.capabilities().wrapper;
    let native = wrapper.map_or_else(Vec::new, |wrapper| wrapper.native(&found));
    let mut native = native
        .into_iter()
        .filter_map(|path| locate(path.to_str()?, config));
    Some(native.next().unwrap_or(found))
}

/// Locates a program as a shell would: a name in `PATH`, anything with a slash as a path.
pub fn locate(program: &str, config: &RunnerConfig) -> Option<PathBuf> {
    let runnable = |path: &Path| {
        let meta = fs_err::metadata(path).ok()?;
        (meta.is_file() && meta.permissions().mode() & 0o111 != 0).then(|| path.to_path_buf())
    };
    if program.contains('/') {
        let home = config.var("HOME").unwrap_or_default();
        let expanded = program
            .strip_prefix("~/")
            .map_or_else(|| program.to_owned(), |rest| format!("{home}/{rest}"));
        return runnable(Path::new(&expanded)).and_then(|p| fs_err::canonicalize(p).ok());
    }
    let path = config.var("PATH")?;
    let found = std::env::split_paths(&path).find_map(|folder| runnable(&folder.join(program)))?;
    fs_err::canonicalize(found).ok()
}

pub(crate) fn identity(path: &Path) -> std::io::Result<String> {
    let meta = fs_err::metadata(path)?;
    let stat = (
        meta.dev(),
        meta.ino(),
        meta.len(),
        meta.mtime(),
        meta.mtime_nsec(),
    );
    Ok(format!("{} {stat:?}", path.display()))
}

pub(crate) async fn find_out(
    config: &RunnerConfig,
    adapter: &'static dyn Adapter,
    path: &Path,
) -> Result<(Facts, bool)> {
    let runtime = version(config, adapter, path).await?;
    set_proving(Some(runtime.to_string()));
    let Proof {
        tried,
        resume,
        totals,
        usage,
        neutral,
        contained,
        late,
    } = prove(config, adapter, path, &runtime).await;
    let said = adapter.profile().totals;
    let (totals, usage) = (said.unwrap_or(totals), said.unwrap_or(usage));
    let asked = match (resume, adapter.capabilities().proof) {
        (true, _) | (false, None) => None,
        (false, Some(proof)) => {
            let said = ask(config, adapter, path, proof.probe()).await?;
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            proof.judge_probe(&text(&said.stdout), &text(&said.stderr))
        }
    };
    // The program knows the flag but did not resume.
    let failed = (tried && !resume && !late).then(|| "it did not resume when it was tried".into());
    let no_resume = asked.or(failed);
    let facts = Facts {
        runtime,
        no_resume,
        proven: resume,
        totals,
        usage: Some(usage),
        neutral,
        contained: Some(contained),
        rows: vec![],
        proven_at: None,
    };
    Ok((facts, late))
}

/// Asks the program for its version.
pub(crate) async fn version(
    config: &RunnerConfig,
    adapter: &'static dyn Adapter,
    path: &Path,
) -> Result<Runtime> {
    let not_it = |why: String| Error::NotThatAgent {
        agent: adapter.name().into(),
        program: path.display().to_string(),
        why,
    };
    let said = ask(config, adapter, path, vec!["--version".into()]).await?;
    let version = String::from_utf8_lossy(&said.stdout).into_owned();
    adapter.runtime(&version).ok_or_else(|| {
        let first = version
            .lines()
            .next()
            .unwrap_or("nothing")
            .chars()
            .take(80)
            .collect::<String>();
        not_it(format!("--version says “{first}”"))
    })
}

/// Runs one short command in an empty folder and without our own variables.
pub(crate) async fn ask(
    config: &RunnerConfig,
    adapter: &'static dyn Adapter,
    path: &Path,
    args: Vec<String>,
) -> Result<Captured> {
    let rules = adapter.environment();
    let env = rejoin_agents::compose_env(config.env.clone(), &rules, &[], &[]);
    let var = |name: &str| env.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone());
    let home = adapter.home(&var);
    let asking = || format!("asking {} for its version", adapter.name());
    let scratch = tempfile::tempdir().map_err(Error::io(asking()))?;
    let wall = wall_of(
        &config.wall,
        path,
        home.as_deref(),
        scratch.path(),
        &var,
        false,
    );
    let trial = ContainedCall {
        program: path.to_owned(),
        args,
        env: env.clone(),
        folder: scratch.path().to_owned(),
        stdin: vec![],
        may_take: PROBE_MAY_TAKE,
        wall,
    };
    let said = trial.run().await.map_err(Error::io(asking()))?;
    if said.timed_out {
        let late = std::io::Error::new(std::io::ErrorKind::TimedOut, "it did not answer in time");
        return Err(Error::io(asking())(late));
    }
    Ok(said)
}
