//! `rejoin man DIR`, for whoever packages it.

use std::path::PathBuf;

use clap::{Args, Command};

use crate::cli::command::{Help, Run, Task};
use crate::cli::command_line;
use crate::output::Output;
use rejoin_errors::{CommandError, Result};

/// Write the manual pages, one per command, into a folder
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

impl Run for ManArgs {
    const NAME: &'static str = "man";
    const HELP: Help = Help::Hidden;

    fn task(self) -> Task {
        Task::machine(self, async |on, args| run(args, on.out, command_line())).unrouted()
    }
}

fn run(args: &ManArgs, out: Output, command: Command) -> Result<u8> {
    let cannot = |e: std::io::Error| {
        let text = format!("{} cannot be written: {e}", args.folder.display());
        CommandError::unavailable(text).try_this("rejoin man /a/folder/you/can/write")
    };
    fs_err::create_dir_all(&args.folder).map_err(cannot)?;
    clap_mangen::generate_to(command.disable_help_subcommand(true), &args.folder)
        .map_err(cannot)?;
    let written = fs_err::read_dir(&args.folder).map_err(cannot)?.count();
    if out.json {
        out.json(&serde_json::json!({"folder": args.folder, "pages": written}));
    } else {
        out.note(&format!("{written} pages in {}", args.folder.display()));
    }
    Ok(0)
}
