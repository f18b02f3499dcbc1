//! `rejoin import --envelope`

use rejoin_core::SessionId;
use rejoin_hub::{ChangeMode, Setting, fields};
use rejoin_runner::Error as RunnerError;
use rejoin_runner::adopt::{Adoption, Terms};
use serde_json::json;

use super::ImportArgs;
use crate::app::App;
use crate::cli::change::handle;
use crate::cli::send::folder_text;
use crate::output::format::count;
use crate::portable::{Envelope, Unpacked, damaged};
use rejoin_errors::{CommandError, Result};

/// The session is put in its place and becomes a conversation.
pub(super) async fn run(app: &App, args: &ImportArgs) -> Result<u8> {
    let key = args.key.as_deref().map(fields::key).transpose()?;
    let terms = Terms {
        permission: args
            .permission
            .or(app.config.permission)
            .unwrap_or_default(),
        scope: app.config.scope,
        here: folder_text(args.workdir.as_deref().unwrap_or(&app.here))?,
    };
    let var = |name: &str| app.runner.config.var(name);
    let (id, packed) = match Envelope::read(&args.file, var).await? {
        Envelope::Session { id, packed } => (id, packed),
        Envelope::IdOnly(id) => return Ok(cold(app, Some(&id))),
        Envelope::Nothing => return Ok(cold(app, None)),
    };
    if let Some(key) = &key {
        must_be_free(app, key, &args.agent, &id).await?;
    }
    let mut from = Unpacked::of(&packed);
    let adopted = app
        .runner
        .adopt_arrived(&args.agent, &id, &mut from, &terms);
    let adoption = adopted.await.map_err(|error| {
        if matches!(error, RunnerError::NothingSaid(_)) {
            // It can be unpacked, and is no session.
            return damaged("it holds no session that somebody used");
        }
        error.into()
    })?;
    if let Some(key) = key {
        let wishes = [Setting::Key(Some(key))];
        let c = adoption.conversation;
        app.hub().set(c, "set", &wishes, ChangeMode::Now).await?;
    }
    told(app, &id, &adoption).await
}

/// An id without its session must not be resumed: nothing is there.
fn cold(app: &App, id: Option<&SessionId>) -> u8 {
    if app.out.json {
        let session = id.map(SessionId::as_str);
        let view = json!({"outcome": "cold", "session_id": session, "conversation_id": null});
        app.out.json(&view);
        return 0;
    }
    let what = match id {
        Some(id) => format!("the envelope names {id} and does not hold it"),
        None => "the envelope is empty".to_owned(),
    };
    app.out.note(&format!("{what}: the next turn begins cold"));
    0
}

async fn must_be_free(app: &App, key: &str, agent: &str, id: &SessionId) -> Result<()> {
    let mut read = app.hub().store.read().await?;
    let Some(other) = read.conversations().by_key("", key).await? else {
        return Ok(());
    };
    let known = read.adoptions().get(agent, id.as_str()).await?;
    if known.is_some_and(|known| known.conversation == other.id) {
        return Ok(());
    }
    let text = format!("another conversation here has the key `{key}`; nothing was changed");
    Err(CommandError::conflict(text).try_this("rejoin import --envelope … --key OTHER"))
}

async fn told(app: &App, id: &SessionId, adoption: &Adoption) -> Result<u8> {
    let mut read = app.hub().store.read().await?;
    let conversation = read.conversations().get(adoption.conversation).await?;
    drop(read);
    let handle = match &conversation {
        Some(conversation) => handle(app, conversation).await?,
        None => String::new(),
    };
    if app.out.json {
        app.out.json(&json!({
            "outcome": "adopted", "session_id": id.as_str(),
            "conversation_id": adoption.conversation, "handle": handle,
            "messages": adoption.messages, "resumable": adoption.resumable,
            "note": adoption.note,
        }));
        return Ok(0);
    }
    app.out.text(&handle);
    let messages = count(adoption.messages, "message");
    app.out.note(&format!(
        "{messages} of session {id} are in {handle}; try: rejoin send -c {handle} \"…\""
    ));
    if let Some(note) = &adoption.note {
        app.out.note(note);
    }
    Ok(0)
}
