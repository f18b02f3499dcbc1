//! `rejoin hold`

use clap::Args;
use serde_json::{Value, json};

use crate::cli::command::{Help, Run, Task};
use crate::hub_client::HubClient;
use crate::remote::Ask;
use rejoin_errors::Result;

/// Stop all climbs between tiers, or allow them again
///
/// Turns that run continue. The hold is stored, for every process on this store.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  rejoin hold\n  rejoin hold --off")]
pub(crate) struct HoldArgs {
    /// Allow climbs again
    #[arg(long)]
    off: bool,
}

impl Run for HoldArgs {
    const NAME: &'static str = "hold";
    const HELP: Help = Help::Change("stop climbs");

    fn task(self) -> Task {
        Task::hub(self, run)
    }
}

async fn run(hub: HubClient<'_>, args: &HoldArgs) -> Result<u8> {
    let hold = !args.off;
    match hub {
        HubClient::Local(app) => app.hub().set_hold(hold).await?,
        HubClient::Remote(remote) => {
            let ask = Ask::put(&["api", "hold"]).body(json!({"hold": hold}));
            let _set: Value = remote.ask(ask).await?;
        }
    }
    if hub.out().json {
        hub.out().json(&json!({"hold": hold}));
    } else if hold {
        hub.out()
            .text("climbs are on hold; allow them again: rejoin hold --off");
    } else {
        hub.out().text("climbs are allowed");
    }
    Ok(0)
}
