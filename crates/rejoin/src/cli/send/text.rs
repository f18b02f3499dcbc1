//! The text of a message: from the command line or stdin, with files.

use std::io::{IsTerminal, Read};
use std::path::PathBuf;

use rejoin_hub::Attachment;

use rejoin_errors::{CommandError, Result};

/// Reads text files that belong to the message.
pub(super) fn attachments(
    files: &[PathBuf],
    piped: Option<&Attachment>,
) -> Result<Vec<Attachment>> {
    let read = |file: &PathBuf| {
        let bytes = fs_err::read(file).map_err(|e| CommandError::usage(e.to_string()))?;
        let text = String::from_utf8(bytes).ok().filter(|c| !c.contains('\0'));
        let name = file.display().to_string();
        match text {
            Some(text) => Ok(Attachment { name, text }),
            None => Err(CommandError::usage(format!("{name} is not a text file"))),
        }
    };
    let piped = piped.cloned().map(Ok);
    files.iter().map(read).chain(piped).collect()
}

/// Returns the message: the argument, or stdin without one and for `-`.
pub(in crate::cli) fn prompt(argument: Option<&str>) -> Result<String> {
    let text = match argument {
        Some(text) if text != "-" => text.to_owned(),
        None if std::io::stdin().is_terminal() => {
            return Err(
                CommandError::usage("there is no message, and no editor is set in EDITOR")
                    .try_this("rejoin send \"your message\""),
            );
        }
        Some(_) | None => {
            let mut bytes = vec![];
            std::io::stdin()
                .read_to_end(&mut bytes)
                .map_err(|e| CommandError::usage(format!("stdin: {e}")))?;
            String::from_utf8(bytes)
                .map_err(|_| CommandError::usage("the message on stdin is not UTF-8"))?
        }
    };
    checked(&text)?;
    Ok(text)
}

/// Refuses a text that no message can have.
pub(super) fn checked(text: &str) -> Result<()> {
    if text.trim().is_empty() {
        return Err(
            CommandError::usage("the message is empty").try_this("rejoin send \"your message\"")
        );
    }
    if text.contains('\0') {
        return Err(CommandError::usage("the message contains a NUL character"));
    }
    Ok(())
}
