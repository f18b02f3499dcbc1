//! Pages of a conversation: some of its messages, and their turns.

use rejoin_core::{ConversationId, TurnId};

use crate::db::{Ask, rows, topic, vals};
use crate::error::Result;
use crate::messages::{StoredMessage, read};
use crate::turns::{self, StoredTurn};

/// Messages between two positions, both exclusive.
#[derive(Debug, Clone, Copy)]
pub struct MessageRange {
    pub after: i64,
    pub before: i64,
    pub end: RangeEnd,
    /// True to include removed messages, each behind the message that replaced it.
    pub removed: bool,
}

/// The end of a span at which reading begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RangeEnd {
    Oldest,
    Newest,
}

/// Number of messages to read first. Their length decides how many follow.
const FIRST: i64 = 4;
/// Maximum number of messages to read at once.
const AT_ONCE: i64 = 50;
/// Total length of texts after which reading stops.
const BYTES: usize = 2 * 1024 * 1024;

topic! {
    /// Messages and turns by page.
    Pages, pages
}

impl<C: Ask> Pages<'_, C> {
    /// Returns up to `limit` messages from an end of the span, oldest first. Returns fewer, but at
    /// least one, if they are long. Never separates messages of the same position.
    pub async fn messages(
        &mut self,
        c: ConversationId,
        span: MessageRange,
        limit: i64,
    ) -> Result<Vec<StoredMessage>> {
        let MessageRange {
            mut after,
            mut before,
            ..
        } = span;
        let mut found: Vec<StoredMessage> = vec![];
        let mut bytes = 0;
        while (found.len() as i64) < limit && bytes < BYTES {
            let most = next_batch(found.len(), bytes).min(limit - found.len() as i64);
            let next = MessageRange {
                after,
                before,
                ..span
            };
            let (part, reached) = self.placed(c, next, most).await?;
            bytes += part.iter().map(|m| m.message.text.len()).sum::<usize>();
            found.extend(part);
            match (reached, span.end) {
                (Some(seq), RangeEnd::Oldest) => after = seq,
                (Some(seq), RangeEnd::Newest) => before = seq,
                (None, _) => break,
            }
        }
        found.sort_by_key(|m| (m.message.seq, m.removed));
        Ok(found)
    }

    /// Returns the messages of the next positions, and the position reached. `None`: the span is
    /// exhausted.
    async fn placed(
        &mut self,
        c: ConversationId,
        span: MessageRange,
        most: i64,
    ) -> Result<(Vec<StoredMessage>, Option<i64>)> {
        let oldest = "select * from messages where conversation_id = $1 and seq > $2 and seq < $3 and removed_at is null
            order by seq limit $4";
        let newest = "select * from messages where conversation_id = $1 and seq > $2 and seq < $3 and removed_at is null
            order by seq desc limit $4";
        let sql = match span.end {
            RangeEnd::Oldest => oldest,
            RangeEnd::Newest => newest,
        };
        let found = rows(self.0, sql, vals![c.uuid(), span.after, span.before, most]).await?;
        let mut found: Vec<StoredMessage> = found.iter().map(read).collect::<Result<_>>()?;
        let last = found.last().map(|m| m.message.seq);
        let reached = last.filter(|_| found.len() as i64 == most);
        if span.removed {
            let (from, to) = match (reached, span.end) {
                (Some(seq), RangeEnd::Oldest) => (span.after, seq + 1),
                (Some(seq), RangeEnd::Newest) => (seq - 1, span.before),
                (None, _) => (span.after, span.before),
            };
            let sql = "select * from messages where conversation_id = $1 and seq > $2 and seq < $3 and removed_at is not null
                order by seq, removed_at, id";
            for row in &rows(self.0, sql, vals![c.uuid(), from, to]).await? {
                found.push(read(row)?);
            }
        }
        Ok((found, reached))
    }

    /// Returns the messages without a position: queued ones, and with `removed` those that were
    /// removed from the queue.
    pub async fn unplaced(
        &mut self,
        c: ConversationId,
        removed: bool,
    ) -> Result<Vec<StoredMessage>> {
        let queued = "select * from messages where conversation_id = $1 and seq is null and removed_at is null order by id";
        let all = "select * from messages where conversation_id = $1 and seq is null order by id";
        let sql = if removed { all } else { queued };
        let found = rows(self.0, sql, vals![c.uuid()]).await?;
        found.iter().map(read).collect()
    }

    /// Returns the newest turns between two, both inclusive, oldest first.
    pub async fn turns(
        &mut self,
        c: ConversationId,
        from: TurnId,
        to: TurnId,
        limit: i64,
    ) -> Result<Vec<StoredTurn>> {
        let sql = "select * from turns where conversation_id = $1 and id >= $2 and id <= $3
            order by id desc limit $4";
        let found = rows(self.0, sql, vals![c.uuid(), from.uuid(), to.uuid(), limit]).await?;
        let mut found: Vec<StoredTurn> = found.iter().map(turns::read).collect::<Result<_>>()?;
        found.reverse();
        Ok(found)
    }
}

/// Returns the number of messages to read next: as many as fit if they are as long as the messages
/// read so far.
fn next_batch(found: usize, bytes: usize) -> i64 {
    if found == 0 {
        return FIRST;
    }
    let fit = BYTES.saturating_sub(bytes) * found / bytes.max(1);
    i64::try_from(fit).map_or(AT_ONCE, |fit| fit.clamp(1, AT_ONCE))
}
