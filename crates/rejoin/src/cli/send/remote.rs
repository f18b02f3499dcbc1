//! Sends a message to a daemon, and follows its turn.

use rejoin_hub::{MessageRequest, NameKind, STORED, SenderDefaults, TurnView};

use super::{OnAccepted, SendArgs, UNSAVED, after_turn, detached, folder_text};
use crate::cli::follow::remote::{follow_sent, report_sent};
use crate::cli::report::interrupted;
use crate::hub_client::HubClient;
use crate::remote::{Ask, Remote, new_key};
use rejoin_errors::{CommandError, Result};

pub(super) async fn send(
    hub: HubClient<'_>,
    remote: &Remote,
    args: &SendArgs,
    text: String,
    accepted: OnAccepted<'_>,
) -> Result<u8> {
    let body = body(hub, remote, args, text).await?;
    // From here on a signal cancels the turn, and does not leave it to others.
    let interrupted = interrupted();
    let key = body.client_key.clone();
    let ask = Ask::post(&["api", "send"]).known_by(key).body(body);
    let turn: TurnView = remote.ask(ask).await?;
    accepted(turn.conversation_id, turn.turn_id);
    if args.turn.detach {
        detached(remote.out, &turn);
        return Ok(0);
    }
    let stream = args.turn.stream;
    let followed = follow_sent(remote, turn, stream, interrupted).await?;
    if args.turn.climb && CommandError::held_back(&followed.turn).is_none() {
        return after_turn(hub, &followed.turn, None, stream).await;
    }
    let code = report_sent(remote, &followed, stream)?;
    let unsaved = args.turn.must_save && code == 0 && followed.turn.saved != STORED;
    Ok(if unsaved { UNSAVED } else { code })
}

async fn body(
    hub: HubClient<'_>,
    remote: &Remote,
    args: &SendArgs,
    text: String,
) -> Result<MessageRequest> {
    let mut request = args.request(text, |dir| hub.folder_text(dir))?;
    if let Some(name) = &args.conversation {
        let named = hub.named(name, NameKind::Conversation).await?;
        request.conversation_id = Some(named.conversation.id.to_string());
    }
    // If the connection breaks, the request is sent again under the same key and accepted once.
    request.client_key = request.client_key.or_else(new_key);
    request.defaults = defaults(remote, args)?;
    Ok(request)
}

/// Returns the defaults of our own configuration, where the daemon is our own.
fn defaults(remote: &Remote, args: &SendArgs) -> Result<SenderDefaults> {
    let here = || folder_text(&remote.here);
    Ok(match &remote.config {
        Some(config) => SenderDefaults {
            workdir: Some(here()?),
            agent: Some(config.default_agent.clone()),
            permission: config.permission.map(|mode| mode.as_str().to_owned()),
            scope: Some(config.scope.as_str().to_owned()),
            models: config.models.clone(),
            tiers: args.turn.tier.as_ref().map(|_| config.tiers.clone()),
        },
        None if remote.same_machine() => SenderDefaults {
            workdir: Some(here()?),
            ..SenderDefaults::default()
        },
        None => SenderDefaults::default(),
    })
}
