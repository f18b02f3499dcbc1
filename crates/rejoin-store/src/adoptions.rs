//! Adopted sessions: made outside rejoin, with the position up to which they were read.

use rejoin_core::ConversationId;
use serde_json::Value;

use crate::connections::Tx;
use crate::db::{Ask, Row, one, rows, topic, vals};
use crate::error::Result;

#[derive(Debug, Clone)]
pub struct Adoption {
    pub agent: String,
    /// Session id as its CLI names it.
    pub session_id: String,
    pub conversation: ConversationId,
    /// Location of the original if ours is a copy, and the position up to which it was read. Only
    /// the runner interprets it.
    pub source: Value,
}

topic! {
    /// Adopted sessions.
    Adoptions, adoptions
}

impl Adoptions<'_, Tx> {
    pub async fn save(&mut self, a: &Adoption, now: i64) -> Result<()> {
        let sql = "insert into adoptions (agent, session_id, conversation_id, source, adopted_at)
            values ($1, $2, $3, $4, $5)
            on conflict (agent, session_id) do update set conversation_id = $3, source = $4";
        let values = vals![
            a.agent.as_str(),
            a.session_id.as_str(),
            a.conversation.uuid(),
            a.source.to_string(),
            now
        ];
        self.0.run(sql, values).await?;
        Ok(())
    }
}

impl<C: Ask> Adoptions<'_, C> {
    pub async fn get(&mut self, agent: &str, session: &str) -> Result<Option<Adoption>> {
        adoption(self.0, agent, session).await
    }

    /// Returns the conversation that a session belongs to: by a pin in any state, by an attempt, or
    /// by adoption. For a merged conversation, returns the one it was merged into.
    pub async fn session_owner(
        &mut self,
        agent: &str,
        session: &str,
    ) -> Result<Option<ConversationId>> {
        let sql = "select coalesce(c.redirect_to, c.id) as conversation_id from conversations c where c.id = coalesce(
                (select conversation_id from adoptions where agent = $1 and session_id = $2),
                (select conversation_id from pins where agent = $1 and session_id = $2),
                (select t.conversation_id from attempts a join turns t on t.id = a.turn_id
                    where a.session_id = $2 and t.agent = $1 limit 1))";
        let found = one(self.0, sql, vals![agent, session]).await?;
        found
            .map(|row| Ok(ConversationId::from_uuid(row.id("conversation_id")?)))
            .transpose()
    }

    /// Lists the adoptions of a conversation and of those merged into it.
    pub async fn of(&mut self, c: ConversationId) -> Result<Vec<Adoption>> {
        let merged = "select id from conversations where redirect_to = $1 order by id";
        let sql = "select * from adoptions where conversation_id = $1 order by agent, session_id";
        let mut all = rows(self.0, sql, vals![c.uuid()]).await?;
        for row in rows(self.0, merged, vals![c.uuid()]).await? {
            all.extend(rows(self.0, sql, vals![row.id("id")?]).await?);
        }
        all.iter().map(read).collect()
    }
}

async fn adoption(at: &mut impl Ask, agent: &str, session: &str) -> Result<Option<Adoption>> {
    let sql = "select * from adoptions where agent = $1 and session_id = $2";
    one(at, sql, vals![agent, session])
        .await?
        .as_ref()
        .map(read)
        .transpose()
}

fn read(row: &Row) -> Result<Adoption> {
    Ok(Adoption {
        agent: row.text("agent")?,
        session_id: row.text("session_id")?,
        conversation: ConversationId::from_uuid(row.id("conversation_id")?),
        source: row.json("source")?,
    })
}
