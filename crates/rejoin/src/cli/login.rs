//! `rejoin login`

use std::io::{BufRead as _, IsTerminal as _};
use std::os::fd::AsFd as _;

use clap::Args;
use nix::sys::termios::{LocalFlags, SetArg, tcgetattr, tcsetattr};

use super::report::interrupted;
use crate::app::Invocation;
use crate::cli::command::{Help, Run, Task};
use crate::output::Output;
use crate::remote::{Login, Logins, Remote, token_variable};
use rejoin_errors::{CommandError, Result};

/// No token is longer.
const LONGEST: u64 = 4096;

/// Log in to a remote daemon
///
/// Asks for a token, tries it, and stores it in a file that only you can read. --hub NAME uses it.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin login https://hub.example --name work\n  rejoin --hub work list\n  rejoin login http://127.0.0.1:7377 --token-stdin <token.txt"
)]
pub(crate) struct LoginArgs {
    /// URL of the daemon, e.g. https://hub.example
    #[arg(value_name = "URL")]
    url: String,
    /// Your name for it; default: the host's name
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Read the token from stdin
    #[arg(long)]
    token_stdin: bool,
}

impl Run for LoginArgs {
    const NAME: &'static str = "login";
    const HELP: Help = Help::SetUp("use a remote one");

    fn task(self) -> Task {
        Task::machine(self, run).unrouted()
    }
}

async fn run(on: &Invocation, args: &LoginArgs) -> Result<u8> {
    let out = on.out;
    let name = match &args.name {
        Some(name) => name.clone(),
        None => host(&args.url),
    };
    well_formed(&name)?;
    // Before anything is asked for: is it an address at all?
    drop(Remote::at(out, &args.url, &args.url, None)?);
    let interrupted = interrupted();
    let token = tokio::select! {
        token = token(args, out) => token?,
        code = interrupted => return Ok(code),
    };
    let remote = Remote::at(out, &args.url, &args.url, Some(token.clone()))?;
    let hub = remote.hub().await?;
    let mut logins = Logins::load()?;
    let url = args.url.clone();
    logins.hubs.insert(name.clone(), Login { url, token });
    logins.save()?;
    if !remote.same_machine() && args.url.starts_with("http://") {
        out.note("rejoin: the token travels to it in the open; https:// would hide it");
    }
    if out.json {
        out.json(&serde_json::json!({
            "hub": name, "url": args.url, "name": hub.name, "scope": hub.scope,
            "namespace": hub.namespace,
        }));
    } else {
        let who = format!("{} as {} ({})", args.url, hub.name, hub.scope);
        out.text(&format!("{name}: {who}; try: rejoin --hub {name} list"));
    }
    Ok(0)
}

/// The host of a URL.
fn host(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split('/').next().unwrap_or_default();
    let bare = host.rsplit_once(':').map_or(host, |(host, _)| host);
    bare.trim_matches(['[', ']']).replace(':', "-")
}

pub(super) fn well_formed(name: &str) -> Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name.len() > 100 || !name.chars().all(plain) || name == "none" {
        let text = format!("`{name}` is no name for a hub: letters, digits, - _ . and not `none`");
        return Err(CommandError::usage(text).try_this("rejoin login URL --name NAME"));
    }
    Ok(())
}

async fn token(args: &LoginArgs, out: Output) -> Result<String> {
    let stdin = std::io::stdin();
    let text = match token_variable() {
        Some(token) if !args.token_stdin => token,
        Some(_) | None if args.token_stdin => typed().await?,
        Some(_) | None if stdin.is_terminal() && !out.json => {
            let _unseen = Unseen::begin();
            out.note("token: ");
            typed().await?
        }
        Some(_) | None => {
            return Err(CommandError::usage("there is no token")
                .try_this("rejoin login URL --token-stdin <FILE, or REJOIN_TOKEN"));
        }
    };
    let token = text.trim();
    if token.is_empty() || token.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(
            CommandError::usage("that is no token").try_this("rejoin token create NAME, there")
        );
    }
    Ok(token.to_owned())
}

/// Reading cannot be given up, so it has a thread of its own: whoever is told to stop must show again
/// what is typed.
async fn typed() -> Result<String> {
    let line = tokio::task::spawn_blocking(line).await;
    line.map_err(|e| CommandError::usage(format!("stdin: {e}")))?
}

fn line() -> Result<String> {
    let mut line = String::new();
    let mut stdin = std::io::Read::take(std::io::stdin().lock(), LONGEST);
    match stdin.read_line(&mut line) {
        Ok(_) => Ok(line),
        Err(e) => Err(CommandError::usage(format!("stdin: {e}"))),
    }
}

/// While it is there, what is typed is not shown.
struct Unseen(Option<nix::sys::termios::Termios>);

impl Unseen {
    fn begin() -> Self {
        let stdin = std::io::stdin();
        let Ok(before) = tcgetattr(stdin.as_fd()) else {
            return Self(None);
        };
        let mut unseen = before.clone();
        unseen.local_flags.remove(LocalFlags::ECHO);
        let set = tcsetattr(stdin.as_fd(), SetArg::TCSAFLUSH, &unseen);
        Self(set.is_ok().then_some(before))
    }
}

impl Drop for Unseen {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let stdin = std::io::stdin();
            let _back = tcsetattr(stdin.as_fd(), SetArg::TCSADRAIN, before);
        }
    }
}
