//! `rejoin events`

use clap::Args;
use rejoin_core::EventBody;
use rejoin_hub::{TurnEventsQuery, TurnEventsView};
use serde_json::Value;

use crate::cli::command::{Help, Run, Task};
use crate::hub_client::HubClient;
use crate::output::{Line, Tone, one_line};
use rejoin_errors::{CommandError, Result};

/// List the events of a turn
///
/// Long texts are cut; --whole prints them. `rejoin watch` follows a running turn.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin events tmqx:4\n  rejoin events --types tool.call,tool.result --json\n  rejoin events --tool toolu_01 --whole --json"
)]
pub(crate) struct EventsArgs {
    /// Turn, message or conversation; a conversation means its last turn
    #[arg(value_name = "TURN", default_value = "last")]
    turn: String,
    /// Only events of these types
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    types: Option<Vec<String>>,
    /// Only events of this tool call
    #[arg(long, value_name = "ID")]
    tool: Option<String>,
    /// Only events after this number
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    after: i64,
    /// Maximum number of events
    #[arg(short, default_value_t = 200)]
    n: i64,
    /// Do not cut long texts
    #[arg(long)]
    whole: bool,
}

impl Run for EventsArgs {
    const NAME: &'static str = "events";
    const HELP: Help = Help::Look("its events");

    fn task(self) -> Task {
        Task::hub(self, run)
    }
}

async fn run(hub: HubClient<'_>, args: &EventsArgs) -> Result<u8> {
    let turn = hub.turn(&args.turn).await?.turn_id;
    let types = args.types.as_deref().map(known).transpose()?;
    let query = TurnEventsQuery {
        after: args.after,
        limit: Some(args.n),
        types,
        tool_id: args.tool.clone(),
        whole: args.whole,
    };
    let (out, page) = (hub.out(), hub.turn_events(turn, &query).await?);
    if out.json {
        out.json(&page);
        return Ok(0);
    }
    let lines: Vec<Line> = page.events.iter().map(|e| line(e, out.width())).collect();
    out.lines(&lines);
    if let Some(after) = page.next_after {
        out.note(&format!("more: rejoin events {turn} --after {after}"));
    }
    Ok(0)
}

/// Returns these types, each of which may end with `.*`.
fn known(names: &[String]) -> Result<Vec<&'static str>> {
    let mut found = vec![];
    for name in names {
        let group = name.strip_suffix('*').filter(|g| g.ends_with('.'));
        let fits = |kind: &&&str| group.map_or(**kind == name, |g| kind.starts_with(g));
        let before = found.len();
        found.extend(EventBody::KINDS.iter().filter(fits).copied());
        if found.len() == before {
            return Err(
                CommandError::usage(format!("there are no events of type `{name}`")).try_this(
                    format!("rejoin events --types {}", EventBody::KINDS.join(",")),
                ),
            );
        }
    }
    Ok(found)
}

fn line(event: &Value, width: usize) -> Line {
    let text = |field: &str| event[field].as_str().unwrap_or_default();
    let kind = text("type");
    let about = match kind {
        "tool.call" => format!("{} {}", text("tool"), text("subject")),
        "tool.result" => {
            let took = event["duration_ms"].as_f64().unwrap_or_default() / 1000.0;
            let state = if event["is_error"] == true {
                "failed"
            } else {
                "ok"
            };
            format!("{state} · {took:.1}s · {}", text("text"))
        }
        "file.changed" => text("path").to_owned(),
        _ => ["text", "message", "summary", "verdict", "status", "line"]
            .iter()
            .map(|field| text(field))
            .find(|words| !words.is_empty())
            .unwrap_or_default()
            .to_owned(),
    };
    let head = format!("{:>8}  {kind:<16}  ", event["seq"].to_string());
    let room = width.saturating_sub(head.len()).max(20);
    Line::new()
        .with(Tone::Faint, &head)
        .with(Tone::Plain, &one_line(&about, room))
}

impl HubClient<'_> {
    pub(crate) async fn turn_events(
        self,
        turn: rejoin_core::TurnId,
        query: &TurnEventsQuery,
    ) -> Result<TurnEventsView> {
        match self {
            Self::Local(app) => Ok(app.hub().turn_events(turn, query).await?),
            Self::Remote(remote) => {
                let ask = crate::remote::Ask::get(&["api", "turns", &turn.to_string(), "log"])
                    .with("after", query.after.to_string())
                    .with("limit", query.limit.map(|n| n.to_string()))
                    .with("types", query.types.as_ref().map(|types| types.join(",")))
                    .with("tool_id", query.tool_id.clone())
                    .if_so("whole", query.whole);
                remote.ask(ask).await
            }
        }
    }
}
