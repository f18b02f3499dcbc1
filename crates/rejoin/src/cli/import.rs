//! `rejoin import`

mod envelope;

use std::path::PathBuf;

use clap::Args;
use rejoin_core::PermissionMode;
use rejoin_hub::{Error as HubError, ImportOptions, ImportResult, ImportView, fields};
use rejoin_store::ArchiveError;

use super::send::folder_text;
use crate::app::App;
use crate::cli::command::{Help, Run, Task, TrustCheck};
use crate::output::format::count;
use crate::portable::seekable;
use rejoin_errors::{CommandError, Result};

/// Import a conversation that was exported elsewhere
///
/// If the conversation exists already, only new messages are added. If both have new messages, nothing
/// changes.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin import talk.rejoin\n  ssh elsewhere rejoin export tmqx | rejoin import -\n  rejoin import talk.rejoin --as-copy -w ."
)]
pub(crate) struct ImportArgs {
    /// The archive; `-`: read stdin
    #[arg(value_name = "FILE")]
    file: String,
    /// Import as a new conversation with new ids
    #[arg(long)]
    as_copy: bool,
    /// Key of the new conversation
    #[arg(short, long, value_name = "KEY")]
    key: Option<String>,
    /// Working folder; default: this one
    #[arg(short, long, value_name = "DIR")]
    workdir: Option<PathBuf>,
    /// Permissions: read-only, edit, full, ask
    #[arg(long, value_name = "MODE")]
    permission: Option<PermissionMode>,
    /// A session from FILE, a URL, or `env` (see docs)
    #[arg(long, conflicts_with = "as_copy")]
    envelope: bool,
    /// The agent of that session
    #[arg(short, long, value_name = "AGENT", default_value = "claude")]
    agent: String,
}

impl Run for ImportArgs {
    const NAME: &'static str = "import";
    const HELP: Help = Help::Talk("and back");

    fn task(self) -> Task {
        let trust = if self.envelope {
            TrustCheck::Required
        } else {
            TrustCheck::Unneeded
        };
        Task::store(self, run).trust(trust)
    }
}

async fn run(app: &App, args: &ImportArgs) -> Result<u8> {
    if args.envelope {
        return envelope::run(app, args).await;
    }
    let wish = ImportOptions {
        as_copy: args.as_copy,
        key: args.key.as_deref().map(fields::key).transpose()?,
        workdir: folder_text(args.workdir.as_deref().unwrap_or(&app.here))?,
        permission: args.permission,
        most: app.config.import_permission(),
    };
    let mut from = seekable(&args.file, &app.runner.config.home)?;
    let imported = app.hub().import(&mut from, &wish).await;
    let view = imported.map_err(|error| refused(error, &args.file))?;
    report(app, &view);
    Ok(0)
}

/// Nothing was changed, and what can be done about it.
pub(crate) fn refused(error: HubError, file: &str) -> CommandError {
    if let HubError::Running(handle) = &error {
        let next = format!("rejoin wait {handle}");
        return CommandError::conflict(format!("{error}; nothing was changed")).try_this(next);
    }
    if matches!(error, HubError::Archive(ArchiveError::KeyTaken(_))) {
        return CommandError::from(error).try_this(format!("rejoin import {file} --key OTHER"));
    }
    let copied = matches!(
        error,
        HubError::Diverged(_)
            | HubError::Conflict(_)
            | HubError::Archive(ArchiveError::Elsewhere(_))
    );
    let failure = CommandError::from(error);
    if copied {
        return failure.try_this(format!("rejoin import {file} --as-copy"));
    }
    failure
}

fn report(app: &App, view: &ImportView) {
    if app.out.json {
        app.out.json(view);
        return;
    }
    let handle = &view.handle;
    app.out.text(handle);
    let messages = count(view.messages, "message");
    let (new, folder) = (view.new_messages, &view.workdir);
    let what = match view.outcome {
        ImportResult::Imported | ImportResult::Copied => {
            format!("{messages} are in {handle}, which works in {folder}")
        }
        ImportResult::TakenOver => {
            format!("{new} of {messages} are new in {handle}, which works in {folder}")
        }
        ImportResult::Same => {
            format!("{handle} is here already, just like that; nothing was changed")
        }
        ImportResult::Behind => format!("{handle} went on here since; nothing was changed"),
    };
    app.out
        .note(&format!("{what}; try: rejoin send -c {handle} \"…\""));
    if view.sessions_left_out > 0 {
        app.out
            .note("its sessions belong to the other one here: the next turn is told what was said");
    }
    if view.permission_lowered {
        app.out.note(&format!(
            "its permission was higher where it came from; here it is {} (rejoin set {handle} permission=MODE)",
            view.permission
        ));
    }
    if view.tools_dropped {
        app.out.note(&format!(
            "its list of tools did not come along (rejoin set {handle} tools=A,B)"
        ));
    }
    if !std::path::Path::new(folder).is_dir() {
        app.out.note(&format!(
            "its folder {folder} is not here: go on with -w DIR"
        ));
    }
}
