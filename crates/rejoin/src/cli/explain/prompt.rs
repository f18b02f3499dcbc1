//! `rejoin explain --prompt`: what the agent of a turn was told.

use rejoin_hub::{PromptView, TurnView};

use crate::hub_client::HubClient;
use crate::remote::Ask;
use rejoin_errors::Result;

/// Prints the prompt of a turn, run by run.
pub(super) async fn run(hub: HubClient<'_>, turn: &TurnView) -> Result<u8> {
    let id = turn.turn_id.to_string();
    let view: PromptView = match hub {
        HubClient::Local(app) => {
            let stored = app.hub().find_turn(&id, &[]).await?;
            app.hub().prompt_of(&stored).await?
        }
        HubClient::Remote(remote) => {
            let ask = Ask::get(&["api", "turns", &id, "prompt"]);
            remote.ask(ask).await?
        }
    };
    let out = hub.out();
    if out.json {
        out.json(&view);
        return Ok(0);
    }
    if view.runs.is_empty() {
        out.note("rejoin: nothing beside the message is recorded");
    }
    for run in &view.runs {
        if view.runs.len() > 1 {
            out.text(&format!("run {}", run.attempt));
        }
        out.text(&run.context);
    }
    out.text(&view.message);
    if view.secrets_removed > 0 {
        let count = view.secrets_removed;
        out.note(&format!("rejoin: {count} secrets are left out"));
    }
    Ok(0)
}
