//! The hub that a command talks to: the one of this process, or a daemon's. The answers are the same.

mod change;

use std::path::Path;

use rejoin_agents::Adapter;
use rejoin_core::{AgentName, ConversationId, TurnId};
use rejoin_hub::{
    CostsQuery, CostsView, ExplainView, HitsView, InboxDocument, LinkView, ListQuery, ListView,
    NameKind, NamedView, NewTokenView, PageRequest, SearchQuery, SessionAccess, TokenRequest,
    TokenView, TurnView, WholeView, rfc3339,
};
use serde::Deserialize;
use serde_json::json;

use crate::app::{App, folders};
use crate::cli::folder_text;
use crate::config::nearest;
use crate::output::Output;
use crate::output::format::Now;
use crate::remote::{Ask, Remote, new_key};
use rejoin_errors::{CommandError, Result};

#[derive(Clone, Copy)]
pub(crate) enum HubClient<'a> {
    Local(&'a App),
    Remote(&'a Remote),
}

#[derive(Deserialize)]
struct Tokens {
    tokens: Vec<TokenView>,
}

impl HubClient<'_> {
    pub(crate) fn out(self) -> Output {
        match self {
            Self::Local(app) => app.out,
            Self::Remote(remote) => remote.out,
        }
    }

    pub(crate) fn now() -> Now {
        Now::at(rejoin_hub::Clock.now())
    }

    /// Folders in which `last` looks; empty: everywhere.
    fn folders(self) -> Vec<String> {
        match self {
            Self::Local(app) => app.folders(),
            Self::Remote(remote) if remote.same_machine() => folders(&remote.here),
            Self::Remote(_) => vec![],
        }
    }

    /// The folder we are in, if that is one there.
    pub(crate) fn folder(self) -> Result<Option<String>> {
        if let Self::Remote(remote) = self
            && !remote.same_machine()
        {
            let text = format!(
                "{} is on another machine: --here means nothing there",
                remote.called()
            );
            return Err(CommandError::usage(text).try_this("the same without --here"));
        }
        Ok(self.folders().into_iter().next())
    }

    /// A folder as it is stored there.
    pub(crate) fn folder_text(self, dir: &Path) -> Result<String> {
        match self {
            Self::Remote(remote) if !remote.same_machine() => Ok(dir.display().to_string()),
            Self::Local(_) | Self::Remote(_) => folder_text(dir),
        }
    }

    /// An agent that is known there. A daemon says so itself.
    pub(crate) fn agent(self, name: &str) -> Result<AgentName> {
        if let Self::Local(app) = self
            && app.runner.config.adapter(name).is_none()
        {
            return Err(unknown_agent(app, name));
        }
        AgentName::new(name).map_err(|e| CommandError::usage(e.to_string()))
    }

    pub(crate) async fn named(self, name: &str, want: NameKind) -> Result<NamedView> {
        let folders = self.folders();
        match self {
            Self::Local(app) => {
                let named = app.hub().named(name, want, &folders).await?;
                if want != NameKind::Said {
                    return Ok(named);
                }
                // The last message may have been said in a session by hand.
                let id = named.conversation.id;
                app.runner.take_in_before_change(id).await?;
                Ok(app.hub().named(name, want, &folders).await?)
            }
            Self::Remote(remote) => {
                let want = serde_json::to_value(want).unwrap_or_default();
                let ask = Ask::get(&["api", "find"])
                    .with("name", name.to_owned())
                    .with("want", want.as_str().map(str::to_owned))
                    .with("folder", folders.first().cloned())
                    .with("checkout", folders.get(1).cloned());
                remote.ask(ask).await
            }
        }
    }

    /// A turn, as `named` finds it.
    pub(crate) async fn turn(self, name: &str) -> Result<TurnView> {
        let found = self.named(name, NameKind::Turn).await?;
        let none = || CommandError::not_found(format!("there is no turn `{name}`"));
        found.turn.ok_or_else(none)
    }

    pub(crate) async fn list(self, wish: &ListQuery) -> Result<ListView> {
        match self {
            Self::Local(app) => Ok(app.hub().list(wish).await?),
            Self::Remote(remote) => {
                let ask = Ask::get(&["api", "conversations"])
                    .with("workdir", wish.workdir.clone())
                    .with("agent", wish.agent.clone())
                    .with("state", wish.state.clone())
                    .with("cursor", wish.cursor.clone())
                    .with("q", wish.words.clone())
                    .with("title", wish.title.clone())
                    .with("since", wish.since.map(rfc3339))
                    .with("limit", wish.limit.to_string())
                    .if_so("counts", wish.counts)
                    .if_so("archived", wish.archived);
                remote.ask(ask).await
            }
        }
    }

    /// How many letters of its handle are enough to name it.
    pub(crate) async fn letters(self, c: ConversationId) -> Result<Option<usize>> {
        let Self::Local(app) = self else {
            return Ok(None);
        };
        let mut read = app.hub().store.read().await?;
        Ok(Some(
            read.conversations()
                .unique_letters(&rejoin_core::Handle::of(c))
                .await?,
        ))
    }

    pub(crate) async fn search(self, wish: &SearchQuery) -> Result<HitsView> {
        match self {
            Self::Local(app) => Ok(app.hub().search(wish).await?),
            Self::Remote(remote) => {
                let ask = Ask::get(&["api", "search"])
                    .with("q", wish.words.clone())
                    .with("agent", wish.agent.clone())
                    .with("workdir", wish.workdir.clone())
                    .with("limit", wish.limit.to_string());
                remote.ask(ask).await
            }
        }
    }

    /// Returns the costs of a period.
    pub(crate) async fn costs(self, query: &CostsQuery) -> Result<CostsView> {
        match self {
            Self::Local(app) => Ok(app.hub().costs(query).await?),
            Self::Remote(remote) => {
                let ask = Ask::get(&["api", "costs"])
                    .with("by", query.by.to_string())
                    .with("since", query.since.map(rejoin_hub::rfc3339))
                    .with("until", query.until.map(rejoin_hub::rfc3339))
                    .with("zone", query.zone.clone());
                remote.ask(ask).await
            }
        }
    }

    /// Returns a page of a conversation.
    pub(crate) async fn page(self, c: ConversationId, page: &PageRequest) -> Result<WholeView> {
        match self {
            Self::Local(app) => {
                let hub = app.hub();
                let found = hub.find(&c.to_string(), &[]).await?;
                Ok(hub.page_view(&found.conversation, page).await?)
            }
            Self::Remote(remote) => {
                let id = c.to_string();
                let number = |n: Option<i64>| n.map(|n| n.to_string());
                let ask = Ask::get(&["api", "conversations", &id])
                    .if_so("all", page.all)
                    .with("before", number(page.before))
                    .with("after", number(page.after))
                    .with("around", number(page.around))
                    .with("limit", number(page.limit));
                remote.ask(ask).await
            }
        }
    }

    pub(crate) async fn explain(self, turn: TurnId) -> Result<ExplainView> {
        match self {
            Self::Local(app) => Ok(app.hub().explain(turn).await?),
            Self::Remote(remote) => {
                let ask = Ask::get(&["api", "turns", &turn.to_string(), "explain"]);
                remote.ask(ask).await
            }
        }
    }

    pub(crate) async fn inbox(self) -> Result<InboxDocument> {
        match self {
            Self::Local(app) => Ok(app.hub().inbox().await?),
            Self::Remote(remote) => remote.ask(Ask::get(&["api", "inbox"])).await,
        }
    }

    pub(crate) async fn create_token(self, wish: &TokenRequest) -> Result<NewTokenView> {
        match self {
            Self::Local(app) => Ok(app.hub().create_token(wish).await?),
            Self::Remote(remote) => {
                let mut body = json!({
                    "name": wish.name, "scope": wish.scope.to_string(), "namespace": wish.namespace,
                    "expires_in_s": wish.expires_in.map(|t| t / 1_000_000),
                });
                // An older daemon does not know the field, and must not make a wider token instead.
                if let Some(most) = wish.max_permission {
                    body["max_permission"] = json!(most);
                }
                let ask = Ask::post(&["api", "tokens"]).known_by(new_key());
                remote.ask(ask.body(body)).await
            }
        }
    }

    pub(crate) async fn tokens(self) -> Result<Vec<TokenView>> {
        match self {
            Self::Local(app) => Ok(app.hub().token_views().await?),
            Self::Remote(remote) => {
                let tokens: Tokens = remote.ask(Ask::get(&["api", "tokens"])).await?;
                Ok(tokens.tokens)
            }
        }
    }

    /// Creates a link that signs in one browser. Needs a daemon, because browsers use one.
    pub(crate) async fn pair(self) -> Result<LinkView> {
        match self {
            Self::Local(_) => Err(no_daemon()),
            Self::Remote(remote) => remote.ask(Ask::post(&["api", "pair"])).await,
        }
    }

    /// Ends all sessions of browsers.
    pub(crate) async fn end_browser_sessions(self) -> Result<()> {
        match self {
            Self::Local(app) => {
                let owner = SessionAccess::local().owner();
                app.hub().end_browser_sessions(&owner).await?;
                Ok(())
            }
            Self::Remote(remote) => remote.tell(Ask::delete(&["api", "sessions"])).await,
        }
    }

    pub(crate) async fn revoke_token(self, name: &str) -> Result<()> {
        match self {
            Self::Local(app) => Ok(app.hub().revoke_token(name).await?),
            Self::Remote(remote) => remote.tell(Ask::delete(&["api", "tokens", name])).await,
        }
    }
}

fn unknown_agent(app: &App, name: &str) -> CommandError {
    let known = app.runner.config.adapters().map(<dyn Adapter>::name);
    let text = format!("no agent is called `{name}`");
    match nearest(name, known) {
        Some((near, true)) => CommandError::usage(format!("{text}; did you mean `{near}`?"))
            .try_this(format!("the same with {near}")),
        Some((_, false)) | None => CommandError::usage(text).try_this("rejoin doctor"),
    }
}

fn no_daemon() -> CommandError {
    CommandError::unavailable("no daemon runs on this data folder; a browser needs one")
        .try_this("rejoin serve")
}
