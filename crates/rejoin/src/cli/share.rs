//! `rejoin share`

use std::time::Duration;

use clap::{Args, Subcommand};
use rejoin_hub::{NameKind, ShareRequest, ShareView, SharesView};
use serde_json::json;

use super::token::parse_expiry;
use crate::cli::command::{Help, Run, Task};
use crate::hub_client::HubClient;
use crate::output::format::count;
use crate::output::{Line, Tone, table};
use crate::remote::Ask;
use rejoin_errors::{CommandError, Result};

/// Create a link that shows a conversation without a token
///
/// The link shows messages, without keys and passwords of known forms, while `rejoin serve` runs. A reader cannot change
/// anything.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  rejoin share tmqx --expires 7d\n  rejoin share list tmqx\n  rejoin share close ID"
)]
pub(crate) struct ShareArgs {
    #[command(subcommand)]
    what: Option<What>,
    /// Conversation: handle, id, key, or `last`
    #[arg(value_name = "CONV", default_value = "last")]
    conversation: String,
    /// Lifetime, e.g. 12h, 30d; default: no end
    #[arg(long, value_name = "TIME", value_parser = parse_expiry)]
    expires: Option<Duration>,
    /// Show messages that are added later too
    #[arg(long)]
    follow: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    List(ListArgs),
    Close(CloseArgs),
}

/// List the links of a conversation, with the number of views
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  rejoin share list tmqx")]
struct ListArgs {
    /// Conversation: handle, id, key, or `last`
    #[arg(value_name = "CONV", default_value = "last")]
    conversation: String,
}

/// Close a link permanently
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  rejoin share close 01a1e1b4-0000-7000-8000-000000000000")]
struct CloseArgs {
    /// Link: its id, as `rejoin share list` shows it
    #[arg(value_name = "ID")]
    id: String,
}

impl Run for ShareArgs {
    const NAME: &'static str = "share";
    const HELP: Help = Help::Look("a link to read it");

    fn task(self) -> Task {
        Task::hub(self, run)
    }
}

async fn run(hub: HubClient<'_>, args: &ShareArgs) -> Result<u8> {
    match &args.what {
        Some(What::List(args)) => list(hub, args).await,
        Some(What::Close(args)) => close(hub, args).await,
        None => create(hub, args).await,
    }
}

async fn create(hub: HubClient<'_>, args: &ShareArgs) -> Result<u8> {
    let found = hub
        .named(&args.conversation, NameKind::Conversation)
        .await?;
    let c = found.conversation.id;
    let share: ShareView = match hub {
        HubClient::Local(app) => {
            let request = ShareRequest {
                expires_in: args.expires.map(|time| time.as_micros() as i64),
                follow: args.follow,
                by: "command line".into(),
            };
            app.hub().share(c, &request).await?
        }
        HubClient::Remote(remote) => {
            let expires = args.expires.map(|time| time.as_secs());
            let ask = Ask::post(&["api", "conversations", &c.to_string(), "shares"]);
            let body = json!({"expires_in_s": expires, "follow": args.follow});
            remote.ask(ask.body(body)).await?
        }
    };
    let out = hub.out();
    if out.json {
        out.json(&share);
        return Ok(0);
    }
    out.text(share.path.as_deref().unwrap_or_default());
    out.note(&format!(
        "a path below the address of your daemon; to close it: rejoin share close {}",
        share.id
    ));
    Ok(0)
}

async fn list(hub: HubClient<'_>, args: &ListArgs) -> Result<u8> {
    let found = hub
        .named(&args.conversation, NameKind::Conversation)
        .await?;
    let c = found.conversation.id;
    let all: SharesView = match hub {
        HubClient::Local(app) => app.hub().shares(c).await?,
        HubClient::Remote(remote) => {
            let ask = Ask::get(&["api", "conversations", &c.to_string(), "shares"]);
            remote.ask(ask).await?
        }
    };
    let out = hub.out();
    if out.json {
        out.json(&all);
        return Ok(0);
    }
    if all.shares.is_empty() {
        let handle = &found.conversation.handle;
        out.note(&format!("{handle} has no link; try: rejoin share {handle}"));
        return Ok(0);
    }
    let now = HubClient::now();
    let row = |share: &ShareView| {
        let tone = if share.state == "open" {
            Tone::Good
        } else {
            Tone::Faint
        };
        let made = format!("by {}, {}", share.created_by, now.ago(&share.created_at));
        vec![
            Line::new().with(Tone::Name, &share.id.to_string()),
            Line::new().with(tone, &share.state),
            Line::plain(&count(share.views.unsigned_abs(), "view")),
            Line::faint(&made),
        ]
    };
    let rows: Vec<_> = all.shares.iter().map(row).collect();
    let fit = out.screen().then(|| out.width());
    out.lines(&table(&rows, fit));
    Ok(0)
}

async fn close(hub: HubClient<'_>, args: &CloseArgs) -> Result<u8> {
    let none = || CommandError::not_found("there is no such link").try_this("rejoin share list");
    let share: ShareView = match hub {
        HubClient::Local(app) => {
            let id = args.id.parse().map_err(|_| none())?;
            app.hub().close_share(id).await?
        }
        HubClient::Remote(remote) => {
            remote
                .ask(Ask::delete(&["api", "shares", &args.id]))
                .await?
        }
    };
    let out = hub.out();
    if out.json {
        out.json(&share);
    } else {
        out.text(&format!("{} is closed", share.id));
    }
    Ok(0)
}
