//! Parts of a conversation: some of its messages, and the turns that belong to them.

use rejoin_core::{ConversationId, TurnId};

use crate::connections::Read;
use crate::db::{rows, vals};
use crate::error::Result;
use crate::messages::{StoredMessage, read};
use crate::turns::{self, StoredTurn};

/// Messages between two places, both exclusive.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    pub after: i64,
    pub before: i64,
    pub end: End,
    /// With those that were removed, each behind the message that took its place.
    pub removed: bool,
}

/// The end of a span at which reading begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Oldest,
    Newest,
}

/// So many messages are read at once, and no more once their texts are this long together.
const AT_ONCE: i64 = 50;
const BYTES: usize = 8 * 1024 * 1024;

impl Read {
    /// Returns up to `limit` messages from an end of the span, oldest first; fewer, but at least one, where
    /// they are long. Messages of one place are never parted.
    pub async fn messages_in(
        &mut self,
        c: ConversationId,
        span: Span,
        limit: i64,
    ) -> Result<Vec<StoredMessage>> {
        let Span {
            mut after,
            mut before,
            ..
        } = span;
        let mut found: Vec<StoredMessage> = vec![];
        let mut bytes = 0;
        while (found.len() as i64) < limit && bytes < BYTES {
            let most = AT_ONCE.min(limit - found.len() as i64);
            let next = Span {
                after,
                before,
                ..span
            };
            let (part, reached) = self.placed(c, next, most).await?;
            bytes += part.iter().map(|m| m.message.text.len()).sum::<usize>();
            found.extend(part);
            match (reached, span.end) {
                (Some(seq), End::Oldest) => after = seq,
                (Some(seq), End::Newest) => before = seq,
                (None, _) => break,
            }
        }
        found.sort_by_key(|m| (m.message.seq, m.removed));
        Ok(found)
    }

    /// The messages of the next places, and the place that was reached; none: the span is at its end.
    async fn placed(
        &mut self,
        c: ConversationId,
        span: Span,
        most: i64,
    ) -> Result<(Vec<StoredMessage>, Option<i64>)> {
        let oldest = "select * from messages where conversation_id = $1 and seq > $2 and seq < $3 and removed_at is null
            order by seq limit $4";
        let newest = "select * from messages where conversation_id = $1 and seq > $2 and seq < $3 and removed_at is null
            order by seq desc limit $4";
        let sql = match span.end {
            End::Oldest => oldest,
            End::Newest => newest,
        };
        let found = rows(self, sql, vals![c.uuid(), span.after, span.before, most]).await?;
        let mut found: Vec<StoredMessage> = found.iter().map(read).collect::<Result<_>>()?;
        let last = found.last().map(|m| m.message.seq);
        let reached = last.filter(|_| found.len() as i64 == most);
        if span.removed {
            let (from, to) = match (reached, span.end) {
                (Some(seq), End::Oldest) => (span.after, seq + 1),
                (Some(seq), End::Newest) => (seq - 1, span.before),
                (None, _) => (span.after, span.before),
            };
            let sql = "select * from messages where conversation_id = $1 and seq > $2 and seq < $3 and removed_at is not null
                order by seq, removed_at, id";
            for row in &rows(self, sql, vals![c.uuid(), from, to]).await? {
                found.push(read(row)?);
            }
        }
        Ok((found, reached))
    }

    /// Returns the messages without a place: those that are queued, and with `removed` those that were removed
    /// from the queue.
    pub async fn messages_unplaced(
        &mut self,
        c: ConversationId,
        removed: bool,
    ) -> Result<Vec<StoredMessage>> {
        let queued = "select * from messages where conversation_id = $1 and seq is null and removed_at is null order by id";
        let all = "select * from messages where conversation_id = $1 and seq is null order by id";
        let sql = if removed { all } else { queued };
        let found = rows(self, sql, vals![c.uuid()]).await?;
        found.iter().map(read).collect()
    }

    /// Returns the newest turns between two, both inclusive, oldest first.
    pub async fn turns_between(
        &mut self,
        c: ConversationId,
        from: TurnId,
        to: TurnId,
        limit: i64,
    ) -> Result<Vec<StoredTurn>> {
        let sql = "select * from turns where conversation_id = $1 and id >= $2 and id <= $3
            order by id desc limit $4";
        let found = rows(self, sql, vals![c.uuid(), from.uuid(), to.uuid(), limit]).await?;
        let mut found: Vec<StoredTurn> = found.iter().map(turns::read).collect::<Result<_>>()?;
        found.reverse();
        Ok(found)
    }
}
