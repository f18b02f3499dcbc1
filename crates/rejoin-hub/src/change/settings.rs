//! What belongs to a conversation besides its history: its names, and how its turns are run.

use std::collections::BTreeMap;

use rejoin_core::{AgentName, ConversationId, PermissionMode, Scope};
use rejoin_store::{AgentSettings, Conversation};
use serde::{Deserialize, Serialize};

use super::{Changed, Doing, Made, Undo};
use crate::Hub;
use crate::error::{Error, Result};

/// One thing to be otherwise.
#[derive(Debug, Clone)]
pub enum Wish {
    Title(String),
    /// None: it has no key any more.
    Key(Option<String>),
    Agent(AgentName),
    Workdir(String),
    Permission(PermissionMode),
    Scope(Scope),
    /// No turn of it resumes.
    Fresh(bool),
    /// Of one agent; none of a thing: what the agent does by itself.
    Model(AgentName, Option<String>),
    Tools(AgentName, Option<Vec<String>>),
    DenyTools(AgentName, Vec<String>),
}

/// All of it, as it was.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Before {
    title: String,
    key: Option<String>,
    agent: AgentName,
    workdir: String,
    permission: PermissionMode,
    scope: Scope,
    fresh: bool,
    settings: BTreeMap<String, AgentSettings>,
}

impl Before {
    fn of(c: &Conversation) -> Self {
        Self {
            title: c.title.clone(),
            key: c.key.clone(),
            agent: c.agent.clone(),
            workdir: c.workdir.clone(),
            permission: c.permission,
            scope: c.scope,
            fresh: c.fresh,
            settings: c.settings.clone(),
        }
    }

    pub(super) fn over(self, now: Conversation) -> Conversation {
        Conversation {
            title: self.title,
            key: self.key,
            agent: self.agent,
            workdir: self.workdir,
            permission: self.permission,
            scope: self.scope,
            fresh: self.fresh,
            settings: self.settings,
            ..now
        }
    }
}

impl Hub {
    /// `kind`: what it is called when it is taken back.
    pub async fn set(
        &self,
        c: ConversationId,
        kind: &'static str,
        wishes: &[Wish],
        doing: Doing,
    ) -> Result<Changed> {
        let mut change = self.begin_change(c).await?;
        let before = Before::of(&change.conversation);
        let mut now = change.conversation.clone();
        for wish in wishes {
            apply(&mut now, wish);
        }
        if let Some(key) = &now.key
            && let Some(other) = change.tx.conversation_by_key(key).await?
            && other.id != c
        {
            return Err(Error::Conflict(format!(
                "another conversation has the key `{key}`"
            )));
        }
        change.tx.keep_conversation(&now).await?;
        let made = Made {
            kind,
            undo: Some(Undo::Settings(before)),
            message: None,
            removed: vec![],
            restored: vec![],
        };
        self.end_change(change, made, doing).await
    }

    /// Puts a conversation away, or takes it out again. A message to it takes it out too.
    pub async fn archive(&self, c: ConversationId, away: bool) -> Result<()> {
        let mut tx = self.store.begin().await?;
        let mut conversation = tx.conversation(c).await?.ok_or_else(super::gone)?;
        conversation.archived_at = away.then(|| self.clock.now());
        tx.keep_conversation(&conversation).await?;
        Ok(tx.commit().await?)
    }

    /// With everything that belongs to it. Nothing brings it back.
    pub async fn delete(&self, c: ConversationId) -> Result<()> {
        let mut tx = self.store.begin().await?;
        super::must_be_idle(&mut tx, c).await?;
        tx.delete_conversation(c).await?;
        Ok(tx.commit().await?)
    }
}

fn apply(c: &mut Conversation, wish: &Wish) {
    let mut of = |agent: &AgentName, change: &dyn Fn(&mut AgentSettings)| {
        change(c.settings.entry(agent.to_string()).or_default());
    };
    match wish {
        Wish::Title(title) => c.title.clone_from(title),
        Wish::Key(key) => c.key.clone_from(key),
        Wish::Agent(agent) => c.agent.clone_from(agent),
        Wish::Workdir(folder) => c.workdir.clone_from(folder),
        Wish::Permission(mode) => c.permission = *mode,
        Wish::Scope(scope) => c.scope = *scope,
        Wish::Fresh(fresh) => c.fresh = *fresh,
        Wish::Model(agent, model) => of(agent, &|own| own.model.clone_from(model)),
        Wish::Tools(agent, tools) => of(agent, &|own| own.tools.clone_from(tools)),
        Wish::DenyTools(agent, tools) => of(agent, &|own| own.deny_tools.clone_from(tools)),
    }
}
