//! Stops calls beyond a limit: `rejoin limit`, which a CLI runs before each call of a limited tool.
//! Each call that is permitted takes a line in a file of the run, under a lock. After any error the
//! call is denied.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fs_err::os::unix::fs::OpenOptionsExt;
use rejoin_agents::{ADAPTERS, Adapter, CommandSpec};
use rejoin_core::{LimitState, rule_matches, tool_of_rule};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::attempt::text;
use crate::error::{Error, Result};
use crate::hook::myself;
use crate::wall::Gap;

/// Variables that hold the limits of the run, and the path of its file.
const LIMITS: &str = "REJOIN_LIMITS";
const FILE: &str = "REJOIN_LIMITS_FILE";

/// Name of the file in the folder of the run.
const NAME: &str = "calls";
/// Exit code by which a CLI denies the call.
const DENIED: u8 = 2;

/// Limit of one run.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct RunLimit {
    tool: String,
    left: u64,
    max: u64,
    again_at: Option<String>,
}

/// Adds the program to a command whose run has limits. Fails if the CLI cannot have it.
pub(crate) fn with_limits(
    adapter: &dyn Adapter,
    command: CommandSpec,
    folder: &Path,
    limits: &[LimitState],
) -> Result<CommandSpec> {
    if limits.is_empty() {
        return Ok(command);
    }
    let mut tools: Vec<&str> = limits.iter().map(|it| tool_of_rule(&it.tool)).collect();
    tools.sort_unstable();
    tools.dedup();
    let limited = adapter.capabilities().limits.zip(myself());
    let limited =
        limited.and_then(|(limits, program)| limits.with_limits(command, &program, &tools));
    let cannot = || {
        let name = adapter.name();
        let text = format!("{name} cannot be stopped at a limit of calls with these arguments");
        Error::Permissions(text)
    };
    let mut limited = limited.ok_or_else(cannot)?;
    let of_run = |state: &LimitState| RunLimit {
        tool: state.tool.clone(),
        left: state.left,
        max: state.max,
        again_at: state.again_at.clone(),
    };
    let of_run: Vec<RunLimit> = limits.iter().map(of_run).collect();
    let of_run = serde_json::to_string(&of_run).map_err(|e| Error::Internal(e.to_string()))?;
    limited.env.extend([
        (LIMITS.to_owned(), of_run),
        (FILE.to_owned(), text(&folder.join(NAME))?),
    ]);
    Ok(limited)
}

/// Returns the opening in the wall that the program needs.
pub(crate) fn gaps(env: &[(String, String)]) -> Vec<Gap> {
    let file = env.iter().find(|(name, _)| name == FILE);
    let gap = file.map(|(_, file)| Gap::to_write(PathBuf::from(file)));
    gap.into_iter().collect()
}

/// Runs `rejoin limit`: reads the call from stdin. The exit code permits or denies it.
pub fn main() -> ExitCode {
    let mut told = vec![];
    let read = io::stdin().read_to_end(&mut told);
    let call = ADAPTERS.iter().find_map(|adapter| {
        let limits = adapter.capabilities().limits?;
        limits.limited_call(&told)
    });
    let taken = match (read, call) {
        (Ok(_), Some((tool, input))) => take(&tool, &input),
        _ => Err("rejoin cannot read the call".to_owned()),
    };
    match taken {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            let _gone = writeln!(io::stderr(), "{why}");
            ExitCode::from(DENIED)
        }
    }
}

/// Takes a call from the limits of this run. Returns the reason if it is denied.
pub fn take(tool: &str, input: &Value) -> std::result::Result<(), String> {
    let Some(limits) = std::env::var_os(LIMITS) else {
        return Ok(());
    };
    let failed = |why: String| format!("rejoin cannot count the call, so it is denied: {why}");
    let limits: Vec<RunLimit> = serde_json::from_slice(limits.as_encoded_bytes())
        .map_err(|error| failed(error.to_string()))?;
    let matching = |(_, limit): &(usize, &RunLimit)| rule_matches(&limit.tool, tool, input);
    let matching: Vec<(usize, &RunLimit)> = limits.iter().enumerate().filter(matching).collect();
    if matching.is_empty() {
        return Ok(());
    }
    let file = std::env::var_os(FILE).ok_or_else(|| failed(format!("{FILE} is not set")))?;
    count(Path::new(&file), &matching).map_err(|error| failed(error.to_string()))?
}

/// Adds a line for each matching limit if none is used up.
fn count(
    path: &Path,
    matching: &[(usize, &RunLimit)],
) -> io::Result<std::result::Result<(), String>> {
    let mut options = fs_err::OpenOptions::new();
    options.read(true).append(true).create(true).mode(0o600);
    let file = options.open(path)?;
    let mut file = nix::fcntl::Flock::lock(file.into_file(), nix::fcntl::FlockArg::LockExclusive)
        .map_err(|(_, error)| io::Error::from(error))?;
    let mut made = String::new();
    file.read_to_string(&mut made)?;
    let mut lines = String::new();
    for (n, limit) in matching {
        let line = n.to_string();
        let calls = made.lines().filter(|made| **made == line).count() as u64;
        if calls >= limit.left {
            return Ok(Err(refusal(limit)));
        }
        lines.push_str(&line);
        lines.push('\n');
    }
    file.write_all(lines.as_bytes())?;
    Ok(Ok(()))
}

fn refusal(limit: &RunLimit) -> String {
    let (tool, max) = (&limit.tool, limit.max);
    let text = format!("The limit of {tool} is used up ({max} calls); the call is denied.");
    match &limit.again_at {
        Some(at) => format!("{text} Available again at {at}."),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn of_calls_at_once_only_those_that_are_left_are_permitted() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(NAME);
        let limit = |tool: &str, left| RunLimit {
            tool: tool.into(),
            left,
            max: 5,
            again_at: None,
        };
        let (three, none) = (limit("Bash(make:*)", 3), limit("Bash", 0));
        let permitted = thread::scope(|scope| {
            let take = || count(&file, &[(0, &three)]).unwrap().is_ok();
            let all: Vec<_> = (0..16).map(|_| scope.spawn(take)).collect();
            let permitted = all.into_iter().map(|one| one.join().unwrap());
            permitted.filter(|ok| *ok).count()
        });
        assert_eq!(permitted, 3);
        let one = limit("Bash(make:*)", 4);
        let both = count(&file, &[(0, &one), (1, &none)]).unwrap();
        assert!(both.unwrap_err().contains("The limit of Bash is used up"));
        // The denied call took nothing from the other limit.
        assert!(count(&file, &[(0, &one)]).unwrap().is_ok());
    }
}
