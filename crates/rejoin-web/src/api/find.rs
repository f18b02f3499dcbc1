//! Finds the conversations, turns and messages that an address names, within the caller's
//! namespace.

use rejoin_core::{MessageId, TurnId};
use rejoin_hub::{Error, Hub, NamedMessage};
use rejoin_store::{Conversation, StoredMessage, StoredTurn};

use crate::problem::{Refusal, Result};

/// Finds a conversation by id, handle or key.
pub(super) async fn conversation(hub: &Hub, name: &str) -> Result<Conversation> {
    // `last` is a word of the command line: it means a folder, and a request has none.
    if name == "last" || name.contains('\0') {
        return Err(no("conversation"));
    }
    let found = hub.find(name, &[]).await;
    let found = found.map_err(Refusal::from)?;
    match found.message {
        None => Ok(found.conversation),
        Some(_) => Err(no("conversation")),
    }
}

pub(super) async fn turn(hub: &Hub, id: &str) -> Result<StoredTurn> {
    if id.parse::<TurnId>().is_err() {
        return Err(no("turn"));
    }
    hub.find_turn(id, &[]).await.map_err(|e| alike(e, "turn"))
}

pub(super) async fn message(hub: &Hub, id: &str) -> Result<(Conversation, StoredMessage)> {
    if id.parse::<MessageId>().is_err() {
        return Err(no("message"));
    }
    let NamedMessage {
        conversation,
        message,
    } = hub
        .find_message(id, &[])
        .await
        .map_err(|e| alike(e, "message"))?;
    let message = message.ok_or_else(|| no("message"))?;
    Ok((conversation, message))
}

/// Answers alike for an object in another namespace and for one that does not exist.
fn alike(error: Error, what: &str) -> Refusal {
    if matches!(error, Error::NotFound(_) | Error::NoMessage { .. }) {
        return no(what);
    }
    error.into()
}

fn no(what: &str) -> Refusal {
    Refusal::not_found(format!("there is no such {what}"))
}
