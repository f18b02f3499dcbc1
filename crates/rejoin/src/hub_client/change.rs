//! Changes of a history and of what belongs to a conversation.

use rejoin_core::{ConversationId, MessageId, Scope};
use rejoin_hub::{ChangeMode, Changed, ConversationView, ForkRequest, ForkView, Merged, Setting};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::HubClient;
use crate::remote::{Ask, new_key};
use rejoin_errors::{CommandError, Result};

#[derive(Deserialize)]
struct Reset {
    sessions: u64,
    #[serde(flatten)]
    changed: Changed,
}

#[derive(Deserialize)]
struct ChangedView {
    changed: Option<Changed>,
}

fn later(doing: ChangeMode) -> bool {
    doing == ChangeMode::Later
}

impl HubClient<'_> {
    pub(crate) async fn edit(self, m: MessageId, text: &str, doing: ChangeMode) -> Result<Changed> {
        match self {
            Self::Local(app) => {
                app.runner.take_in_before_change_at(m).await?;
                Ok(app.hub().edit(m, text, doing).await?)
            }
            Self::Remote(remote) => {
                let ask = Ask::patch(&["api", "messages", &m.to_string()])
                    .if_so("dry_run", later(doing))
                    .body(json!({"text": text}));
                remote.ask(ask).await
            }
        }
    }

    pub(crate) async fn truncate(self, m: MessageId, doing: ChangeMode) -> Result<Changed> {
        match self {
            Self::Local(app) => {
                app.runner.take_in_before_change_at(m).await?;
                Ok(app.hub().truncate(m, doing).await?)
            }
            Self::Remote(remote) => {
                let ask = Ask::delete(&["api", "messages", &m.to_string()])
                    .if_so("dry_run", later(doing))
                    .if_so("placed", true);
                remote.ask(ask).await
            }
        }
    }

    pub(crate) async fn would_retry(self, m: MessageId) -> Result<Changed> {
        match self {
            Self::Local(app) => {
                app.runner.take_in_before_change_at(m).await?;
                Ok(app.hub().would_retry(m).await?)
            }
            Self::Remote(remote) => {
                let ask =
                    Ask::post(&["api", "messages", &m.to_string(), "retry"]).if_so("dry_run", true);
                remote.ask(ask).await
            }
        }
    }

    pub(crate) async fn undo(self, c: ConversationId, doing: ChangeMode) -> Result<Changed> {
        match self {
            Self::Local(app) => {
                app.runner.take_in_before_change(c).await?;
                Ok(app.hub().undo(c, doing).await?)
            }
            Self::Remote(remote) => {
                let ask = Ask::post(&["api", "conversations", &c.to_string(), "undo"])
                    .if_so("dry_run", later(doing));
                remote.ask(ask).await
            }
        }
    }

    pub(crate) async fn reset(
        self,
        c: ConversationId,
        doing: ChangeMode,
    ) -> Result<(u64, Changed)> {
        match self {
            Self::Local(app) => {
                app.runner.take_in_before_change(c).await?;
                Ok(app.hub().reset(c, doing).await?)
            }
            Self::Remote(remote) => {
                let ask = Ask::post(&["api", "conversations", &c.to_string(), "reset"])
                    .if_so("dry_run", later(doing));
                let reset: Reset = remote.ask(ask).await?;
                Ok((reset.sessions, reset.changed))
            }
        }
    }

    pub(crate) async fn fork(self, c: ConversationId, wish: &ForkRequest) -> Result<ForkView> {
        match self {
            Self::Local(app) => {
                app.runner.take_in_before_change(c).await?;
                Ok(app.hub().fork(c, wish).await?)
            }
            Self::Remote(remote) => {
                let body = json!({
                    "at": wish.at, "key": wish.key, "title": wish.title,
                    "permission": wish.permission,
                });
                let ask = Ask::post(&["api", "conversations", &c.to_string(), "fork"]).body(body);
                let key = wish.client_key.clone().or_else(new_key);
                remote.ask(ask.known_by(key)).await
            }
        }
    }

    pub(crate) async fn merge(
        self,
        from: ConversationId,
        into: ConversationId,
        doing: ChangeMode,
    ) -> Result<Merged> {
        match self {
            Self::Local(app) => {
                app.runner.take_in_before_change(from).await?;
                app.runner.take_in_before_change(into).await?;
                Ok(app.hub().merge(from, into, doing).await?)
            }
            Self::Remote(remote) => {
                let ask = Ask::post(&["api", "conversations", &from.to_string(), "merge"])
                    .if_so("dry_run", later(doing))
                    .body(json!({"into": into}));
                remote.ask(ask).await
            }
        }
    }

    pub(crate) async fn set(
        self,
        c: ConversationId,
        wishes: &[Setting],
        doing: ChangeMode,
    ) -> Result<Changed> {
        match self {
            Self::Local(app) => {
                let kind = match wishes {
                    [Setting::Title(_)] => "rename",
                    _ => "set",
                };
                Ok(app.hub().set(c, kind, wishes, doing).await?)
            }
            Self::Remote(remote) => {
                let ask = Ask::patch(&["api", "conversations", &c.to_string()])
                    .if_so("dry_run", later(doing))
                    .body(settings(wishes));
                let view: ChangedView = remote.ask(ask).await?;
                let none = || CommandError::unavailable("the hub did not say what was changed");
                view.changed.ok_or_else(none)
            }
        }
    }

    pub(crate) async fn mark_seen(self, c: ConversationId, seq: i64) -> Result<ConversationView> {
        match self {
            Self::Local(app) => {
                let hub = app.hub();
                let now = hub.mark_seen(c, seq).await?;
                Ok(hub.conversation_view(&now).await?)
            }
            Self::Remote(remote) => {
                let ask = Ask::put(&["api", "conversations", &c.to_string(), "seen"]);
                remote.ask(ask.body(json!({"seq": seq}))).await
            }
        }
    }

    pub(crate) async fn archive(self, c: ConversationId, away: bool) -> Result<()> {
        match self {
            Self::Local(app) => Ok(app.hub().archive(c, away).await?),
            Self::Remote(remote) => {
                let id = c.to_string();
                let ask = Ask::patch(&["api", "conversations", &id]);
                remote.tell(ask.body(json!({"archived": away}))).await
            }
        }
    }

    pub(crate) async fn delete(self, c: ConversationId) -> Result<()> {
        match self {
            Self::Local(app) => {
                app.hub().delete(c).await?;
                app.runner.end_processes(c).await;
                Ok(())
            }
            Self::Remote(remote) => {
                let id = c.to_string();
                remote
                    .tell(Ask::delete(&["api", "conversations", &id]))
                    .await
            }
        }
    }
}

/// The body of the HTTP request for these settings.
fn settings(wishes: &[Setting]) -> Value {
    let mut body = Map::new();
    let mut agents: Map<String, Value> = Map::new();
    for wish in wishes {
        let (key, value) = match wish {
            Setting::Title(title) => ("title", json!(title)),
            Setting::Key(key) => ("key", json!(key.as_deref().unwrap_or_default())),
            Setting::Agent(agent) => ("agent", json!(agent)),
            Setting::Workdir(dir) => ("workdir", json!(dir)),
            Setting::Permission(mode) => ("permission", json!(mode)),
            Setting::Scope(Scope::Full) => ("scope", json!("full")),
            Setting::Scope(Scope::Agent) => ("scope", json!("agent")),
            Setting::Fresh(fresh) => ("resume", json!(!fresh)),
            Setting::Continues(continues) => ("continue", json!(continues.as_str())),
            Setting::Model(agent, model) => {
                let model = json!(model.as_deref().unwrap_or_default());
                agents.entry(agent.as_str()).or_insert_with(|| json!({}))["model"] = model;
                continue;
            }
            Setting::Tools(agent, tools) => {
                agents.entry(agent.as_str()).or_insert_with(|| json!({}))["tools"] = json!(tools);
                continue;
            }
            Setting::DenyTools(agent, tools) => {
                let entry = agents.entry(agent.as_str()).or_insert_with(|| json!({}));
                entry["deny_tools"] = json!(tools);
                continue;
            }
        };
        body.insert(key.to_owned(), value);
    }
    if !agents.is_empty() {
        body.insert("agents".to_owned(), Value::Object(agents));
    }
    Value::Object(body)
}
