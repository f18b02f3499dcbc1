//! Conversations: created, found by any of their names, listed.

use std::collections::BTreeMap;

use rejoin_core::{
    AgentName, ConversationId, EventBody, Handle, Micros, PermissionMode, Permissions, Scope,
    TurnId,
};
use serde::{Deserialize, Serialize};

use crate::connections::Tx;
use crate::db::{Ask, Row, one, rows, topic, vals};
use crate::error::{Error, Result};

#[derive(Debug, Clone)]
pub struct NewConversation {
    pub id: ConversationId,
    pub namespace: String,
    pub key: Option<String>,
    pub title: String,
    pub agent: AgentName,
    pub workdir: String,
    pub permission: PermissionMode,
    pub scope: Scope,
    pub parent: Option<Parent>,
    pub now: i64,
}

/// Parent of a fork, and the last copied position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parent {
    pub id: ConversationId,
    pub seq: i64,
}

#[derive(Debug, Clone)]
pub struct Conversation {
    pub id: ConversationId,
    /// Namespace of the conversation. Commands that open the store directly use the empty one.
    pub namespace: String,
    pub handle: Handle,
    pub key: Option<String>,
    pub title: String,
    /// Agent of the newest turn. Answers if a message names no agent.
    pub agent: AgentName,
    pub workdir: String,
    pub permission: PermissionMode,
    pub scope: Scope,
    pub settings: BTreeMap<String, AgentSettings>,
    pub parent: Option<Parent>,
    /// Conversation that this one was merged into.
    pub redirect_to: Option<ConversationId>,
    pub archived_at: Option<i64>,
    /// Process that has it open in the agent's own terminal interface.
    pub opened_by: Option<String>,
    /// End of that lease by the clock of a shared store. No other machine takes the conversation
    /// before.
    pub opened_until: Option<i64>,
    /// True: no turn resumes a session.
    pub fresh: bool,
    /// Policy for messages to an idle conversation: `auto`, `ask` or `never`.
    pub continues: String,
    /// Number of turns.
    pub turns: i64,
    /// Number of turns that ran and whose cost is unknown.
    pub unpriced: i64,
    /// Position of the newest message that was read.
    pub seen: i64,
    pub created_at: i64,
    pub updated_at: i64,
}

/// Settings that the first turn with an agent fixed for it. Later flags apply to one turn only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentSettings {
    pub model: Option<String>,
    pub tools: Option<Vec<String>>,
    pub deny_tools: Vec<String>,
}

impl Conversation {
    pub fn permissions(&self, agent: &AgentName) -> Permissions {
        let own = self
            .settings
            .get(agent.as_str())
            .cloned()
            .unwrap_or_default();
        Permissions {
            mode: self.permission,
            tools: own.tools,
            deny_tools: own.deny_tools,
            commands: false,
        }
    }
}

pub(crate) const STAMP: &str = "update conversations set updated_at = $2 where id = $1";
pub(crate) const NEIGHBOURS: &str = "select handle from
    (select handle from conversations where namespace = (select namespace from conversations where handle = $1) and handle < $1 order by handle desc limit 1) as below
    union all select handle from
    (select handle from conversations where namespace = (select namespace from conversations where handle = $1) and handle > $1 order by handle limit 1) as above";

topic! {
    /// Conversations, their names and settings.
    Conversations, conversations
}

impl Conversations<'_, Tx> {
    pub async fn add(&mut self, new: &NewConversation) -> Result<()> {
        let sql = "insert into conversations (id, handle, key, title, agent, workdir, permission, scope, settings, created_at, updated_at, parent_id, parent_seq, namespace)
            values ($1, $2, $3, $4, $5, $6, $7, $8, '{}', $9, $9, $10, $11, $12)";
        let values = vals![
            new.id.uuid(),
            Handle::of(new.id).letters(),
            new.key.clone(),
            new.title.as_str(),
            new.agent.as_str(),
            new.workdir.as_str(),
            new.permission.as_str(),
            new.scope.as_str(),
            new.now,
            new.parent.map(|p| p.id.uuid()),
            new.parent.map(|p| p.seq),
            new.namespace.as_str(),
        ];
        self.0.run(sql, values).await?;
        let parent_id = new.parent.map(|p| p.id);
        let created = EventBody::ConversationCreated { parent_id };
        self.0
            .events()
            .add(new.id, TurnId::nil(), new.now, &[created])
            .await
    }

    /// Stores the idempotency key of the request that created the conversation.
    pub async fn set_key(&mut self, id: ConversationId, key: &str) -> Result<()> {
        let sql = "update conversations set client_key = $2 where id = $1";
        self.0.run(sql, vals![id.uuid(), key]).await?;
        Ok(())
    }

    /// Returns the conversation that an earlier request with this idempotency key created.
    pub async fn made_for(&mut self, namespace: &str, key: &str) -> Result<Option<Conversation>> {
        let sql = "select * from conversations where namespace = $1 and client_key = $2";
        let found = one(self.0, sql, vals![namespace, key]).await?;
        found.as_ref().map(read).transpose()
    }

    /// Records agent and folder of the newest turn as defaults for the next one.
    pub async fn touch(
        &mut self,
        id: ConversationId,
        agent: &AgentName,
        workdir: &str,
        now: i64,
    ) -> Result<()> {
        let sql = "update conversations set agent = $2, workdir = $3, updated_at = $4, archived_at = null where id = $1";
        self.0
            .run(sql, vals![id.uuid(), agent.as_str(), workdir, now])
            .await?;
        Ok(())
    }

    /// Deletes the settings that an agent's first turn fixed, if that turn was withdrawn and no
    /// other exists.
    pub async fn forget_agent_settings(
        &mut self,
        id: ConversationId,
        agent: &AgentName,
    ) -> Result<()> {
        let sql = "select 1 as found from turns where conversation_id = $1 and agent = $2 limit 1";
        let used = one(self.0, sql, vals![id.uuid(), agent.as_str()])
            .await?
            .is_some();
        if let Some(mut conversation) = by_id(self.0, id).await?.filter(|_| !used) {
            conversation.settings.remove(agent.as_str());
            self.set_agent_settings(id, &conversation.settings).await?;
        }
        Ok(())
    }

    /// Updates the time of the last activity.
    pub async fn stamp(&mut self, id: ConversationId, now: i64) -> Result<()> {
        self.0.run(STAMP, vals![id.uuid(), now]).await?;
        Ok(())
    }

    /// Deletes a conversation without messages and turns.
    pub async fn drop_empty(&mut self, id: ConversationId, now: i64) -> Result<()> {
        let sql = "select 1 as found from conversations where id = $1
            and not exists (select 1 from messages where conversation_id = $1)
            and not exists (select 1 from turns where conversation_id = $1)";
        if one(self.0, sql, vals![id.uuid()]).await?.is_some() {
            self.delete(id, now).await?;
        }
        Ok(())
    }

    pub async fn set_agent_settings(
        &mut self,
        id: ConversationId,
        settings: &BTreeMap<String, AgentSettings>,
    ) -> Result<()> {
        let sql = "update conversations set settings = $2 where id = $1";
        self.0
            .run(sql, vals![id.uuid(), serde_json::to_string(settings)?])
            .await?;
        Ok(())
    }

    /// Stores all settings that `rejoin set`, `rename` and `archive` can change.
    pub async fn save(&mut self, c: &Conversation) -> Result<()> {
        let sql = "update conversations set key = $2, title = $3, agent = $4, workdir = $5, permission = $6,
                scope = $7, settings = $8, fresh = $9, archived_at = $10, continues = $11 where id = $1";
        let values = vals![
            c.id.uuid(),
            c.key.clone(),
            c.title.as_str(),
            c.agent.as_str(),
            c.workdir.as_str(),
            c.permission.as_str(),
            c.scope.as_str(),
            serde_json::to_string(&c.settings)?,
            i64::from(c.fresh),
            c.archived_at,
            c.continues.as_str(),
        ];
        self.0.must(sql, values, "the conversation is gone").await
    }

    /// Stores the position of the newest message that was read, in either direction.
    pub async fn set_seen(&mut self, id: ConversationId, seq: i64) -> Result<()> {
        let sql = "update conversations set seen = $2 where id = $1";
        self.0.run(sql, vals![id.uuid(), seq]).await?;
        Ok(())
    }

    /// Stores the cost of an adopted session before its adoption.
    pub async fn set_outside_cost(&mut self, id: ConversationId, cost: Micros) -> Result<()> {
        let sql = "update conversations set outside_cost = $2 where id = $1";
        self.0.run(sql, vals![id.uuid(), cost.0]).await?;
        Ok(())
    }

    /// Deletes a conversation with all its data.
    pub async fn delete(&mut self, id: ConversationId, now: i64) -> Result<()> {
        // Another process may have deleted it meanwhile: an event needs its conversation.
        if self.get(id).await?.is_none() {
            return Ok(());
        }
        self.0.events().add_deletion(id, now).await?;
        // Conversations that redirect to it are deleted as well.
        let sql = "delete from conversations where id = $1 or redirect_to = $1";
        self.0.run(sql, vals![id.uuid()]).await?;
        Ok(())
    }

    /// Takes or releases the lease of `rejoin open`. `was` is the expected holder.
    pub async fn set_opened_by(
        &mut self,
        id: ConversationId,
        was: Option<&str>,
        now: Option<&str>,
    ) -> Result<()> {
        let sql = "update conversations set opened_by = $3, opened_until = null
            where id = $1 and (opened_by = $2 or (opened_by is null and $2 is null))";
        self.0
            .must(sql, vals![id.uuid(), was, now], "somebody else has it open")
            .await
    }
}

impl<C: Ask> Conversations<'_, C> {
    pub async fn get(&mut self, id: ConversationId) -> Result<Option<Conversation>> {
        by_id(self.0, id).await
    }

    pub async fn by_key(&mut self, namespace: &str, key: &str) -> Result<Option<Conversation>> {
        by_key(self.0, namespace, key).await
    }

    /// Lists the conversations with an opener, alive or not.
    pub async fn opened(&mut self) -> Result<Vec<Conversation>> {
        let sql = "select * from conversations where opened_by is not null";
        rows(self.0, sql, vec![]).await?.iter().map(read).collect()
    }

    /// Returns at most three conversations whose handle has this prefix: none, the only one, or
    /// proof of ambiguity.
    pub async fn by_handle(&mut self, namespace: &str, prefix: &str) -> Result<Vec<Conversation>> {
        let sql = "select * from conversations where namespace = $3 and handle >= $1 and handle < $2 order by handle limit 3";
        // Handles use the letters k to z, so `{` is above all of them.
        let found = rows(self.0, sql, vals![prefix, format!("{prefix}{{"), namespace]).await?;
        found.iter().map(read).collect()
    }

    /// Returns the handle as displayed: its shortest unique prefix.
    pub async fn short_handle(&mut self, handle: &Handle) -> Result<String> {
        short_handle(self.0, handle).await
    }

    /// Returns the number of letters that identify the handle.
    pub async fn unique_letters(&mut self, handle: &Handle) -> Result<usize> {
        let near = neighbours(self.0, handle).await?;
        Ok(handle.unique(near.iter().map(String::as_str)))
    }

    /// Returns the conversation that was last used in this folder.
    pub async fn last_in(
        &mut self,
        namespace: &str,
        workdir: &str,
    ) -> Result<Option<Conversation>> {
        let sql = "select * from conversations where namespace = $2 and workdir = $1 and shelf = 0
            order by updated_at desc limit 1";
        one(self.0, sql, vals![workdir, namespace])
            .await?
            .as_ref()
            .map(read)
            .transpose()
    }
}

async fn short_handle(at: &mut impl Ask, handle: &Handle) -> Result<String> {
    let near = neighbours(at, handle).await?;
    Ok(handle.short(near.iter().map(String::as_str)).to_owned())
}

async fn neighbours(at: &mut impl Ask, handle: &Handle) -> Result<Vec<String>> {
    let found = rows(at, NEIGHBOURS, vals![handle.letters()]).await?;
    found.iter().map(|r| r.text("handle")).collect()
}

async fn by_id(at: &mut impl Ask, id: ConversationId) -> Result<Option<Conversation>> {
    let sql = "select * from conversations where id = $1";
    one(at, sql, vals![id.uuid()])
        .await?
        .as_ref()
        .map(read)
        .transpose()
}

async fn by_key(at: &mut impl Ask, namespace: &str, key: &str) -> Result<Option<Conversation>> {
    let sql = "select * from conversations where namespace = $1 and key = $2";
    one(at, sql, vals![namespace, key])
        .await?
        .as_ref()
        .map(read)
        .transpose()
}

pub(crate) fn read(row: &Row) -> Result<Conversation> {
    let id = ConversationId::from_uuid(row.id("id")?);
    Ok(Conversation {
        id,
        namespace: row.text("namespace")?,
        handle: Handle::of(id),
        key: row.maybe_text("key")?,
        title: row.text("title")?,
        agent: AgentName::new(row.text("agent")?).map_err(|e| Error::Foreign(e.to_string()))?,
        workdir: row.text("workdir")?,
        permission: row.word("permission")?,
        scope: if row.text("scope")? == "agent" {
            Scope::Agent
        } else {
            Scope::Full
        },
        settings: row.json("settings")?,
        parent: match (row.maybe_id("parent_id")?, row.maybe_int("parent_seq")?) {
            (Some(id), Some(seq)) => Some(Parent {
                id: ConversationId::from_uuid(id),
                seq,
            }),
            _ => None,
        },
        redirect_to: row.maybe_id("redirect_to")?.map(ConversationId::from_uuid),
        archived_at: row.maybe_int("archived_at")?,
        opened_by: row.maybe_text("opened_by")?,
        opened_until: row.maybe_int("opened_until")?,
        fresh: row.int("fresh")? != 0,
        continues: row.text("continues")?,
        turns: row.int("turns")?,
        unpriced: row.int("unpriced")?,
        seen: row.int("seen")?,
        created_at: row.int("created_at")?,
        updated_at: row.int("updated_at")?,
    })
}
