//! `rejoin diff`

use clap::Args;
use rejoin_core::TurnId;
use rejoin_hub::{FileChangeView, TurnChangesView};

use crate::cli::command::{Help, Run, Task};
use crate::hub_client::HubClient;
use crate::output::format::count;
use crate::output::{Line, Tone};
use crate::remote::Ask;
use rejoin_errors::Result;

/// Show the changes of a turn to files
///
/// The changes are those of the agent's editing tools. Changes that a command made are not among them, and Codex
/// reports only the names of the files.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  rejoin diff\n  rejoin diff tmqx:4 --json")]
pub(crate) struct DiffArgs {
    /// Turn, message or conversation; a conversation means its last turn
    #[arg(value_name = "TURN", default_value = "last")]
    turn: String,
}

impl Run for DiffArgs {
    const NAME: &'static str = "diff";
    const HELP: Help = Help::Look("file changes");

    fn task(self) -> Task {
        Task::hub(self, run)
    }
}

async fn run(hub: HubClient<'_>, args: &DiffArgs) -> Result<u8> {
    let turn = hub.turn(&args.turn).await?.turn_id;
    let (out, changes) = (hub.out(), hub.turn_changes(turn).await?);
    if out.json {
        out.json(&changes);
        return Ok(0);
    }
    if changes.files.is_empty() {
        out.note("the turn changed no file with an editing tool");
        return Ok(0);
    }
    let lines: Vec<Line> = changes.files.iter().flat_map(lines).collect();
    out.lines(&lines);
    Ok(0)
}

fn lines(file: &FileChangeView) -> Vec<Line> {
    let change = file.change.as_deref().unwrap_or("changed");
    let figures = if file.hunks.is_empty() {
        format!("  {change}, lines not reported")
    } else {
        format!("  {change}, +{} -{}", file.added, file.removed)
    };
    let head = Line::new()
        .with(Tone::Strong, &file.path)
        .with(Tone::Faint, &figures);
    let mut all = vec![head];
    for hunk in &file.hunks {
        all.push(Line::faint("  @@"));
        for line in &hunk.lines {
            let tone = match line.op {
                '+' => Tone::Good,
                '-' => Tone::Bad,
                _ => Tone::Plain,
            };
            all.push(Line::new().with(tone, &format!("  {}{}", line.op, line.text)));
        }
    }
    if file.too_long {
        let more = count(file.hunks.len() as u64, "part");
        all.push(Line::faint(&format!("  only {more} shown: too many lines")));
    }
    all
}

impl HubClient<'_> {
    pub(crate) async fn turn_changes(self, turn: TurnId) -> Result<TurnChangesView> {
        match self {
            Self::Local(app) => Ok(app.hub().turn_changes(turn).await?),
            Self::Remote(remote) => {
                let ask = Ask::get(&["api", "turns", &turn.to_string(), "changes"]);
                remote.ask(ask).await
            }
        }
    }
}
