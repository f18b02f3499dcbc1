//! Events encoded for an event stream, once for all watchers.

use bytes::Bytes;
use rejoin_core::{ConversationId, StoredEvent, TurnId};
use rejoin_hub::rfc3339;
use rejoin_store::EventRow;

use crate::problem::Result;

/// Consecutive events, encoded for an event stream.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) events: Box<[Told]>,
    words: Bytes,
}

/// Event of a page, with the fields that are needed for filtering.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) seq: i64,
    pub(crate) namespace: String,
    pub(crate) conversation: ConversationId,
    pub(crate) turn: TurnId,
    pub(crate) kind: &'static str,
    /// Offset of its bytes in the page.
    from: usize,
}

impl Page {
    pub(crate) fn of(rows: Vec<EventRow>) -> Result<Self> {
        let mut words = Vec::new();
        let events = rows.into_iter().map(|row| told(row, &mut words));
        Ok(Self {
            events: events.collect::<Result<_>>()?,
            words: words.into(),
        })
    }

    /// Returns the number of encoded bytes.
    pub(crate) fn size(&self) -> usize {
        self.words.len()
    }

    /// Returns the number of the last event.
    pub(crate) fn last(&self) -> Option<i64> {
        self.events.last().map(|told| told.seq)
    }

    /// Returns the encoded bytes of these events, both included.
    pub(crate) fn words(&self, first: usize, last: usize) -> Bytes {
        let from = |n: usize| self.events.get(n).map_or(self.words.len(), |it| it.from);
        self.words.slice(from(first)..from(last + 1))
    }
}

fn told(row: EventRow, words: &mut Vec<u8>) -> Result<Told> {
    let (from, kind) = (words.len(), row.body.kind());
    let event = StoredEvent {
        seq: row.seq,
        conversation_id: row.conversation,
        turn_id: (!row.turn.is_nil()).then_some(row.turn),
        at: rfc3339(row.at),
        body: row.body.described(),
    };
    // JSON on one line: line breaks are escaped in it.
    let head = format!("id: {}\nevent: {kind}\ndata: ", row.seq);
    words.extend_from_slice(head.as_bytes());
    serde_json::to_writer(&mut *words, &event).map_err(rejoin_store::Error::from)?;
    words.extend_from_slice(b"\n\n");
    Ok(Told {
        seq: row.seq,
        namespace: row.namespace,
        conversation: row.conversation,
        turn: row.turn,
        kind,
        from,
    })
}
