//! `rejoin snapshot save`, `rejoin snapshot restore`

use std::path::PathBuf;

use clap::Args;
use rejoin_core::AgentName;
use rejoin_hub::TurnFlags;
use rejoin_runner::restore::{Now, Unwritten, written_to};
use rejoin_store::Conversation;
use serde_json::json;

use super::{find, short, vault};
use crate::app::App;
use crate::cli::change::handle;
use crate::cli::send::folder_text;
use crate::failure::{Failure, Result, codes};
use crate::output::figures::count;

/// Save the session of a conversation now
///
/// The end of every turn does so too; this is for one that could not be saved then.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin snapshot save tmqx\n  rejoin doctor    says which are not saved"
)]
pub(crate) struct SaveArgs {
    /// Conversation: handle, id, key, or `last`
    #[arg(value_name = "CONV", default_value = "last")]
    conversation: String,
    /// Agent; else the one of the newest turn
    #[arg(short, long)]
    agent: Option<String>,
}

/// Put a session back where its agent looks for it
///
/// The next turn does so by itself; this is for using the agent's own program, or to look at the files.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin snapshot restore tmqx\n  rejoin snapshot restore --id 3f0a91c2 --to /tmp/look"
)]
pub(crate) struct RestoreArgs {
    /// Conversation: handle, id, key, or `last`
    #[arg(value_name = "CONV", default_value = "last")]
    conversation: String,
    /// Agent; else the one of the newest turn
    #[arg(short, long)]
    agent: Option<String>,
    /// Working folder; else the conversation's
    #[arg(short, long, value_name = "DIR")]
    workdir: Option<PathBuf>,
    /// Write the files of this snapshot into a folder instead
    #[arg(long, value_name = "ID", requires = "to", conflicts_with_all = ["conversation", "agent", "workdir"])]
    id: Option<String>,
    /// That folder
    #[arg(long, value_name = "DIR", requires = "id")]
    to: Option<PathBuf>,
}

async fn meant(app: &App, name: &str, agent: Option<&String>) -> Result<(Conversation, AgentName)> {
    let conversation = app.hub().find(name, &app.folders()).await?.conversation;
    let agent = match agent {
        Some(name) => AgentName::new(name.as_str()).map_err(|e| Failure::usage(e.to_string()))?,
        None => conversation.agent.clone(),
    };
    Ok((conversation, agent))
}

pub(super) async fn save(app: &App, args: &SaveArgs) -> Result<u8> {
    let (conversation, agent) = meant(app, &args.conversation, args.agent.as_ref()).await?;
    let name = handle(app, &conversation).await?;
    let pins = {
        let mut read = app.hub().store.read().await?;
        read.pins_of(conversation.id, &agent).await?
    };
    let confirmed = pins.into_iter().filter_map(|stored| stored.pin);
    let mut confirmed = confirmed.filter(|pin| pin.state == rejoin_core::PinState::Confirmed);
    let Some(pin) = confirmed.next() else {
        let why = format!("{name} has no session of {agent} to save");
        return Err(Failure::conflict(why).try_this(format!("rejoin show {name}")));
    };
    if let Err(why) = app.runner.save(&pin).await? {
        let why = format!("the session of {agent} in {name} could not be saved: {why}");
        return Err(Failure::conflict(why).try_this("rejoin doctor"));
    }
    if app.out.json {
        app.out.json(&json!({
            "conversation_id": conversation.id, "agent": agent, "session_id": pin.session,
            "saved": "stored",
        }));
    } else {
        app.out
            .text(&format!("the session of {agent} in {name} is saved"));
    }
    Ok(0)
}

pub(super) async fn restore(app: &App, args: &RestoreArgs) -> Result<u8> {
    if let (Some(id), Some(to)) = (&args.id, &args.to) {
        return write_out(app, id, to).await;
    }
    app.must_be_trusted()?;
    let (conversation, agent) = meant(app, &args.conversation, args.agent.as_ref()).await?;
    let name = handle(app, &conversation).await?;
    let flags = TurnFlags {
        workdir: args.workdir.as_deref().map(folder_text).transpose()?,
        default_model: app.config.models.get(agent.as_str()).cloned(),
        ..TurnFlags::default()
    };
    let mut request = flags.over(&conversation, &agent, &app.base_request());
    // Who names another folder means it.
    request.relocate = args.workdir.is_some();
    let now = app
        .runner
        .restore_now(&conversation, &agent, &request)
        .await?;
    let (file, from, aside) = match &now {
        Now::Here { file } => (file, None, None),
        Now::Restored { file, from, aside } => (file, Some(from), aside.as_ref()),
        Now::Cannot { why, evidence } => {
            let why =
                format!("the session of {agent} in {name} cannot be put back ({why}): {evidence}");
            return Err(Failure::conflict(why).try_this(format!("rejoin explain {name} --next")));
        }
        Now::Nothing => {
            let why = format!("{name} has no session of {agent} to put back");
            return Err(Failure::conflict(why).try_this(format!("rejoin snapshot list {name}")));
        }
    };
    if app.out.json {
        app.out.json(&json!({
            "conversation_id": conversation.id, "agent": agent, "restored": from.is_some(),
            "file": file, "from": from, "aside": aside,
        }));
        return Ok(0);
    }
    let file = file.display();
    match from {
        Some(from) => app.out.text(&format!("{file}: restored {from}")),
        None => app
            .out
            .text(&format!("{file}: it is here as it was confirmed")),
    }
    if let Some(aside) = aside {
        app.out
            .note(&format!("another session lay there, kept as {aside}"));
    }
    Ok(0)
}

async fn write_out(app: &App, id: &str, to: &PathBuf) -> Result<u8> {
    let snapshot = find(app, id).await?;
    let name = short(snapshot.id);
    fs_err::create_dir_all(to).map_err(|e| Failure::folder(&to.display().to_string(), &e))?;
    let files = match written_to(vault(app)?, &snapshot, to).await? {
        Ok(files) => files,
        Err(Unwritten::Unusable(why)) => {
            let why = format!("the snapshot {name} was not written: {why}");
            return Err(Failure::new(codes::DAMAGED, why));
        }
        Err(Unwritten::InTheWay(file)) => {
            let why = format!(
                "{} is there already; it was not written over",
                file.display()
            );
            let next = format!("rejoin snapshot restore --id {name} --to /another/folder");
            return Err(Failure::conflict(why).try_this(next));
        }
    };
    if app.out.json {
        app.out.json(&json!({"id": snapshot.id, "files": files}));
    } else {
        let count = count(files.len() as u64, "file");
        app.out
            .text(&format!("{count} of {name} in {}", to.display()));
    }
    Ok(0)
}
