//! `rejoin logout`

use clap::Args;

use crate::cli::command::{Help, Run, Task};
use crate::output::Output;
use crate::remote::Logins;
use rejoin_errors::{CommandError, Result};

/// Forget a daemon and its token
///
/// The token stays valid; to end it, run rejoin token revoke at the daemon.
#[derive(Debug, Args)]
pub(crate) struct LogoutArgs {
    /// Your name for the daemon
    #[arg(value_name = "NAME")]
    name: String,
}

impl Run for LogoutArgs {
    const NAME: &'static str = "logout";
    const HELP: Help = Help::SetUp("log out");

    fn task(self) -> Task {
        Task::machine(self, async |on, args| run(args, on.out)).unrouted()
    }
}

fn run(args: &LogoutArgs, out: Output) -> Result<u8> {
    let mut logins = Logins::load()?;
    let name = &args.name;
    if logins.hubs.remove(name).is_none() {
        let known: Vec<&str> = logins.hubs.keys().map(String::as_str).collect();
        let known = match known.as_slice() {
            [] => "there is none".to_owned(),
            known => format!("there are {}", known.join(", ")),
        };
        let text = format!("there is no hub called `{name}`; {known}");
        return Err(CommandError::not_found(text).try_this("rejoin login URL"));
    }
    logins.save()?;
    if out.json {
        out.json(&serde_json::json!({"hub": name, "logged_out": true}));
    } else {
        out.text(&format!("{name} is forgotten"));
    }
    Ok(0)
}
