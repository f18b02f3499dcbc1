//! Finds the program behind an agent's name and what is known of it: version, whether a resume is
//! proven, what its totals cover. Found out once per binary, then remembered.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rejoin_agents::{Adapter, Contained, Facts, Neutral};
use rejoin_core::{Runtime, TotalsScope};
use rejoin_hub::HubLink;

use crate::config::RunnerConfig;
use crate::error::{Error, Result};
use crate::process::{Captured, SELF, capture};
use crate::prove::{Proof, prove};

const PROBE_MAY_TAKE: Duration = Duration::from_secs(30);

/// A program that answers for an agent.
#[derive(Debug, Clone)]
pub struct Binary {
    pub path: PathBuf,
    /// Changes whenever the file does.
    pub identity: String,
    pub facts: Facts,
}

pub async fn find(
    link: &impl HubLink,
    config: &RunnerConfig,
    adapter: &'static dyn Adapter,
) -> Result<Binary> {
    let Some(usual) = adapter.program() else {
        return builtin(adapter);
    };
    let settings = config.agent(adapter.name());
    let program = settings.bin.clone().unwrap_or_else(|| usual.to_owned());
    let path = program_of(adapter, &program, config).ok_or_else(|| Error::AgentMissing {
        agent: adapter.name().into(),
        program: program.clone(),
        install: adapter.install().into(),
    })?;
    let identity = identity(&path).map_err(Error::io(format!("looking at {}", path.display())))?;
    let known = link.binary(&identity).await?;
    let complete = |facts: &Facts| facts.usage.is_some() && facts.contained.is_some();
    if let Some(facts) = known.filter(complete) {
        return Ok(Binary {
            path,
            identity,
            facts,
        });
    }
    let (facts, late) = find_out(config, adapter, &path).await?;
    // What only a busy machine showed is not remembered.
    if !late {
        link.keep_binary(&identity, adapter.name(), &facts).await?;
    }
    Ok(Binary {
        path,
        identity,
        facts,
    })
}

/// Our own agent: the version is ours, and it needs no proof.
fn builtin(adapter: &'static dyn Adapter) -> Result<Binary> {
    let text = format!("rejoin demo agent {}", env!("CARGO_PKG_VERSION"));
    let runtime = adapter
        .runtime(&text)
        .ok_or_else(|| Error::Internal(format!("`{text}` is no version")))?;
    let facts = Facts {
        runtime,
        no_resume: None,
        proven: true,
        totals: TotalsScope::PerRun,
        usage: Some(TotalsScope::PerRun),
        neutral: Neutral::ByPlace,
        contained: Some(Contained::NoFlags),
        rows: vec![],
        proven_at: None,
    };
    Ok(Binary {
        path: SELF.into(),
        identity: text,
        facts,
    })
}

/// The program itself: behind a wrapper, the one that it would start.
pub fn program_of(
    adapter: &'static dyn Adapter,
    program: &str,
    config: &RunnerConfig,
) -> Option<PathBuf> {
    let found = locate(program, config)?;
    let native = adapter.native(&found).into_iter();
    let native = native.filter_map(|path| locate(path.to_str()?, config));
    Some(native.take(1).next().unwrap_or(found))
}

/// As a shell would: a name by `PATH`, anything with a slash as a path.
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
    let Proof {
        tried,
        resume,
        totals,
        usage,
        neutral,
        contained,
        late,
    } = prove(config, adapter, path, &runtime).await;
    let said = adapter.totals();
    let (totals, usage) = (said.unwrap_or(totals), said.unwrap_or(usage));
    let asked = match (resume, adapter.probe()) {
        (true, _) | (false, None) => None,
        (false, Some(args)) => {
            let said = ask(config, adapter, path, args).await?;
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            adapter.judge_probe(&text(&said.stdout), &text(&said.stderr))
        }
    };
    // It knows the flag, and did not do what it says.
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

/// What the program calls itself.
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

/// One short call, off the async threads, in an empty folder of its own and without our own
/// variables.
pub(crate) async fn ask(
    config: &RunnerConfig,
    adapter: &'static dyn Adapter,
    path: &Path,
    args: Vec<String>,
) -> Result<Captured> {
    let rules = adapter.environment();
    let env = rejoin_agents::compose_env(config.env.clone(), &rules, &[], &[]);
    let path = path.to_path_buf();
    let call = tokio::task::spawn_blocking(move || {
        let scratch = tempfile::tempdir()?;
        let env = env
            .into_iter()
            .map(|(n, v)| (OsString::from(n), OsString::from(v)));
        capture(
            path.as_os_str(),
            args.iter().map(OsStr::new),
            env,
            scratch.path(),
            b"",
            PROBE_MAY_TAKE,
        )
    });
    let done = call.await.map_err(|e| Error::Internal(e.to_string()))?;
    let asking = || format!("asking {} for its version", adapter.name());
    let said = done.map_err(Error::io(asking()))?;
    if said.timed_out {
        let late = std::io::Error::new(std::io::ErrorKind::TimedOut, "it did not answer in time");
        return Err(Error::io(asking())(late));
    }
    Ok(said)
}
