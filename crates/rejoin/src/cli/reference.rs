//! `rejoin reference DIR`: writes the generated pages of `docs/`.

use std::path::PathBuf;

use clap::Args;

use crate::cli::command::{Help, Run, Task};
use crate::output::Output;
use crate::reference::PAGES;
use rejoin_errors::{CommandError, Result};

/// Write the reference pages into a folder
#[derive(Debug, Args)]
pub(crate) struct ReferenceArgs {
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

impl Run for ReferenceArgs {
    const NAME: &'static str = "reference";
    const HELP: Help = Help::Hidden;

    fn task(self) -> Task {
        Task::machine(self, async |on, args| run(args, on.out)).unrouted()
    }
}

fn run(args: &ReferenceArgs, out: Output) -> Result<u8> {
    let cannot = |e: std::io::Error| {
        let text = format!("{} cannot be written: {e}", args.folder.display());
        CommandError::unavailable(text).try_this("rejoin reference /a/folder/you/can/write")
    };
    fs_err::create_dir_all(&args.folder).map_err(cannot)?;
    for page in PAGES {
        fs_err::write(args.folder.join(page.file), (page.text)()).map_err(cannot)?;
    }
    if out.json {
        let files: Vec<&str> = PAGES.iter().map(|page| page.file).collect();
        out.json(&serde_json::json!({"folder": args.folder, "pages": files}));
    } else {
        out.note(&format!(
            "{} pages in {}",
            PAGES.len(),
            args.folder.display()
        ));
    }
    Ok(0)
}
