//! `rejoin snapshot restore`

use std::path::PathBuf;

use clap::Args;
use rejoin_hub::TurnFlags;
use rejoin_runner::restore::{Now, Unwritten, written_to};
use serde_json::json;

use super::{find, resolve, short, vault};
use crate::app::App;
use crate::cli::change::handle;
use crate::cli::send::folder_text;
use crate::output::format::count;
use rejoin_errors::{CommandError, Result, codes};

/// Restore a session to the place where its agent reads it
///
/// The next turn restores by itself. Use this to run the agent's own program, or to inspect the files.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin snapshot restore tmqx\n  rejoin snapshot restore --id 3f0a91c2 --to /tmp/look"
)]
pub(crate) struct RestoreArgs {
    /// Conversation: handle, id, key, or `last`
    #[arg(value_name = "CONV", default_value = "last")]
    conversation: String,
    /// Agent; default: the agent of the newest turn
    #[arg(short, long)]
    agent: Option<String>,
    /// Working folder; default: the conversation's
    #[arg(short, long, value_name = "DIR")]
    workdir: Option<PathBuf>,
    /// Write the files of this snapshot into --to instead
    #[arg(long, value_name = "ID", requires = "to", conflicts_with_all = ["conversation", "agent", "workdir"])]
    id: Option<String>,
    /// Target folder
    #[arg(long, value_name = "DIR", requires = "id")]
    to: Option<PathBuf>,
}

impl RestoreArgs {
    /// Returns true if files are written into a folder of their own, and no session changes.
    pub(super) fn writes_out(&self) -> bool {
        self.id.is_some()
    }
}

pub(super) async fn restore(app: &App, args: &RestoreArgs) -> Result<u8> {
    if let (Some(id), Some(to)) = (&args.id, &args.to) {
        return write_out(app, id, to).await;
    }
    let (conversation, agent) = resolve(app, &args.conversation, args.agent.as_ref()).await?;
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
            return Err(
                CommandError::conflict(why).try_this(format!("rejoin explain {name} --next"))
            );
        }
        Now::Nothing => {
            let why = format!("{name} has no session of {agent} to put back");
            return Err(
                CommandError::conflict(why).try_this(format!("rejoin snapshot list {name}"))
            );
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
    fs_err::create_dir_all(to).map_err(|e| CommandError::folder(&to.display().to_string(), &e))?;
    let files = match written_to(vault(app)?, &snapshot, to).await? {
        Ok(files) => files,
        Err(Unwritten::Unusable(why)) => {
            let why = format!("the snapshot {name} was not written: {why}");
            return Err(CommandError::new(codes::DAMAGED, why));
        }
        Err(Unwritten::InTheWay(file)) => {
            let why = format!(
                "{} is there already; it was not written over",
                file.display()
            );
            let next = format!("rejoin snapshot restore --id {name} --to /another/folder");
            return Err(CommandError::conflict(why).try_this(next));
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
