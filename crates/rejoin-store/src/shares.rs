//! Links that show a conversation without a token. Only hashes of their secrets are stored.

use rejoin_core::ConversationId;
use uuid::Uuid;

use crate::connections::Tx;
use crate::db::{Ask, Row, one, rows, topic, vals};
use crate::error::Result;

#[derive(Debug, Clone)]
pub struct NewShare<'a> {
    pub id: Uuid,
    pub conversation: ConversationId,
    pub hash: [u8; 32],
    /// Last message to show. `None`: later ones too.
    pub through: Option<i64>,
    pub by: &'a str,
    pub now: i64,
    pub expires_at: Option<i64>,
}

/// A link to a conversation.
#[derive(Debug, Clone)]
pub struct Share {
    pub id: Uuid,
    pub conversation: ConversationId,
    pub hash: [u8; 32],
    pub through: Option<i64>,
    pub by: String,
    pub created_at: i64,
    pub expires_at: Option<i64>,
    pub closed_at: Option<i64>,
    pub views: i64,
    pub viewed_at: Option<i64>,
}

impl Share {
    /// Returns true if the link shows the conversation now.
    pub fn is_open(&self, now: i64) -> bool {
        self.closed_at.is_none() && self.expires_at.is_none_or(|at| now < at)
    }
}

topic! {
    /// Links that show a conversation without a token.
    Shares, shares
}

impl Shares<'_, Tx> {
    pub async fn add(&mut self, new: &NewShare<'_>) -> Result<()> {
        let sql = "insert into shares (id, conversation_id, hash, through, created_by, created_at, expires_at, views)
            values ($1, $2, $3, $4, $5, $6, $7, 0)";
        let values = vals![
            new.id,
            new.conversation.uuid(),
            new.hash,
            new.through,
            new.by,
            new.now,
            new.expires_at
        ];
        self.0.run(sql, values).await?;
        Ok(())
    }

    /// Closes a link. Returns false if it was closed before.
    pub async fn close(&mut self, id: Uuid, now: i64) -> Result<bool> {
        let sql = "update shares set closed_at = $2 where id = $1 and closed_at is null";
        Ok(self.0.run(sql, vals![id, now]).await? > 0)
    }

    /// Ends what links show before this message, because it was removed: another one may take its
    /// place. Links that follow the conversation stay as they are.
    pub(crate) async fn end_before(&mut self, c: ConversationId, seq: i64) -> Result<()> {
        let sql = "update shares set through = $2 where conversation_id = $1 and through > $2";
        self.0
            .run(sql, vals![c.uuid(), seq.saturating_sub(1)])
            .await?;
        Ok(())
    }

    /// Closes the links that show a conversation up to a message: others are about to come before
    /// it.
    pub async fn close_ended(&mut self, c: ConversationId, now: i64) -> Result<()> {
        let sql = "update shares set closed_at = $2
            where conversation_id = $1 and through is not null and closed_at is null";
        self.0.run(sql, vals![c.uuid(), now]).await?;
        Ok(())
    }

    /// Counts a view of a link.
    pub async fn count_view(&mut self, id: Uuid, now: i64) -> Result<()> {
        let sql = "update shares set views = views + 1, viewed_at = $2 where id = $1";
        self.0.run(sql, vals![id, now]).await?;
        Ok(())
    }
}

impl<C: Ask> Shares<'_, C> {
    pub async fn get(&mut self, id: Uuid) -> Result<Option<Share>> {
        let sql = "select * from shares where id = $1";
        one(self.0, sql, vals![id])
            .await?
            .as_ref()
            .map(read)
            .transpose()
    }

    pub async fn by_hash(&mut self, hash: &[u8; 32]) -> Result<Option<Share>> {
        let sql = "select * from shares where hash = $1";
        one(self.0, sql, vals![*hash])
            .await?
            .as_ref()
            .map(read)
            .transpose()
    }

    /// Lists the links of a conversation, oldest first.
    pub async fn of(&mut self, c: ConversationId) -> Result<Vec<Share>> {
        let sql = "select * from shares where conversation_id = $1 order by id";
        rows(self.0, sql, vals![c.uuid()])
            .await?
            .iter()
            .map(read)
            .collect()
    }
}

fn read(row: &Row) -> Result<Share> {
    Ok(Share {
        id: row.id("id")?,
        conversation: ConversationId::from_uuid(row.id("conversation_id")?),
        hash: row.hash("hash")?,
        through: row.maybe_int("through")?,
        by: row.text("created_by")?,
        created_at: row.int("created_at")?,
        expires_at: row.maybe_int("expires_at")?,
        closed_at: row.maybe_int("closed_at")?,
        views: row.int("views")?,
        viewed_at: row.maybe_int("viewed_at")?,
    })
}
