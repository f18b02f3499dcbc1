//! Conversations: made, found by any of their names, listed.

use std::collections::BTreeMap;

use rejoin_core::{AgentName, ConversationId, Envelope, Handle, Micros, PermissionMode, Scope};
use serde::{Deserialize, Serialize};

use crate::connections::{Read, Tx};
use crate::db::{Ask, Row, one, rows, vals};
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

/// Of which conversation it is a fork, and through which place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parent {
    pub id: ConversationId,
    pub seq: i64,
}

#[derive(Debug, Clone)]
pub struct Conversation {
    pub id: ConversationId,
    /// Whose it is; commands on the store itself use the one without a name.
    pub namespace: String,
    pub handle: Handle,
    pub key: Option<String>,
    pub title: String,
    /// The agent of its newest turn: it answers when none is named.
    pub agent: AgentName,
    pub workdir: String,
    pub permission: PermissionMode,
    pub scope: Scope,
    pub settings: BTreeMap<String, AgentSettings>,
    pub parent: Option<Parent>,
    /// It was merged into that one.
    pub redirect_to: Option<ConversationId>,
    pub archived_at: Option<i64>,
    /// Who has it open in the agent's own terminal interface.
    pub opened_by: Option<String>,
    /// By the clock of a store that is shared: until then nobody elsewhere takes it.
    pub opened_until: Option<i64>,
    /// No turn of it resumes.
    pub fresh: bool,
    /// What a message does that finds it idle: `auto`, `ask` or `never`.
    pub continues: String,
    pub created_at: i64,
    pub updated_at: i64,
}

/// What the first turn with an agent settled for that agent: later flags last one turn.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentSettings {
    pub model: Option<String>,
    pub tools: Option<Vec<String>>,
    pub deny_tools: Vec<String>,
}

impl Conversation {
    pub fn envelope(&self, agent: &AgentName) -> Envelope {
        let own = self
            .settings
            .get(agent.as_str())
            .cloned()
            .unwrap_or_default();
        Envelope {
            mode: self.permission,
            tools: own.tools,
            deny_tools: own.deny_tools,
        }
    }
}

pub(crate) const STAMP: &str = "update conversations set updated_at = $2 where id = $1";
pub(crate) const NEIGHBOURS: &str = "select handle from
    (select handle from conversations where namespace = (select namespace from conversations where handle = $1) and handle < $1 order by handle desc limit 1) as below
    union all select handle from
    (select handle from conversations where namespace = (select namespace from conversations where handle = $1) and handle > $1 order by handle limit 1) as above";

impl Tx {
    pub async fn add_conversation(&mut self, new: &NewConversation) -> Result<()> {
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
        self.run(sql, values).await?;
        Ok(())
    }

    /// Under which key it was asked for to be made.
    pub async fn set_conversation_key(&mut self, id: ConversationId, key: &str) -> Result<()> {
        let sql = "update conversations set client_key = $2 where id = $1";
        self.run(sql, vals![id.uuid(), key]).await?;
        Ok(())
    }

    /// The one that was made when this key was given before.
    pub async fn conversation_made_for(
        &mut self,
        namespace: &str,
        key: &str,
    ) -> Result<Option<Conversation>> {
        let sql = "select * from conversations where namespace = $1 and client_key = $2";
        let found = one(self, sql, vals![namespace, key]).await?;
        found.as_ref().map(read).transpose()
    }

    /// The newest turn decides who answers next, and where.
    pub async fn touch_conversation(
        &mut self,
        id: ConversationId,
        agent: &AgentName,
        workdir: &str,
        now: i64,
    ) -> Result<()> {
        let sql = "update conversations set agent = $2, workdir = $3, updated_at = $4, archived_at = null where id = $1";
        self.run(sql, vals![id.uuid(), agent.as_str(), workdir, now])
            .await?;
        Ok(())
    }

    /// What an agent's first turn settled, if that turn was taken back and no other is there.
    pub async fn forget_agent_settings(
        &mut self,
        id: ConversationId,
        agent: &AgentName,
    ) -> Result<()> {
        let sql = "select 1 as found from turns where conversation_id = $1 and agent = $2 limit 1";
        let used = one(self, sql, vals![id.uuid(), agent.as_str()])
            .await?
            .is_some();
        if let Some(mut conversation) = by_id(self, id).await?.filter(|_| !used) {
            conversation.settings.remove(agent.as_str());
            self.set_agent_settings(id, &conversation.settings).await?;
        }
        Ok(())
    }

    /// Something happened in it.
    pub async fn stamp_conversation(&mut self, id: ConversationId, now: i64) -> Result<()> {
        self.run(STAMP, vals![id.uuid(), now]).await?;
        Ok(())
    }

    /// Removes a conversation in which nothing was ever kept.
    pub async fn drop_empty_conversation(&mut self, id: ConversationId) -> Result<()> {
        let sql = "delete from conversations where id = $1
            and not exists (select 1 from messages where conversation_id = $1)
            and not exists (select 1 from turns where conversation_id = $1)";
        self.run(sql, vals![id.uuid()]).await?;
        Ok(())
    }

    pub async fn set_agent_settings(
        &mut self,
        id: ConversationId,
        settings: &BTreeMap<String, AgentSettings>,
    ) -> Result<()> {
        let sql = "update conversations set settings = $2 where id = $1";
        self.run(sql, vals![id.uuid(), serde_json::to_string(settings)?])
            .await?;
        Ok(())
    }

    /// All that `rejoin set`, `rename` and `archive` can change.
    pub async fn keep_conversation(&mut self, c: &Conversation) -> Result<()> {
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
        self.must(sql, values, "the conversation is gone").await
    }

    /// What was spent on it before it was adopted.
    pub async fn set_outside_cost(&mut self, id: ConversationId, cost: Micros) -> Result<()> {
        let sql = "update conversations set outside_cost = $2 where id = $1";
        self.run(sql, vals![id.uuid(), cost.0]).await?;
        Ok(())
    }

    /// With everything that belongs to it.
    pub async fn delete_conversation(&mut self, id: ConversationId) -> Result<()> {
        // Whoever was led to it is led nowhere.
        let sql = "delete from conversations where id = $1 or redirect_to = $1";
        self.run(sql, vals![id.uuid()]).await?;
        Ok(())
    }

    /// Takes the lease of `rejoin open`, or gives it back; `was`: who had it.
    pub async fn set_opened_by(
        &mut self,
        id: ConversationId,
        was: Option<&str>,
        now: Option<&str>,
    ) -> Result<()> {
        let sql = "update conversations set opened_by = $3, opened_until = null
            where id = $1 and (opened_by = $2 or (opened_by is null and $2 is null))";
        self.must(sql, vals![id.uuid(), was, now], "somebody else has it open")
            .await
    }

    pub async fn short_handle(&mut self, handle: &Handle) -> Result<String> {
        short_handle(self, handle).await
    }

    pub async fn conversation(&mut self, id: ConversationId) -> Result<Option<Conversation>> {
        by_id(self, id).await
    }

    pub async fn conversation_by_key(
        &mut self,
        namespace: &str,
        key: &str,
    ) -> Result<Option<Conversation>> {
        by_key(self, namespace, key).await
    }
}

impl Read {
    pub async fn conversation(&mut self, id: ConversationId) -> Result<Option<Conversation>> {
        by_id(self, id).await
    }

    pub async fn conversation_by_key(
        &mut self,
        namespace: &str,
        key: &str,
    ) -> Result<Option<Conversation>> {
        by_key(self, namespace, key).await
    }

    /// Those that somebody has open, or had.
    pub async fn opened(&mut self) -> Result<Vec<Conversation>> {
        let sql = "select * from conversations where opened_by is not null";
        rows(self, sql, vec![]).await?.iter().map(read).collect()
    }

    /// At most three whose handle begins so: none, the one, or proof that it is not unique.
    pub async fn conversations_by_handle(
        &mut self,
        namespace: &str,
        prefix: &str,
    ) -> Result<Vec<Conversation>> {
        let sql = "select * from conversations where namespace = $3 and handle >= $1 and handle < $2 order by handle limit 3";
        // Handles use the letters k to z, so `{` is above all of them.
        let found = rows(self, sql, vals![prefix, format!("{prefix}{{"), namespace]).await?;
        found.iter().map(read).collect()
    }

    /// The letters people see: cut where no other handle begins alike.
    pub async fn short_handle(&mut self, handle: &Handle) -> Result<String> {
        short_handle(self, handle).await
    }

    /// How many of its letters are enough to name it.
    pub async fn unique_letters(&mut self, handle: &Handle) -> Result<usize> {
        let near = neighbours(self, handle).await?;
        Ok(handle.unique(near.iter().map(String::as_str)))
    }

    /// The one last used in this folder.
    pub async fn last_conversation_in(
        &mut self,
        namespace: &str,
        workdir: &str,
    ) -> Result<Option<Conversation>> {
        let sql = "select * from conversations where namespace = $2 and workdir = $1 and shelf = 0
            order by updated_at desc limit 1";
        one(self, sql, vals![workdir, namespace])
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
        created_at: row.int("created_at")?,
        updated_at: row.int("updated_at")?,
    })
}
