//! A message to a daemon: the same wishes, and the turn is followed from here.

use rejoin_core::Micros;
use rejoin_hub::{STORED, TurnView, Want};
use serde_json::{Value, json};

use super::{Busy, SendArgs, UNSAVED, detached, folder_text, valid_key};
use crate::at::At;
use crate::cli::outcome::interrupted;
use crate::cli::there::{Following, Interrupt};
use crate::cli::watch::Waits;
use crate::config::Config;
use crate::failure::Result;
use crate::remote::{Ask, Place, Remote, new_key};

pub(super) async fn say(at: At<'_>, remote: &Remote, args: &SendArgs, text: String) -> Result<u8> {
    let body = body(at, remote, args, text).await?;
    // From here on a signal cancels the turn, and does not leave it to others.
    let interrupted = interrupted();
    let key = body["client_key"].as_str().map(str::to_owned);
    let ask = Ask::post(&["api", "send"]).known_by(key).body(body);
    let turn: TurnView = remote.ask(ask).await?;
    if args.turn.detach {
        detached(remote.out, &turn);
        return Ok(0);
    }
    let following = Following {
        stream: args.turn.stream,
        interrupt: Interrupt::Cancels,
        waits: Waits::Return,
    };
    let rest = following.to_its_rest(remote, turn, interrupted).await?;
    let code = following.report(remote, &rest)?;
    let unsaved = args.turn.must_save && code == 0 && rest.turn.saved != STORED;
    Ok(if unsaved { UNSAVED } else { code })
}

async fn body(at: At<'_>, remote: &Remote, args: &SendArgs, text: String) -> Result<Value> {
    let conversation = match &args.conversation {
        Some(name) => Some(at.named(name, Want::Conversation).await?.conversation.id),
        None => None,
    };
    let workdir = args.turn.workdir.as_deref().map(|dir| at.folder_text(dir));
    let turn = &args.turn;
    let mut body = json!({
        "conversation_id": conversation,
        "key": args.key.as_deref().map(valid_key).transpose()?,
        "title": args.title,
        "text": text,
        "agent": turn.agent,
        "model": turn.model,
        "workdir": workdir.transpose()?,
        "permission": turn.permission,
        "tools": turn.tools,
        "deny_tools": turn.deny_tools,
        "fresh_session": turn.fresh_session,
        "no_reseed": turn.no_reseed,
        "relocate": turn.relocate,
        "raw": turn.raw,
        "keep_background": turn.keep_background,
        "timeout_ms": turn.timeout.map(|t| t.as_millis() as u64),
        "idle_timeout_ms": turn.idle_timeout.map(|t| t.as_millis() as u64),
        "max_cost_usd": turn.max_cost.map(Micros::dollars),
        // Should the connection break, it is sent again and taken in once.
        "client_key": turn.idempotency_key.clone().or_else(new_key),
        "if_busy": match turn.if_busy {
            Busy::Wait => "wait",
            Busy::Fail => "fail",
        },
        "confirm": turn.confirm,
        "instructions": turn.instructions,
        "notify_url": turn.notify_url,
        "defaults": defaults(remote)?,
    });
    // What was not said is not sent: an older daemon need not know of it.
    if let Some(body) = body.as_object_mut() {
        body.retain(|_, value| !value.is_null() && *value != false);
    }
    Ok(body)
}

/// What our own configuration says, where the daemon is our own.
fn defaults(remote: &Remote) -> Result<Value> {
    match remote.place {
        Place::Elsewhere => Ok(json!({})),
        Place::Loopback => Ok(json!({"workdir": folder_text(&remote.here)?})),
        Place::Socket => {
            let config = Config::load(None, &remote.here)?;
            Ok(json!({
                "workdir": folder_text(&remote.here)?, "agent": config.default_agent,
                "permission": config.permission, "scope": config.scope.as_str(),
                "models": config.models,
            }))
        }
    }
}
