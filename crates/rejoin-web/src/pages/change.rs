//! Changes of a conversation: each form says what it does to every agent's session before its button.

use askama::Template;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use rejoin_hub::{Affected, Changed, ConversationView, ForkView, MessageView, TurnView};
use serde_json::{Value, json};

use super::Pages;
use super::client::{Client, encoded};
use super::compose::handle;
use super::conversation::one;
use super::error::Result;
use super::form::Fields;
use super::format::of;
use super::frame::{self, Frame, Place, go};
use super::html::{cut, plain};
use super::list::{self, title};
use crate::guard::Caller;

/// Effect of a change on an agent.
struct Effect {
    mark: &'static str,
    agent: String,
    text: String,
}

#[derive(Template)]
#[template(path = "change.html")]
struct ChangePage {
    f: Frame,
    back: String,
    conversation: String,
    heading: String,
    action: String,
    /// Text to edit.
    text: Option<String>,
    /// Text that the change is about.
    quoted: String,
    effects: Vec<Effect>,
    notes: Vec<String>,
    agents: Vec<String>,
    agent: String,
    button: &'static str,
    danger: bool,
    key: String,
}

/// Returns the sentence about a change that was made, by its name in the address.
pub(super) fn done(change: &str) -> &'static str {
    match change {
        "edit" => "The message was changed.",
        "remove" => "The messages were removed.",
        "settings" => "The settings were saved.",
        "undo" => "The last change was undone.",
        _ => "",
    }
}

/// Message that a change is about.
struct About<'a> {
    client: Client<'a>,
    view: ConversationView,
    message: MessageView,
    number: String,
}

impl<'a> About<'a> {
    async fn of(pages: &'a Pages, caller: &'a Caller, name: &str, number: &str) -> Result<Self> {
        let client = Client { pages, caller };
        let (view, message) = one(&client, name, number).await?;
        Ok(Self {
            client,
            view,
            message,
            number: number.to_owned(),
        })
    }

    fn api(&self, rest: &str) -> String {
        format!("/api/messages/{}{rest}", self.message.id)
    }

    fn done(&self, change: &str) -> String {
        format!("/c/{}?done={change}", self.view.handle)
    }

    async fn page(&self, headers: &HeaderMap, what: &str) -> Result<ChangePage> {
        let (pages, caller) = (self.client.pages, self.client.caller);
        let handle = &self.view.handle;
        let key = pages.app.runner.hub.clock.foreign_id()?;
        Ok(ChangePage {
            f: Frame::of(&pages.app, caller, headers, Place::Conversations).await,
            back: format!("/c/{handle}?around={}#m{}", self.number, self.number),
            conversation: title(&self.view.title, handle),
            heading: String::new(),
            action: format!("/c/{handle}/m/{}/{what}", self.number),
            text: None,
            quoted: plain(&cut(&self.message.text, 600)),
            effects: vec![],
            notes: vec![],
            agents: vec![],
            agent: String::new(),
            button: "",
            danger: false,
            key: key.to_string(),
        })
    }
}

fn effects(affected: &[Affected]) -> Vec<Effect> {
    let effect = |one: &Affected| {
        let (mark, text) = match (one.usable, one.was_usable) {
            (true, true) if one.switches => (
                "resumed",
                "goes on in an earlier session, and is told what that has not seen.".to_owned(),
            ),
            (true, _) => (
                "resumed",
                "is not affected: its session continues.".to_owned(),
            ),
            (false, true) => (
                "reseeded",
                "has seen this. Its next turn starts a new session with the transcript.".to_owned(),
            ),
            (false, false) => (
                "reseeded",
                "has no usable session, before and after.".to_owned(),
            ),
        };
        Effect {
            mark,
            agent: one.agent.to_string(),
            text,
        }
    };
    affected.iter().map(effect).collect()
}

fn removed(changed: &Changed, kept: usize) -> Option<String> {
    let n = changed.removed.len().saturating_sub(kept);
    (n > 0).then(|| {
        format!(
            "Removes {} from the history. Undo brings them back.",
            of(n, "message", "messages")
        )
    })
}

fn shown(page: &ChangePage) -> axum::response::Response {
    frame::page(&page.f, StatusCode::OK, page)
}

pub(super) async fn edit_form(
    State(pages): State<Pages>,
    caller: Caller,
    headers: HeaderMap,
    Path((name, number)): Path<(String, String)>,
) -> Result {
    let about = About::of(&pages, &caller, &name, &number).await?;
    let mut page = about.page(&headers, "edit").await?;
    let text = json!({"text": format!("{} ", about.message.text)});
    let changed: Changed = about
        .client
        .patch(&about.api("?dry_run=true"), text)
        .await?;
    page.heading = format!("Edit message {number}");
    page.text = Some(about.message.text.clone());
    page.quoted.clear();
    page.effects = effects(&changed.affected);
    page.notes = vec!["The earlier text is kept; undo restores it.".into()];
    page.button = "Save";
    Ok(shown(&page))
}

pub(super) async fn edit(
    State(pages): State<Pages>,
    caller: Caller,
    Path((name, number)): Path<(String, String)>,
    fields: Fields,
) -> Result {
    let about = About::of(&pages, &caller, &name, &number).await?;
    let text = json!({"text": fields.get("text").unwrap_or_default()});
    about.client.patch::<Changed>(&about.api(""), text).await?;
    Ok(go(&about.done("edit")))
}

pub(super) async fn retry_form(
    State(pages): State<Pages>,
    caller: Caller,
    headers: HeaderMap,
    Path((name, number)): Path<(String, String)>,
) -> Result {
    let about = About::of(&pages, &caller, &name, &number).await?;
    let mut page = about.page(&headers, "retry").await?;
    let changed: Changed = about
        .client
        .post(&about.api("/retry?dry_run=true"), json!({}))
        .await?;
    page.heading = format!("Retry from message {number}");
    page.effects = effects(&changed.affected);
    page.notes = removed(&changed, 0).into_iter().collect();
    page.notes.push(
        "The message runs again in a new session that receives the transcript before it.".into(),
    );
    page.agents = list::agents(&pages);
    page.agent.clone_from(&about.view.agent);
    page.button = "Retry";
    Ok(shown(&page))
}

pub(super) async fn retry(
    State(pages): State<Pages>,
    caller: Caller,
    Path((name, number)): Path<(String, String)>,
    fields: Fields,
) -> Result {
    let about = About::of(&pages, &caller, &name, &number).await?;
    let mut body = json!({"confirm": true});
    if let Some(agent) = fields.some("agent") {
        body["agent"] = json!(agent);
    }
    let turn: TurnView = about
        .client
        .post_once(&about.api("/retry"), body, fields.some("key"))
        .await?;
    Ok(go(&format!("/c/{}", handle(&turn))))
}

pub(super) async fn remove_form(
    State(pages): State<Pages>,
    caller: Caller,
    headers: HeaderMap,
    Path((name, number)): Path<(String, String)>,
) -> Result {
    let about = About::of(&pages, &caller, &name, &number).await?;
    let mut page = about.page(&headers, "remove").await?;
    let changed: Changed = about
        .client
        .delete(&about.api("?dry_run=true&placed=true"))
        .await?;
    page.heading = format!("Remove message {number} and everything after it");
    page.effects = effects(&changed.affected);
    page.notes = removed(&changed, 0).into_iter().collect();
    page.button = "Remove";
    page.danger = true;
    Ok(shown(&page))
}

pub(super) async fn remove(
    State(pages): State<Pages>,
    caller: Caller,
    Path((name, number)): Path<(String, String)>,
) -> Result {
    let about = About::of(&pages, &caller, &name, &number).await?;
    about
        .client
        .delete::<Value>(&about.api("?placed=true"))
        .await?;
    Ok(go(&about.done("remove")))
}

pub(super) async fn fork_form(
    State(pages): State<Pages>,
    caller: Caller,
    headers: HeaderMap,
    Path((name, number)): Path<(String, String)>,
) -> Result {
    let about = About::of(&pages, &caller, &name, &number).await?;
    let mut page = about.page(&headers, "fork").await?;
    page.heading = format!("Fork at message {number}");
    page.notes = vec![
        format!("Copies the messages up to message {number} into a new conversation."),
        "This conversation and its sessions stay as they are.".into(),
    ];
    page.button = "Fork";
    Ok(shown(&page))
}

pub(super) async fn fork(
    State(pages): State<Pages>,
    caller: Caller,
    Path((name, number)): Path<(String, String)>,
    fields: Fields,
) -> Result {
    let about = About::of(&pages, &caller, &name, &number).await?;
    let path = format!("/api/conversations/{}/fork", about.view.id);
    let body = json!({"at": about.message.id.to_string()});
    let made: ForkView = about
        .client
        .post_once(&path, body, fields.some("key"))
        .await?;
    Ok(go(&format!("/c/{}", made.handle)))
}

/// Reverts the last change.
pub(super) async fn undo(
    State(pages): State<Pages>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result {
    let client = Client {
        pages: &pages,
        caller: &caller,
    };
    let path = format!("/api/conversations/{}/undo", encoded(&name));
    client.post::<Changed>(&path, json!({})).await?;
    Ok(go(&format!("/c/{}?done=undo", encoded(&name))))
}

#[derive(Template)]
#[template(path = "conversation_settings.html")]
struct SettingsPage {
    f: Frame,
    view: ConversationView,
    agents: Vec<String>,
    modes: [&'static str; 4],
}

pub(super) async fn settings_form(
    State(pages): State<Pages>,
    caller: Caller,
    headers: HeaderMap,
    Path(name): Path<String>,
) -> Result {
    let client = Client {
        pages: &pages,
        caller: &caller,
    };
    let page = SettingsPage {
        f: Frame::of(&pages.app, &caller, &headers, Place::Conversations).await,
        view: view(&client, &name).await?,
        agents: list::agents(&pages),
        modes: ["read-only", "edit", "ask", "full"],
    };
    Ok(frame::page(&page.f, StatusCode::OK, &page))
}

async fn view(client: &Client<'_>, name: &str) -> Result<ConversationView> {
    let path = format!("/api/conversations/{}?limit=1", encoded(name));
    let whole: rejoin_hub::WholeView = client.get(&path).await?;
    Ok(whole.conversation)
}

pub(super) async fn settings(
    State(pages): State<Pages>,
    caller: Caller,
    Path(name): Path<String>,
    fields: Fields,
) -> Result {
    let client = Client {
        pages: &pages,
        caller: &caller,
    };
    let before = view(&client, &name).await?;
    let mut body = json!({});
    if let Some(archive) = fields.get("archived") {
        body["archived"] = json!(archive == "1");
    } else {
        let old = [
            ("title", &before.title),
            ("agent", &before.agent),
            ("permission", &before.permission),
        ];
        for (field, old) in old {
            if let Some(value) = fields.get(field).filter(|value| value != old) {
                body[field] = json!(value);
            }
        }
    }
    if body.as_object().is_some_and(|changed| !changed.is_empty()) {
        let path = format!("/api/conversations/{}", before.id);
        client.patch::<Value>(&path, body).await?;
    }
    Ok(go(&format!("/c/{}?done=settings", before.handle)))
}

#[derive(Template)]
#[template(path = "delete.html")]
struct DeletePage {
    f: Frame,
    name: String,
    title: String,
}

pub(super) async fn delete_form(
    State(pages): State<Pages>,
    caller: Caller,
    headers: HeaderMap,
    Path(name): Path<String>,
) -> Result {
    let client = Client {
        pages: &pages,
        caller: &caller,
    };
    let view = view(&client, &name).await?;
    let page = DeletePage {
        f: Frame::of(&pages.app, &caller, &headers, Place::Conversations).await,
        title: title(&view.title, &view.handle),
        name: view.handle,
    };
    Ok(frame::page(&page.f, StatusCode::OK, &page))
}

pub(super) async fn delete(
    State(pages): State<Pages>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result {
    let client = Client {
        pages: &pages,
        caller: &caller,
    };
    let path = format!("/api/conversations/{}", encoded(&name));
    client.delete::<Value>(&path).await?;
    Ok(go("/"))
}
