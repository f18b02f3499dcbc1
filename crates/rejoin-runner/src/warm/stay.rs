//! `rejoin stay`: what a turn's shim runs in the place of a CLI that stays up.

mod copy;

use std::io::{self, BufRead as _, Write as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use rejoin_agents::{Adapter, Standing};

use super::{Host, MOST_SAID};
use crate::process::tree;
use crate::shim::{Hello, Order, Spec};
use crate::shim_link::{News, ShimLink};
use copy::Copy;

/// The hidden command.
pub const COMMAND: &str = "stay";
const USAGE: &str = "rejoin: stay takes FOLDER AGENT FROM REST_MS BYTES; rejoin calls it itself";
/// Nothing was said to the process: it is not there any more.
pub(super) const NOT_TAKEN: u8 = 76;
/// What a process may take to be there after it was started.
const STARTS_WITHIN: Duration = Duration::from_secs(20);
/// A process that waits for its next prompt admits us within this time.
const ADMITS_WITHIN: Duration = Duration::from_secs(2);
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// What a CLI calls for itself at the end of a turn is done within this time.
const ON_ITS_WAY_OUT: Duration = Duration::from_millis(500);
/// What belongs to a turn comes within this time after its last word.
const TRAILS_FOR: Duration = Duration::from_secs(5);
/// An order holds no more than 32 MiB, in quotes.
const PIECE: usize = 1 << 20;
/// Should news ever get lost, they are late by no more than this.
const SAFETY: Duration = Duration::from_secs(1);

/// What it is told on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stay {
    pub(crate) host: PathBuf,
    pub(crate) agent: String,
    /// What was printed before.
    pub(crate) from: u64,
    /// How long it may rest, in milliseconds, and how large it may be.
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

    /// Of the run that it is.
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

/// Its exit code says little: how the CLI ended is in that one's own `end.json`. If there is none, 0
/// means that the process rests.
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
    // A thread that reads stdin may wait there for ever.
    runtime.shutdown_background();
    code
}

async fn turn(stay: &Stay) -> io::Result<u8> {
    let reader = rejoin_agents::adapter(&stay.agent).and_then(Adapter::stay_reader);
    let reader = reader.ok_or(io::ErrorKind::InvalidInput)?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut said = lines_of_stdin();
    let host = Host::at(&stay.host);
    let Some(mut shim) = reach(&host, stay.from == 0).await? else {
        return Ok(NOT_TAKEN);
    };
    let (hello, processes) = (shim.hello(), reader.processes());
    let mut copy = Copy::new(&stay.host, stay.from, reader)?;
    let (mut begun, mut open, mut here) = (false, true, true);
    let mut over_at = None;
    loop {
        // First whether it has ended, then what it said: nothing can come in between.
        let ended = host.is_gone();
        let rests = match copy.on()? {
            Standing::Runs => None,
            Standing::Trails => {
                let at: &mut Instant = over_at.get_or_insert_with(Instant::now);
                (at.elapsed() > TRAILS_FOR).then_some(false)
            }
            Standing::Over(may_rest) => Some(may_rest),
        };
        if let Some(may_rest) = rests.filter(|_| open) {
            let ms = stay.rest_ms;
            // While it was looked at it may have said more.
            let rests = may_rest
                && here
                && is_fit(&host, hello, processes, stay.bytes).await
                && copy.on()? == Standing::Over(true);
            if rests && shim.order(Order::Rest { ms }).await.is_ok() {
                return Ok(0);
            }
            // It ends by itself, and may still have something to say.
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
                    copy.told(line);
                }
                for order in orders(line.as_deref()) {
                    let told = shim.order(order).await;
                    // Only one that says so was not told.
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

/// A line for its stdin, in pieces; none is left to come.
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

/// Connects to the shim of a warm process. One that was just started may not listen yet. Any may refuse for a
/// moment: it finds out by the folder of our own shim whether we may order it, and that shim enters the
/// folder of its run again only after it has started us.
async fn reach(host: &Host, is_new: bool) -> io::Result<Option<ShimLink>> {
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

/// It has nothing running, and is small enough.
async fn is_fit(host: &Host, at: Hello, processes: usize, bytes: u64) -> bool {
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

/// What it left behind is below its shim, if not below itself.
fn running(at: Hello) -> Vec<i32> {
    let below = tree::below(&tree::all(), &[at.pid], &[]);
    let alive = below.iter().filter(|it| !it.zombie);
    alive.map(|it| it.pid).collect()
}

fn resident(pid: i32) -> Option<u64> {
    let status = fs_err::read_to_string(tree::file(pid, "status")).ok()?;
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

fn lines_of_stdin() -> mpsc::UnboundedReceiver<String> {
    let (send, lines) = mpsc::unbounded_channel();
    // Reading cannot be given up.
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
        // Three bytes each, so that a piece would end within one.
        let line = "\u{2019}".repeat(PIECE) + "\n";
        let pieces = told(&line);
        assert_eq!((pieces.len(), pieces.concat() == line), (4, true));
    }
}
