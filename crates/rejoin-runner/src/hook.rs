//! The program that a CLI calls before it asks a person something: `rejoin hook`. It tells whoever
//! follows the run, and waits for the answer; if none comes in time, the CLI puts the question off and
//! ends. Whatever goes wrong here, it says nothing, and the CLI asks as it would without it.

use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fs_err::os::unix::fs::OpenOptionsExt;
use rejoin_agents::claude_hook::{DEFER, HeldCall, Standing, standing};
use rejoin_agents::{CommandSpec, Hook};

use crate::attempt::text;
use crate::error::Result;
use crate::wall::Gap;
use crate::warm::Host;

/// The folder of the run, and how many milliseconds it waits.
const FOLDER: &str = "REJOIN_HOOK_FOLDER";
const AFTER: &str = "REJOIN_HOOK_AFTER_MS";

/// What it tells, and what it is told, each a file in that folder.
const ASIDE: &str = "aside";
const ANSWERED: &str = "answered";

const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// What is printed before it is called is there by then.
const KNOWN_BY: Duration = Duration::from_secs(2);
/// What the CLI gives it beyond the time it waits.
const SPARE: u64 = 60;

/// The command with the hook in it, if its CLI knows such a thing.
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
    let Some(mut hooked) = adapter.hooked(command.clone(), &hook) else {
        return Ok(command);
    };
    hooked.env.extend([
        (FOLDER.to_owned(), text(folder)?),
        (AFTER.to_owned(), after.as_millis().to_string()),
    ]);
    Ok(hooked)
}

/// By its path: the CLI calls it later, and by then it may have been replaced by a newer one.
fn myself() -> Option<String> {
    let path = std::env::current_exe().ok()?;
    let path = path.to_str()?;
    Some(path.strip_suffix(" (deleted)").unwrap_or(path).to_owned())
}

/// What the hook of a run tells, line by line.
pub(crate) fn aside(folder: &Path) -> PathBuf {
    desk(folder).join(ASIDE)
}

/// Tells the hook that it need not wait any longer.
pub(crate) fn let_go(folder: &Path, call: &str) -> io::Result<()> {
    append(&desk(folder).join(ANSWERED), &format!("{call}\n"))
}

/// Where the hook of a run tells and is told: with the process, if that outlives the run.
fn desk(run: &Path) -> PathBuf {
    Host::of_run(run).map_or_else(|| run.to_owned(), |host| host.folder)
}

/// Empties the files of earlier turns. They are not removed: the one that the hook writes is open in the
/// wall by its inode.
pub(crate) fn forget(folder: &Path) {
    for name in [ASIDE, ANSWERED] {
        let file = fs_err::OpenOptions::new()
            .write(true)
            .open(folder.join(name));
        drop(file.and_then(|file| file.set_len(0)));
    }
}

/// Openings in the wall that the hook of a command needs: the folder of its run to read, and the file
/// in it that the hook writes.
pub(crate) fn gaps(env: &[(String, String)]) -> Vec<Gap> {
    let folder = env.iter().find(|(name, _)| name == FOLDER);
    let folder = folder.map(|(_, folder)| PathBuf::from(folder));
    folder.map_or_else(Vec::new, |folder| {
        let aside = Gap::to_write(folder.join(ASIDE));
        vec![Gap::to_read(folder), aside]
    })
}

/// `rejoin hook`: the call on stdin, the decision on stdout.
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
    let Some(call) = HeldCall::read(&told) else {
        return;
    };
    if waits_in_vain(&folder, &call, Duration::from_millis(after)).unwrap_or(false) {
        let _gone = io::stdout().write_all(DEFER.as_bytes());
    }
}

/// True: nobody answered, and the call can be put off.
fn waits_in_vain(folder: &Path, call: &HeldCall, after: Duration) -> io::Result<bool> {
    let begin = Instant::now();
    let mut alone = false;
    // Of a process that stays up, what belongs to this turn.
    let from = Host::at(folder).turn_from();
    loop {
        if is_answered(folder, &call.id) {
            return Ok(false);
        }
        if !alone {
            let mut printed = fs_err::File::open(folder.join("out"))?;
            printed.seek(SeekFrom::Start(from))?;
            match standing(&call.id, BufReader::new(printed))? {
                Standing::Alone => {
                    alone = true;
                    append(&folder.join(ASIDE), &call.line())?;
                }
                Standing::NotAlone => return Ok(false),
                // Who asks is not the one that prints: a sub-agent, say.
                Standing::Unknown if begin.elapsed() > KNOWN_BY => return Ok(false),
                Standing::Unknown => {}
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

/// In one piece: others may be writing to it.
fn append(path: &Path, line: &str) -> io::Result<()> {
    let mut options = fs_err::OpenOptions::new();
    options.append(true).create(true).mode(0o600);
    options.open(path)?.write_all(line.as_bytes())
}
