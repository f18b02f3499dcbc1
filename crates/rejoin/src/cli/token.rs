//! `rejoin token create|list|revoke`

use std::time::Duration;

use clap::{Args, Subcommand};
use rejoin_core::PermissionMode;
use rejoin_hub::{TokenRequest, TokenView};
use rejoin_store::TokenScope;

use crate::cli::command::{Help, Run, Task};
use crate::duration;
use crate::hub_client::HubClient;
use crate::output::format::Now;
use crate::output::{Line, Tone, table};
use rejoin_errors::Result;

/// Manage tokens for access to the daemon
#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    what: What,
}

impl Run for TokenArgs {
    const NAME: &'static str = "token";
    const HELP: Help = Help::SetUp("access to the daemon");

    fn task(self) -> Task {
        Task::hub(self, run)
    }
}

#[derive(Debug, Subcommand)]
enum What {
    Create(CreateArgs),
    List(ListArgs),
    Revoke(RevokeArgs),
}

/// Create a token and print it, only this once
#[derive(Debug, Args)]
struct CreateArgs {
    /// Your name for the token
    #[arg(value_name = "NAME")]
    name: String,
    /// Access it gives: read, send, admin
    #[arg(long, default_value = "send")]
    scope: TokenScope,
    /// Lifetime, e.g. 12h, 30d; default: no end
    #[arg(long, value_name = "TIME", value_parser = parse_expiry)]
    expires: Option<Duration>,
    /// Restrict the token to this namespace
    #[arg(long, value_name = "NAME", default_value = "")]
    namespace: String,
    /// Ceiling: read-only, ask, edit, full; default: [serve] max_permission
    #[arg(long, value_name = "MODE")]
    max_permission: Option<PermissionMode>,
}

/// List tokens, without their secrets
#[derive(Debug, Args)]
struct ListArgs {}

/// Revoke a token
#[derive(Debug, Args)]
struct RevokeArgs {
    #[arg(value_name = "NAME")]
    name: String,
}

async fn run(hub: HubClient<'_>, args: &TokenArgs) -> Result<u8> {
    match &args.what {
        What::Create(args) => create(hub, args).await,
        What::List(_) => list(hub).await,
        What::Revoke(args) => {
            hub.revoke_token(&args.name).await?;
            let out = hub.out();
            if out.json {
                out.json(&serde_json::json!({"name": args.name, "revoked": true}));
            } else {
                out.text(&format!("{} is revoked", args.name));
            }
            Ok(0)
        }
    }
}

async fn create(hub: HubClient<'_>, args: &CreateArgs) -> Result<u8> {
    let made = hub
        .create_token(&TokenRequest {
            name: args.name.clone(),
            scope: args.scope,
            namespace: args.namespace.clone(),
            expires_in: args.expires.map(|t| t.as_micros() as i64),
            max_permission: args.max_permission,
            secret: None,
        })
        .await?;
    let out = hub.out();
    if out.json {
        out.json(&made);
    } else {
        out.text(&made.token);
        out.note("it is shown this once; keep it safe");
    }
    Ok(0)
}

async fn list(hub: HubClient<'_>) -> Result<u8> {
    let (out, tokens) = (hub.out(), hub.tokens().await?);
    if out.json {
        out.json(&serde_json::json!({"tokens": tokens}));
        return Ok(0);
    }
    if tokens.is_empty() {
        out.note("no token yet; try: rejoin token create NAME");
        return Ok(0);
    }
    let now = HubClient::now();
    let rows: Vec<Vec<Line>> = tokens.iter().map(|token| row(token, &now)).collect();
    let fit = out.screen().then(|| out.width());
    out.lines(&table(&rows, fit));
    Ok(0)
}

fn row(token: &TokenView, now: &Now) -> Vec<Line> {
    let tone = if token.state == "good" {
        Tone::Plain
    } else {
        Tone::Bad
    };
    let used = match &token.used_at {
        Some(hub) => format!("used {}", now.ago(hub)),
        None => "never used".to_owned(),
    };
    let until = match &token.expires_at {
        Some(hub) => format!("until {}", now.moment(hub)),
        None => String::new(),
    };
    let most = match &token.max_permission {
        Some(mode) => format!("at most {mode}"),
        None => String::new(),
    };
    vec![
        Line::plain(&token.name),
        Line::plain(&token.scope),
        Line::plain(&most),
        Line::plain(&token.namespace),
        Line::new().with(tone, &token.state),
        Line::faint(&used),
        Line::faint(&until),
    ]
}

pub(super) fn parse_expiry(text: &str) -> Result<Duration, String> {
    duration::parse(text)
        .filter(|time| !time.is_zero())
        .ok_or_else(|| duration::EXPECTED.to_owned())
}
