//! `rejoin handoff`

use clap::Args;
use rejoin_core::Handoff;

use crate::cli::command::{Help, Run, Task};
use crate::hub_client::HubClient;
use crate::remote::Ask;
use rejoin_errors::Result;

/// Show what a next tier would be told if it could not resume the session
///
/// Findings, checks, attempted actions and affected services of the turn and of the turns that it climbed
/// from, from rejoin's own record: nothing runs.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  rejoin handoff\n  rejoin handoff tmqx:4 --json")]
pub(crate) struct HandoffArgs {
    /// A turn (tmqx:4), or a conversation: its last
    #[arg(value_name = "TURN", default_value = "last")]
    turn: String,
}

impl Run for HandoffArgs {
    const NAME: &'static str = "handoff";
    const HELP: Help = Help::Look("what a tier is told");

    fn task(self) -> Task {
        Task::hub(self, run)
    }
}

async fn run(hub: HubClient<'_>, args: &HandoffArgs) -> Result<u8> {
    let turn = hub.turn(&args.turn).await?.turn_id.to_string();
    let handoff: Handoff = match hub {
        HubClient::Local(app) => {
            let stored = app.hub().find_turn(&turn, &[]).await?;
            app.hub().handoff(&stored).await?
        }
        HubClient::Remote(remote) => {
            let ask = Ask::get(&["api", "turns", &turn, "handoff"]);
            remote.ask(ask).await?
        }
    };
    let out = hub.out();
    if out.json {
        out.json(&handoff);
        return Ok(0);
    }
    let text = handoff.text();
    if text.is_empty() {
        out.text("nothing was found, checked or attempted yet");
    } else {
        out.text(&text);
    }
    Ok(0)
}
