//! The text of a message: from the command line or stdin, with files.

use std::fmt::Write as _;
use std::io::{IsTerminal, Read};
use std::path::PathBuf;

use crate::failure::{Failure, Result};

/// Files become part of the message, so that every later agent sees them too.
pub(super) fn with_files(mut text: String, files: &[PathBuf]) -> Result<String> {
    for file in files {
        let bytes = fs_err::read(file).map_err(|e| Failure::usage(e.to_string()))?;
        let content = String::from_utf8(bytes)
            .ok()
            .filter(|c| !c.contains('\0'))
            .ok_or_else(|| Failure::usage(format!("{} is not a text file", file.display())))?;
        let name = file.display();
        let _ = write!(
            text,
            "\n\n<file name=\"{name}\">\n{}\n</file>",
            content.trim_end()
        );
    }
    Ok(text)
}

/// Returns the message: the argument, or stdin without one and for `-`.
pub(in crate::cli) fn prompt(argument: Option<&str>) -> Result<String> {
    let text = match argument {
        Some(text) if text != "-" => text.to_owned(),
        None if std::io::stdin().is_terminal() => {
            return Err(
                Failure::usage("there is no message").try_this("rejoin send \"your message\"")
            );
        }
        Some(_) | None => {
            let mut bytes = vec![];
            std::io::stdin()
                .read_to_end(&mut bytes)
                .map_err(|e| Failure::usage(format!("stdin: {e}")))?;
            String::from_utf8(bytes)
                .map_err(|_| Failure::usage("the message on stdin is not UTF-8"))?
        }
    };
    if text.trim().is_empty() {
        return Err(Failure::usage("the message is empty").try_this("rejoin send \"your message\""));
    }
    if text.contains('\0') {
        return Err(Failure::usage("the message contains a NUL character"));
    }
    Ok(text)
}
