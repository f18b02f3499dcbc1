//! What belongs to a conversation besides its history: its names, and how its turns are run.

use std::collections::BTreeMap;

use rejoin_core::{AgentName, ConversationId, PermissionMode, Scope};
use rejoin_store::{AgentSettings, Conversation};
use serde::{Deserialize, Serialize};

use super::{Changed, Doing, Made, Undo};
use crate::Hub;
use crate::error::{Error, Result};
use crate::request::check_model;

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
    /// What a message does that finds it idle.
    Continues(Continues),
    /// Of one agent; none of a thing: what the agent does by itself.
    Model(AgentName, Option<String>),
    Tools(AgentName, Option<Vec<String>>),
    DenyTools(AgentName, Vec<String>),
}

/// What a message does to a conversation that nothing runs for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Continues {
    Auto,
    /// It waits in the queue until somebody says so.
    Ask,
    /// It is refused.
    Never,
}

impl Continues {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Ask => "ask",
            Self::Never => "never",
        }
    }
}

/// What was otherwise before; what a later turn settled stays as that left it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Before {
    title: Option<String>,
    key: Option<Key>,
    agent: Option<AgentName>,
    workdir: Option<String>,
    permission: Option<PermissionMode>,
    scope: Option<Scope>,
    fresh: Option<bool>,
    continues: Option<String>,
    /// By agent; none: it had none of its own.
    settings: BTreeMap<String, Option<AgentSettings>>,
}

/// What it was; it may have had none.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Key {
    was: Option<String>,
}

impl Before {
    fn of(was: &Conversation, is: &Conversation) -> Self {
        fn otherwise<T: PartialEq + Clone>(was: &T, is: &T) -> Option<T> {
            (was != is).then(|| was.clone())
        }
        let changed = is
            .settings
            .iter()
            .filter(|(agent, own)| was.settings.get(*agent) != Some(own));
        Self {
            title: otherwise(&was.title, &is.title),
            key: (was.key != is.key).then(|| Key {
                was: was.key.clone(),
            }),
            agent: otherwise(&was.agent, &is.agent),
            workdir: otherwise(&was.workdir, &is.workdir),
            permission: otherwise(&was.permission, &is.permission),
            scope: otherwise(&was.scope, &is.scope),
            fresh: otherwise(&was.fresh, &is.fresh),
            continues: otherwise(&was.continues, &is.continues),
            settings: changed
                .map(|(agent, _)| (agent.clone(), was.settings.get(agent).cloned()))
                .collect(),
        }
    }

    pub(super) fn over(self, mut now: Conversation) -> Conversation {
        for (agent, own) in self.settings {
            match own {
                Some(own) => drop(now.settings.insert(agent, own)),
                None => drop(now.settings.remove(&agent)),
            }
        }
        Conversation {
            title: self.title.unwrap_or(now.title),
            key: self.key.map_or(now.key, |key| key.was),
            agent: self.agent.unwrap_or(now.agent),
            workdir: self.workdir.unwrap_or(now.workdir),
            permission: self.permission.unwrap_or(now.permission),
            scope: self.scope.unwrap_or(now.scope),
            fresh: self.fresh.unwrap_or(now.fresh),
            continues: self.continues.unwrap_or(now.continues),
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
        let mut now = change.conversation.clone();
        for wish in wishes {
            if let Wish::Model(_, model) = wish {
                check_model(model.as_deref())?;
            }
            apply(&mut now, wish);
        }
        let permits = |wish: &Wish| matches!(wish, Wish::Permission(_) | Wish::Tools(..));
        if wishes.iter().any(permits) {
            self.may_have(&now)?;
        }
        if let Some(key) = &now.key
            && let Some(other) = change.tx.conversation_by_key(&now.namespace, key).await?
            && other.id != c
        {
            return Err(Error::Conflict(format!(
                "another conversation has the key `{key}`"
            )));
        }
        change.tx.keep_conversation(&now).await?;
        let before = Before::of(&change.conversation, &now);
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
        Wish::Continues(continues) => continues.as_str().clone_into(&mut c.continues),
        Wish::Model(agent, model) => of(agent, &|own| own.model.clone_from(model)),
        Wish::Tools(agent, tools) => of(agent, &|own| own.tools.clone_from(tools)),
        Wish::DenyTools(agent, tools) => of(agent, &|own| own.deny_tools.clone_from(tools)),
    }
}
