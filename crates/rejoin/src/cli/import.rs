//! `rejoin import`

mod envelope;

use std::path::PathBuf;

use clap::Args;
use rejoin_core::PermissionMode;
use rejoin_hub::{Came, Error as HubError, ImportView, ImportWish};
use rejoin_store::ArchiveError;

use super::send::{folder_text, valid_key};
use crate::app::App;
use crate::failure::{Failure, Result};
use crate::output::figures::count;
use crate::portable::seekable;

/// Bring in a conversation that was exported elsewhere
///
/// If it is here already, what was said there since is added; if both went on, nothing is changed.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin import talk.rejoin\n  ssh elsewhere rejoin export tmqx | rejoin import -\n  rejoin import talk.rejoin --as-copy -w ."
)]
pub(crate) struct ImportArgs {
    /// The archive; `-`: stdin
    #[arg(value_name = "FILE")]
    file: String,
    /// A conversation of its own, under new ids
    #[arg(long)]
    as_copy: bool,
    /// Give it this key
    #[arg(short, long, value_name = "KEY")]
    key: Option<String>,
    /// Its working folder; default: this one
    #[arg(short, long, value_name = "DIR")]
    workdir: Option<PathBuf>,
    /// What the agent may do: read-only, edit, full, ask
    #[arg(long, value_name = "MODE")]
    permission: Option<PermissionMode>,
    /// A session from FILE, a URL, or `env` (see docs)
    #[arg(long, conflicts_with = "as_copy")]
    envelope: bool,
    /// The agent of that session
    #[arg(short, long, value_name = "AGENT", default_value = "claude")]
    agent: String,
}

pub(crate) async fn run(app: &App, args: &ImportArgs) -> Result<u8> {
    if args.envelope {
        return envelope::run(app, args).await;
    }
    let wish = ImportWish {
        as_copy: args.as_copy,
        key: args.key.as_deref().map(valid_key).transpose()?,
        workdir: folder_text(args.workdir.as_deref().unwrap_or(&app.here))?,
        permission: args.permission,
    };
    let mut from = seekable(&args.file, &app.runner.config.home)?;
    let imported = app.hub().import(&mut from, &wish).await;
    let view = imported.map_err(|error| refused(error, &args.file))?;
    report(app, &view);
    Ok(0)
}

/// Nothing was changed, and what can be done about it.
pub(crate) fn refused(error: HubError, file: &str) -> Failure {
    if let HubError::Running(handle) = &error {
        let next = format!("rejoin wait {handle}");
        return Failure::conflict(format!("{error}; nothing was changed")).try_this(next);
    }
    if matches!(error, HubError::Archive(ArchiveError::KeyTaken(_))) {
        return Failure::from(error).try_this(format!("rejoin import {file} --key OTHER"));
    }
    let copied = matches!(
        error,
        HubError::Diverged(_)
            | HubError::Conflict(_)
            | HubError::Archive(ArchiveError::Elsewhere(_))
    );
    let failure = Failure::from(error);
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
        Came::Imported | Came::Copied => {
            format!("{messages} are in {handle}, which works in {folder}")
        }
        Came::TakenOver => {
            format!("{new} of {messages} are new in {handle}, which works in {folder}")
        }
        Came::Same => format!("{handle} is here already, just like that; nothing was changed"),
        Came::Behind => format!("{handle} went on here since; nothing was changed"),
    };
    app.out
        .note(&format!("{what}; try: rejoin send -c {handle} \"…\""));
    if view.sessions_left_out > 0 {
        app.out
            .note("its sessions belong to the other one here: the next turn is told what was said");
    }
    if view.permission_lowered {
        app.out.note(&format!(
            "it might do everything where it came from; here it may edit (rejoin set {handle} permission=full)"
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
