//! `rejoin token create|list|revoke`

use std::time::Duration;

use clap::{Args, Subcommand};
use rejoin_core::PermissionMode;
use rejoin_hub::{TokenView, TokenWish};
use rejoin_store::TokenScope;

use crate::at::At;
use crate::failure::Result;
use crate::output::figures::Now;
use crate::output::{Line, Tone, table};

/// Tokens with which others may talk to the daemon
#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Create(CreateArgs),
    List(ListArgs),
    Revoke(RevokeArgs),
}

/// Make a token; it is printed this once
#[derive(Debug, Args)]
struct CreateArgs {
    /// What you call it
    #[arg(value_name = "NAME")]
    name: String,
    /// What it may do: read, send, admin
    #[arg(long, default_value = "send")]
    scope: TokenScope,
    /// After this it is not good any more, e.g. 12h, 30d
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    expires: Option<Duration>,
    /// Only conversations of this name space
    #[arg(long, value_name = "NAME", default_value = "")]
    namespace: String,
    /// Most it may ask for: read-only, ask, edit, full; default: [serve] max_permission
    #[arg(long, value_name = "MODE")]
    max_permission: Option<PermissionMode>,
}

/// List tokens, without what is secret of them
#[derive(Debug, Args)]
struct ListArgs {}

/// Make a token worthless
#[derive(Debug, Args)]
struct RevokeArgs {
    #[arg(value_name = "NAME")]
    name: String,
}

pub(crate) async fn run(at: At<'_>, args: &TokenArgs) -> Result<u8> {
    match &args.what {
        What::Create(args) => create(at, args).await,
        What::List(_) => list(at).await,
        What::Revoke(args) => {
            at.revoke_token(&args.name).await?;
            let out = at.out();
            if out.json {
                out.json(&serde_json::json!({"name": args.name, "revoked": true}));
            } else {
                out.text(&format!("{} is revoked", args.name));
            }
            Ok(0)
        }
    }
}

async fn create(at: At<'_>, args: &CreateArgs) -> Result<u8> {
    let made = at
        .create_token(&TokenWish {
            name: args.name.clone(),
            scope: args.scope,
            namespace: args.namespace.clone(),
            expires_in: args.expires.map(|t| t.as_micros() as i64),
            max_permission: args.max_permission,
            secret: None,
        })
        .await?;
    let out = at.out();
    if out.json {
        out.json(&made);
    } else {
        out.text(&made.token);
        out.note("it is shown this once; keep it safe");
    }
    Ok(0)
}

async fn list(at: At<'_>) -> Result<u8> {
    let (out, tokens) = (at.out(), at.tokens().await?);
    if out.json {
        out.json(&serde_json::json!({"tokens": tokens}));
        return Ok(0);
    }
    if tokens.is_empty() {
        out.note("no token yet; try: rejoin token create NAME");
        return Ok(0);
    }
    let now = At::now();
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
        Some(at) => format!("used {}", now.ago(at)),
        None => "never used".to_owned(),
    };
    let until = match &token.expires_at {
        Some(at) => format!("until {}", now.moment(at)),
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

fn parse_span(text: &str) -> Result<Duration, String> {
    if let Some(days) = text.strip_suffix('d') {
        let days: u32 = days.parse().map_err(|_| WRONG.to_owned())?;
        return Ok(Duration::from_hours(u64::from(days) * 24));
    }
    super::send::parse_duration(text).map_err(|_| WRONG.to_owned())
}

const WRONG: &str = "a time is a number with s, m, h or d, e.g. 30d";
