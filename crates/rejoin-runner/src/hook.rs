//! The program that a CLI calls before it asks a person a question: `rejoin hook`. It reports the
//! call to the process that follows the run and waits for the answer. If no answer comes in time,
//! it tells the CLI to defer the call, and the CLI exits. After any error it prints nothing, and
//! the CLI asks as it would without a hook.

use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fs_err::os::unix::fs::OpenOptionsExt;
use rejoin_agents::{ADAPTERS, CallState, CommandSpec, Defer, HeldCall, Hook};

use crate::attempt::text;
use crate::error::Result;
use crate::wall::Gap;
use crate::warm::WarmProcess;

/// Variables that name the folder of the run, and the time to wait in milliseconds.
const FOLDER: &str = "REJOIN_HOOK_FOLDER";
const AFTER: &str = "REJOIN_HOOK_AFTER_MS";

/// Files in that folder: calls that the hook reports, and ids of calls that it need not hold any
/// longer.
const ASIDE: &str = "aside";
const ANSWERED: &str = "answered";

const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Time by which the output that precedes the call of the hook must be in the spool.
const KNOWN_BY: Duration = Duration::from_secs(2);
/// Seconds that the CLI allows the hook beyond its waiting time.
const SPARE: u64 = 60;

/// Returns the command with the hook, or unchanged if its CLI supports no hooks.
pub(crate) fn with_hook(
    adapter: &dyn rejoin_agents::Adapter,
    command: CommandSpec,
    folder: &Path,
    after: Duration,
) -> Result<CommandSpec> {
    let Some(program) = myself() else {
        return Ok(command);
    };
    let hook = Hook {
        program: &program,
        seconds: after.as_secs() + SPARE,
    };
    let Some(mut hooked) = adapter
        .capabilities()
        .defer
        .and_then(|defer| defer.with_hook(command.clone(), &hook))
    else {
        return Ok(command);
    };
    hooked.env.extend([
        (FOLDER.to_owned(), text(folder)?),
        (AFTER.to_owned(), after.as_millis().to_string()),
    ]);
    Ok(hooked)
}

/// Returns the path of this program. A path, because the CLI calls the hook later, and the program
/// may have been replaced by a newer build by then.
pub(crate) fn myself() -> Option<String> {
    let path = std::env::current_exe().ok()?;
    let path = path.to_str()?;
    Some(path.strip_suffix(" (deleted)").unwrap_or(path).to_owned())
}

/// Returns the path of the file in which the hook of a run reports calls, one per line.
pub(crate) fn aside(folder: &Path) -> PathBuf {
    desk(folder).join(ASIDE)
}

/// Tells the hook that it need not wait any longer for this call.
pub(crate) fn let_go(folder: &Path, call: &str) -> io::Result<()> {
    append(&desk(folder).join(ANSWERED), &format!("{call}\n"))
}

/// Returns the folder with the files of a run's hook: the folder of the process, if the process
/// outlives the run.
fn desk(run: &Path) -> PathBuf {
    WarmProcess::of_run(run).map_or_else(|| run.to_owned(), |host| host.folder)
}

/// Empties the files of earlier turns. They are not removed, because the wall has the file that the
/// hook writes open by its inode.
pub(crate) fn forget(folder: &Path) {
    for name in [ASIDE, ANSWERED] {
        let file = fs_err::OpenOptions::new()
            .write(true)
            .open(folder.join(name));
        drop(file.and_then(|file| file.set_len(0)));
    }
}

/// Returns the openings in the wall that the hook of a command needs: read access to the folder of
/// its run, and write access to the file in it that the hook writes.
pub(crate) fn gaps(env: &[(String, String)]) -> Vec<Gap> {
    let folder = env.iter().find(|(name, _)| name == FOLDER);
    let folder = folder.map(|(_, folder)| PathBuf::from(folder));
    folder.map_or_else(Vec::new, |folder| {
        let aside = Gap::to_write(folder.join(ASIDE));
        vec![Gap::to_read(folder), aside]
    })
}

/// Runs `rejoin hook`: reads the call from stdin and prints the decision to stdout.
pub fn main() {
    let folder = std::env::var_os(FOLDER).map(PathBuf::from);
    let after = std::env::var(AFTER).ok().and_then(|ms| ms.parse().ok());
    let (Some(folder), Some(after)) = (folder, after) else {
        return;
    };
    let mut told = vec![];
    if io::stdin().read_to_end(&mut told).is_err() {
        return;
    }
    let held = ADAPTERS.iter().find_map(|adapter| {
        let defer = adapter.capabilities().defer?;
        Some((defer, defer.held_call(&told)?))
    });
    let Some((agent, call)) = held else {
        return;
    };
    if waits_in_vain(&folder, agent, &call, Duration::from_millis(after)).unwrap_or(false) {
        let _gone = io::stdout().write_all(agent.deferral().as_bytes());
    }
}

/// Waits for an answer. Returns true if none came in time and the call can be deferred.
fn waits_in_vain(
    folder: &Path,
    agent: &dyn Defer,
    call: &HeldCall,
    after: Duration,
) -> io::Result<bool> {
    let begin = Instant::now();
    let mut alone = false;
    // In a process that stays up, only output of this turn counts.
    let from = WarmProcess::at(folder).turn_from();
    loop {
        if is_answered(folder, &call.id) {
            return Ok(false);
        }
        if !alone {
            let mut printed = fs_err::File::open(folder.join("out"))?;
            printed.seek(SeekFrom::Start(from))?;
            match agent.call_state(&call.id, &mut BufReader::new(printed))? {
                CallState::Alone => {
                    alone = true;
                    append(&folder.join(ASIDE), &call.line)?;
                }
                CallState::NotAlone => return Ok(false),
                // The caller is not the agent whose output is in the spool, for example a
                // sub-agent.
                CallState::Unknown if begin.elapsed() > KNOWN_BY => return Ok(false),
                CallState::Unknown => {}
            }
        }
        if begin.elapsed() >= after {
            return Ok(alone);
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

fn is_answered(folder: &Path, call: &str) -> bool {
    let answered = fs_err::read_to_string(folder.join(ANSWERED)).unwrap_or_default();
    answered.lines().any(|line| line == call)
}

/// Appends the line with a single write, because other processes may be writing to the file.
fn append(path: &Path, line: &str) -> io::Result<()> {
    let mut options = fs_err::OpenOptions::new();
    options.append(true).create(true).mode(0o600);
    options.open(path)?.write_all(line.as_bytes())
}
