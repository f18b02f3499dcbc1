//! `rejoin chain`

use clap::Args;
use rejoin_hub::{ChainTurnView, ChainView, TurnView};

use crate::cli::command::{Help, Run, Task};
use crate::hub_client::HubClient;
use crate::output::format::{duration, money};
use crate::output::{Line, Output, Tone, table};
use crate::remote::Ask;
use rejoin_errors::Result;

/// Show the turns linked by climbs, with what each cost
///
/// Any turn of the chain names it; a conversation stands for its last turn.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  rejoin chain\n  rejoin chain tmqx:4 --json")]
pub(crate) struct ChainArgs {
    /// A turn (tmqx:4), or a conversation: its last
    #[arg(value_name = "TURN", default_value = "last")]
    turn: String,
}

impl Run for ChainArgs {
    const NAME: &'static str = "chain";
    const HELP: Help = Help::Look("chains");

    fn task(self) -> Task {
        Task::hub(self, run)
    }
}

async fn run(hub: HubClient<'_>, args: &ChainArgs) -> Result<u8> {
    let turn = hub.turn(&args.turn).await?;
    let chain = of_turn(hub, &turn).await?;
    if hub.out().json {
        hub.out().json(&chain);
    } else {
        print(hub.out(), &chain);
    }
    Ok(0)
}

/// Returns the chain of a turn.
pub(super) async fn of_turn(hub: HubClient<'_>, turn: &TurnView) -> Result<ChainView> {
    match hub {
        HubClient::Local(app) => {
            let stored = app.hub().find_turn(&turn.turn_id.to_string(), &[]).await?;
            Ok(app.hub().chain(&stored).await?)
        }
        HubClient::Remote(remote) => {
            let id = turn.turn_id.to_string();
            remote.ask(Ask::get(&["api", "turns", &id, "chain"])).await
        }
    }
}

fn print(out: Output, chain: &ChainView) {
    let row = |turn: &ChainTurnView| {
        vec![
            Line::new().with(Tone::Name, &turn.handle),
            Line::plain(turn.tier.as_deref().unwrap_or("-")),
            Line::plain(&turn.agent),
            Line::plain(turn.model.as_deref().unwrap_or("-")),
            Line::plain(turn.verdict.as_deref().unwrap_or("-")),
            Line::plain(&turn.status),
            Line::plain(&turn.trigger),
            Line::plain(&money(turn.cost_usd)),
            Line::plain(&duration(turn.duration_ms)),
        ]
    };
    let rows: Vec<_> = chain.turns.iter().map(row).collect();
    out.lines(&table(&rows, None));
    let at_least = if chain.cost_complete { "" } else { "at least " };
    let total = money(chain.total_cost_usd);
    out.text(&format!("total {at_least}{total}"));
}
