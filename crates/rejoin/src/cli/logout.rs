//! `rejoin logout`

use clap::Args;

use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::remote::Logins;

/// Forget a daemon and its token
///
/// The token stays good for whoever else has it: rejoin token revoke, there, ends that.
#[derive(Debug, Args)]
pub(crate) struct LogoutArgs {
    /// What you call it
    #[arg(value_name = "NAME")]
    name: String,
}

pub(crate) fn run(args: &LogoutArgs, out: Output) -> Result<u8> {
    let mut logins = Logins::load()?;
    let name = &args.name;
    if logins.hubs.remove(name).is_none() {
        let known: Vec<&str> = logins.hubs.keys().map(String::as_str).collect();
        let known = match known.as_slice() {
            [] => "there is none".to_owned(),
            known => format!("there are {}", known.join(", ")),
        };
        let text = format!("there is no hub called `{name}`; {known}");
        return Err(Failure::not_found(text).try_this("rejoin login URL"));
    }
    logins.save()?;
    if out.json {
        out.json(&serde_json::json!({"hub": name, "logged_out": true}));
    } else {
        out.text(&format!("{name} is forgotten"));
    }
    Ok(0)
}
