//! Text that a turn had written when it ended without an answer.

use rejoin_core::{EventBody, TurnStatus};
use rejoin_store::{Read, StoredTurn};

use crate::error::Result;

/// Most events of a turn that are read for its text.
const EVENTS: i64 = 2_000;
/// Longest text, in bytes.
const LONGEST: usize = 16 * 1024;

/// Returns the text of a turn that was cancelled, failed or was lost. It is no message: no agent is told.
pub(crate) async fn partial_text(read: &mut Read, turn: &StoredTurn) -> Result<Option<String>> {
    let broken = match turn.status {
        TurnStatus::Failed | TurnStatus::Cancelled | TurnStatus::Lost => turn.reply.is_none(),
        TurnStatus::Queued | TurnStatus::Running | TurnStatus::Waiting | TurnStatus::Succeeded => {
            false
        }
    };
    if !broken {
        return Ok(None);
    }
    let events = read.events().of_turn(turn.id, 0, EVENTS).await?;
    Ok(text_of(events.into_iter().map(|event| event.body)))
}

/// Joins the blocks of text. A whole block replaces the pieces that were streamed before it.
fn text_of(events: impl Iterator<Item = EventBody>) -> Option<String> {
    let (mut blocks, mut streamed) = (vec![], String::new());
    for event in events {
        if let EventBody::TextDelta { text } = event {
            streamed.push_str(&text);
        } else if let EventBody::Text {
            text,
            parent_tool: None,
        } = event
        {
            streamed.clear();
            blocks.push(text);
        }
    }
    blocks.push(streamed);
    blocks.retain(|block| !block.trim().is_empty());
    let mut text = blocks.join("\n\n");
    if text.len() > LONGEST {
        let end = (0..=LONGEST).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or(0));
        text.push('…');
    }
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_block_replaces_its_pieces() {
        let delta = |text: &str| EventBody::TextDelta { text: text.into() };
        let whole = |text: &str| EventBody::Text {
            text: text.into(),
            parent_tool: None,
        };
        let text = |events: Vec<EventBody>| text_of(events.into_iter());
        assert_eq!(text(vec![]), None);
        assert_eq!(text(vec![delta("Hel"), delta("lo")]).unwrap(), "Hello");
        let both = vec![delta("Hel"), delta("lo"), whole("Hello"), delta("And")];
        assert_eq!(text(both).unwrap(), "Hello\n\nAnd");
        let long = text(vec![whole(&"ä".repeat(LONGEST))]).unwrap();
        assert!(long.len() < LONGEST + 4 && long.ends_with('…'));
    }
}
