//! A text that the user writes in an editor, for commands without a text on a terminal.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use rejoin_runner::process::run_editor;

use crate::app::data_home;
use crate::portable::AtomicFile;
use crate::remote::new_key;
use rejoin_errors::{CommandError, Result};

/// Returns the command line of the user's editor, if a user is at a terminal: `VISUAL`, then `EDITOR`.
fn command() -> Option<String> {
    let terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let set = |name: &str| std::env::var(name).ok().filter(|v| !v.trim().is_empty());
    terminal.then(|| set("VISUAL").or_else(|| set("EDITOR")))?
}

/// Returns true if a text can be written in an editor.
pub(super) fn possible() -> bool {
    command().is_some()
}

/// A text from the editor. Its file stays until [`Written::done`].
#[derive(Debug)]
pub(super) struct Written {
    pub(super) text: String,
    file: PathBuf,
}

impl Written {
    /// Removes the file: the text is stored elsewhere.
    pub(super) fn done(&self) {
        let _gone = fs_err::remove_file(&self.file);
    }

    /// Returns a sentence with the path of the file.
    pub(super) fn place(&self) -> String {
        place(&self.file)
    }

    /// Names the file in a failure, if the text is nowhere else.
    pub(super) fn kept(&self, mut failure: CommandError) -> CommandError {
        if self.file.exists() {
            failure.message = format!("{}; {}", failure.message, place(&self.file));
        }
        failure
    }
}

/// Opens the editor on a file with the text `before`. Returns none if there is no editor or no terminal.
pub(super) fn write(before: &str) -> Result<Option<Written>> {
    let Some(command) = command() else {
        return Ok(None);
    };
    let file = begin(before)
        .map_err(|e| CommandError::unavailable(format!("no file for the editor: {e}")))?;
    let edited = run_editor(&command, &file);
    if !matches!(edited, Ok(true)) {
        let why = match edited {
            Err(error) => format!(": {error}"),
            Ok(_) => String::new(),
        };
        let text = format!("the editor `{command}` failed{why}; {}", place(&file));
        return Err(CommandError::usage(text).try_this("EDITOR=vi, then the command again"));
    }
    let read = fs_err::read(&file).map_err(|e| CommandError::usage(e.to_string()))?;
    let text = String::from_utf8(read)
        .map_err(|_| CommandError::usage(format!("the text is not UTF-8; {}", place(&file))))?;
    let text = text.trim_end_matches(['\n', '\r']).to_owned();
    Ok(Some(Written { text, file }))
}

fn place(file: &Path) -> String {
    format!("the text is kept in {}", file.display())
}

/// Writes the file, below the data folder and for its user only.
fn begin(before: &str) -> std::io::Result<PathBuf> {
    let home = data_home().map_err(|e| std::io::Error::other(e.message))?;
    let folder = home.join("drafts");
    fs_err::create_dir_all(&folder)?;
    let file = folder.join(format!("{}.md", new_key().unwrap_or("text".into())));
    let mut new = AtomicFile::begin(&file)?;
    new.write_all(before.as_bytes())?;
    if !before.is_empty() {
        new.write_all(b"\n")?;
    }
    new.keep()?;
    Ok(file)
}
