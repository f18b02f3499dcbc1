//! Changes the settings of a conversation: its title and key, and the options of its turns.

use std::collections::BTreeMap;

use rejoin_core::{AgentName, ConversationId, EventBody, PermissionMode, Scope, TurnId};
use rejoin_store::{AgentSettings, Conversation};
use serde::{Deserialize, Serialize};

use super::{ChangeMode, Changed, Made, Undo};
use crate::Hub;
use crate::error::{Error, Result};
use crate::request::check_model;

/// A setting to change.
#[derive(Debug, Clone)]
pub enum Setting {
    Title(String),
    /// `None` removes the key.
    Key(Option<String>),
    Agent(AgentName),
    Workdir(String),
    Permission(PermissionMode),
    Scope(Scope),
    /// True: no turn resumes a session.
    Fresh(bool),
    /// Policy for messages to an idle conversation.
    Continues(Continues),
    /// Settings of one agent. `None` restores the agent's own default.
    Model(AgentName, Option<String>),
    Tools(AgentName, Option<Vec<String>>),
    DenyTools(AgentName, Vec<String>),
}

/// Policy for messages to a conversation of which no turn runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Continues {
    Auto,
    /// Refused until the caller confirms.
    Ask,
    /// Refused always.
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

/// Old values of the changed settings. `None`: unchanged, so a value that a later turn fixed stays.
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
    /// Old settings by agent. `None`: the agent had none.
    settings: BTreeMap<String, Option<AgentSettings>>,
}

/// The old key, if the conversation had one.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Key {
    was: Option<String>,
}

impl Before {
    pub(super) fn of(was: &Conversation, is: &Conversation) -> Self {
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

    /// Returns the names of the changed fields.
    pub(super) fn fields(&self) -> Vec<&'static str> {
        let fields = [
            ("title", self.title.is_some()),
            ("key", self.key.is_some()),
            ("agent", self.agent.is_some()),
            ("workdir", self.workdir.is_some()),
            ("permission", self.permission.is_some()),
            ("scope", self.scope.is_some()),
            ("fresh", self.fresh.is_some()),
            ("continue", self.continues.is_some()),
            ("settings", !self.settings.is_empty()),
        ];
        let changed = fields.into_iter().filter(|(_, changed)| *changed);
        changed.map(|(name, _)| name).collect()
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
    /// Applies settings to a conversation. `kind` is the name under which `undo` lists the change.
    pub async fn set(
        &self,
        c: ConversationId,
        kind: &'static str,
        settings: &[Setting],
        doing: ChangeMode,
    ) -> Result<Changed> {
        let mut change = self.begin_change(c).await?;
        let mut now = change.conversation.clone();
        for setting in settings {
            if let Setting::Model(_, model) = setting {
                check_model(model.as_deref())?;
            }
            apply(&mut now, setting);
        }
        let permits =
            |setting: &Setting| matches!(setting, Setting::Permission(_) | Setting::Tools(..));
        if settings.iter().any(permits) {
            self.may_have(&now)?;
        }
        if let Some(key) = &now.key
            && let Some(other) = change
                .tx
                .conversations()
                .by_key(&now.namespace, key)
                .await?
            && other.id != c
        {
            return Err(Error::Conflict(format!(
                "another conversation has the key `{key}`"
            )));
        }
        change.tx.conversations().save(&now).await?;
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

    /// Archives a conversation or takes it out of the archive. A new message takes it out too.
    pub async fn archive(&self, c: ConversationId, away: bool) -> Result<()> {
        let mut tx = self.store.begin().await?;
        let mut conversation = tx.conversations().get(c).await?.ok_or_else(super::gone)?;
        conversation.archived_at = away.then(|| self.clock.now());
        tx.conversations().save(&conversation).await?;
        let event = EventBody::changed(["archived"]);
        let now = self.clock.now();
        tx.events().add(c, TurnId::nil(), now, &[event]).await?;
        Ok(tx.commit().await?)
    }

    /// Deletes a conversation with all its data. `undo` cannot restore it.
    pub async fn delete(&self, c: ConversationId) -> Result<()> {
        let mut tx = self.store.begin().await?;
        super::must_be_idle(&mut tx, c).await?;
        tx.conversations().delete(c, self.clock.now()).await?;
        Ok(tx.commit().await?)
    }
}

fn apply(c: &mut Conversation, setting: &Setting) {
    let mut of = |agent: &AgentName, change: &dyn Fn(&mut AgentSettings)| {
        change(c.settings.entry(agent.to_string()).or_default());
    };
    match setting {
        Setting::Title(title) => c.title.clone_from(title),
        Setting::Key(key) => c.key.clone_from(key),
        Setting::Agent(agent) => c.agent.clone_from(agent),
        Setting::Workdir(folder) => c.workdir.clone_from(folder),
        Setting::Permission(mode) => c.permission = *mode,
        Setting::Scope(scope) => c.scope = *scope,
        Setting::Fresh(fresh) => c.fresh = *fresh,
        Setting::Continues(continues) => continues.as_str().clone_into(&mut c.continues),
        Setting::Model(agent, model) => of(agent, &|own| own.model.clone_from(model)),
        Setting::Tools(agent, tools) => of(agent, &|own| own.tools.clone_from(tools)),
        Setting::DenyTools(agent, tools) => of(agent, &|own| own.deny_tools.clone_from(tools)),
    }
}
