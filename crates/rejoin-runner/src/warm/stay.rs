//! `rejoin stay`: the command that a turn's shim runs in place of a CLI that stays up.

mod copy;

use std::collections::BTreeSet;
use std::io::{self, BufRead as _, Write as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use rejoin_agents::TurnState;

use super::{MOST_SAID, WarmProcess};
use crate::process::tree;
use crate::shim::{Hello, Order, Spec};
use crate::shim_link::{News, ShimLink};
use copy::Copy;

/// Name of the hidden command.
pub const COMMAND: &str = "stay";
const USAGE: &str = "rejoin: stay takes FOLDER AGENT FROM REST_MS BYTES; rejoin calls it itself";
/// Exit code if the prompt was not delivered because the process is gone.
pub(super) const NOT_TAKEN: u8 = 76;
/// Time that a new process may take until its shim accepts connections.
const STARTS_WITHIN: Duration = Duration::from_secs(20);
/// Time in which a process that waits for its next prompt accepts our connection.
const ADMITS_WITHIN: Duration = Duration::from_secs(2);
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// Time in which programs that a CLI runs at the end of a turn must finish.
const ON_ITS_WAY_OUT: Duration = Duration::from_millis(500);
/// Time in which the rest of a turn's output follows its last message.
const TRAILS_FOR: Duration = Duration::from_secs(5);
/// Size of the pieces in which stdin is sent: an order may hold at most 32 MiB, in quotes.
const PIECE: usize = 1 << 20;
/// Longest delay if a notification gets lost.
const SAFETY: Duration = Duration::from_secs(1);

/// Arguments on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stay {
    pub(crate) host: PathBuf,
    pub(crate) agent: String,
    /// Number of bytes that were printed before this turn.
    pub(crate) from: u64,
    /// Time for which the process may rest, in milliseconds, and its largest size in bytes.
    pub(crate) rest_ms: u64,
    pub(crate) bytes: u64,
}

impl Stay {
    pub(crate) fn args(&self) -> io::Result<Vec<String>> {
        let host = self.host.to_str().ok_or(io::ErrorKind::InvalidInput)?;
        let numbers = [self.from, self.rest_ms, self.bytes].map(|n| n.to_string());
        let words = [COMMAND, host, self.agent.as_str()].map(str::to_owned);
        Ok(words.into_iter().chain(numbers).collect())
    }

    /// Reads the arguments from a run's spec. Returns None if the run is not `rejoin stay`.
    pub(crate) fn of(spec: &Spec) -> Option<Self> {
        let [_, command, args @ ..] = spec.argv.as_slice() else {
            return None;
        };
        Self::read(args).filter(|_| command == COMMAND)
    }

    fn read(args: &[String]) -> Option<Self> {
        let [host, agent, from, rest_ms, bytes] = args else {
            return None;
        };
        Some(Self {
            host: host.into(),
            agent: agent.clone(),
            from: from.parse().ok()?,
            rest_ms: rest_ms.parse().ok()?,
            bytes: bytes.parse().ok()?,
        })
    }
}

/// Runs the command. Its exit code says little: the end of the CLI is in the `end.json` of the
/// CLI's own shim. If there is none, 0 means that the process rests.
pub fn main(args: &[String]) -> u8 {
    let Some(stay) = Stay::read(args) else {
        let _gone = writeln!(io::stderr(), "{USAGE}");
        return 2;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let Ok(runtime) = runtime else {
        return 1;
    };
    let code = runtime.block_on(turn(&stay)).unwrap_or_else(|error| {
        let _gone = writeln!(io::stderr(), "rejoin: {error}");
        1
    });
    // A thread that reads stdin may block for ever.
    runtime.shutdown_background();
    code
}

async fn turn(stay: &Stay) -> io::Result<u8> {
    let adapter = rejoin_agents::adapter(&stay.agent);
    let warm = adapter.and_then(|adapter| adapter.capabilities().warm);
    let reader = warm.ok_or(io::ErrorKind::InvalidInput)?.turn_end_reader();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut said = lines_of_stdin();
    let host = WarmProcess::at(&stay.host);
    let Some(mut shim) = reach(&host, stay.from == 0).await? else {
        return Ok(NOT_TAKEN);
    };
    let (hello, processes) = (shim.hello(), reader.processes());
    let mut copy = Copy::new(&stay.host, stay.from, reader)?;
    let (mut begun, mut open, mut here) = (false, true, true);
    let mut over_at = None;
    loop {
        // Check for the end first, then read the output: nothing can be printed in between.
        let ended = host.is_gone();
        let rests = match copy.on()? {
            TurnState::Running => None,
            TurnState::ResultPrinted => {
                let at: &mut Instant = over_at.get_or_insert_with(Instant::now);
                (at.elapsed() > TRAILS_FOR).then_some(false)
            }
            TurnState::Ended(may_rest) => Some(may_rest),
        };
        if let Some(may_rest) = rests.filter(|_| open) {
            let ms = stay.rest_ms;
            // The process may have printed more while it was checked.
            let rests = may_rest
                && here
                && is_fit(&host, hello, processes, stay.bytes).await
                && copy.on()? == TurnState::Ended(true);
            if rests && shim.order(Order::Rest { ms }).await.is_ok() {
                return Ok(0);
            }
            // The process ends by itself and may still print something.
            if here {
                drop(shim.order(Order::CloseStdin).await);
            }
            open = false;
        }
        if ended {
            return Ok(u8::from(rests.is_none()));
        }
        tokio::select! {
            line = said.recv(), if open && here => {
                open = line.is_some();
                if let Some(line) = &line {
                    copy.stdin_line(line);
                }
                for order in orders(line.as_deref()) {
                    let told = shim.order(order).await;
                    // Only an explicit refusal means that the data was not delivered.
                    let refused = |e: &io::Error| e.kind() == io::ErrorKind::Other;
                    if !begun && told.as_ref().is_err_and(refused) {
                        return Ok(NOT_TAKEN);
                    }
                    begun = true;
                }
            },
            news = tokio::time::timeout(SAFETY, shim.news()), if here => {
                here = !matches!(news, Ok(News::HungUp));
            }
            () = tokio::time::sleep(LOOK_AGAIN), if !here || over_at.is_some() => {}
            _ = interrupt.recv() => drop(shim.order(Order::Interrupt).await),
            _ = terminate.recv() => drop(shim.order(Order::Stop).await),
        }
    }
}

/// Splits a line for stdin into orders; None, the end of stdin, becomes `CloseStdin`.
fn orders(line: Option<&str>) -> Vec<Order> {
    let Some(mut rest) = line else {
        return vec![Order::CloseStdin];
    };
    let mut orders = vec![];
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE));
        orders.push(Order::Stdin { data: piece.into() });
        rest = after;
    }
    orders
}

/// Connects to the shim of a warm process. A new shim may not listen yet. Any shim may refuse for a
/// moment: it checks in the folder of our own shim if we may give orders, and that shim returns to
/// the folder of its run only after it has started us.
async fn reach(host: &WarmProcess, is_new: bool) -> io::Result<Option<ShimLink>> {
    let begin = Instant::now();
    let within = if is_new { STARTS_WITHIN } else { ADMITS_WITHIN };
    loop {
        let link = ShimLink::connect(&host.folder).await?;
        let gone = || {
            if is_new {
                host.has_ended()
            } else {
                host.is_gone()
            }
        };
        if link.is_some() || begin.elapsed() >= within || gone() {
            return Ok(link);
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// Returns true if the process has nothing running below it and is small enough.
async fn is_fit(host: &WarmProcess, at: Hello, processes: usize, bytes: u64) -> bool {
    let since = Instant::now();
    let own = loop {
        let running = running(at);
        if running.len() == processes && running.contains(&at.cli) {
            break running;
        }
        if since.elapsed() > ON_ITS_WAY_OUT {
            return false;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    };
    let size: Option<u64> = own.into_iter().map(resident).sum();
    host.said() <= MOST_SAID && size.is_some_and(|size| size <= bytes)
}

/// Returns the processes below the shim, which include everything that the CLI left behind. A child
/// that ends while it is looked at counts, because it may have started another one.
fn running(at: Hello) -> BTreeSet<i32> {
    let children = tree::children(at.pid).unwrap_or_default();
    let below = tree::below(&tree::all(), &[at.pid], &[]);
    let alive = below.iter().filter(|it| !it.zombie);
    alive.map(|it| it.pid).chain(children).collect()
}

fn resident(pid: i32) -> Option<u64> {
    let status = fs_err::read_to_string(tree::file(pid, "status")).ok()?;
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

fn lines_of_stdin() -> mpsc::UnboundedReceiver<String> {
    let (send, lines) = mpsc::unbounded_channel();
    // A blocking read cannot be cancelled, so it gets a thread of its own.
    std::thread::spawn(move || {
        let mut stdin = io::stdin().lock();
        loop {
            let mut line = String::new();
            match stdin.read_line(&mut line) {
                Ok(1..) if send.send(line).is_ok() => {}
                Ok(_) | Err(_) => return,
            }
        }
    });
    lines
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_it_is_told() {
        let stay = Stay {
            host: "/a b/c".into(),
            agent: "claude".into(),
            from: 7,
            rest_ms: 8,
            bytes: 9,
        };
        let args = stay.args().unwrap();
        assert_eq!(args[0], COMMAND);
        assert_eq!(Stay::read(&args[1..]), Some(stay));
        assert_eq!(Stay::read(&args[2..]), None);
    }

    #[test]
    fn a_long_line_is_told_in_pieces() {
        assert_eq!(orders(None), [Order::CloseStdin]);
        let told = |line: &str| -> Vec<String> {
            let orders = orders(Some(line)).into_iter();
            orders
                .map(|order| {
                    let Order::Stdin { data } = order else {
                        panic!("{order:?}")
                    };
                    data
                })
                .collect()
        };
        assert_eq!(told("short\n"), ["short\n"]);
        // Three bytes per character, so that a piece would end inside one.
        let line = "\u{2019}".repeat(PIECE) + "\n";
        let pieces = told(&line);
        assert_eq!((pieces.len(), pieces.concat() == line), (4, true));
    }
}
