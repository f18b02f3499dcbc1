//! Long output, piece by piece: through a pager on a terminal, else to stdout.

use std::io::{IsTerminal as _, Write};

use rejoin_runner::process::Pager;

use super::{Line, Output, colours, safe, without_floods};

/// Pager if none is configured: quits at once if the text fits on the screen.
const DEFAULT: &str = "less -FRX";

/// Destination of a text that is written in pieces.
pub(crate) struct Pages {
    pager: Option<Pager>,
    screen: bool,
    colours: bool,
}

impl Pages {
    /// Opens the destination. Starts a pager if stdout is a terminal and `paged` is true.
    pub(crate) fn open(out: Output, paged: bool) -> Self {
        let screen = out.screen();
        let command = if screen && paged { command() } else { None };
        Self {
            pager: command.and_then(|command| Pager::start(&command).ok()),
            screen,
            colours: colours(std::io::stdout().is_terminal()),
        }
    }

    /// Writes lines. Returns false if nobody reads any more.
    pub(crate) fn lines(&mut self, lines: &[Line]) -> bool {
        let mut text = String::new();
        for line in lines {
            text.push_str(&line.render(self.colours));
            text.push('\n');
        }
        self.write(&text)
    }

    /// Writes text, on a terminal without anything that could act on it or flood it. Returns false
    /// if nobody reads any more.
    pub(crate) fn text(&mut self, text: &str) -> bool {
        if self.screen {
            let shown = safe(&without_floods(text));
            return self.write(&shown);
        }
        self.write(text)
    }

    fn write(&mut self, text: &str) -> bool {
        let mut out = std::io::stdout().lock();
        let to: &mut dyn Write = match &mut self.pager {
            Some(pager) => pager,
            None => &mut out,
        };
        let result = to.write_all(text.as_bytes()).and_then(|()| to.flush());
        let is_written = result.is_ok();
        if self.pager.is_none() {
            super::written(result);
        }
        is_written
    }
}

/// Returns the command line of the pager: `REJOIN_PAGER`, then `PAGER`, then [`DEFAULT`] if it is
/// installed. An empty variable and `cat` mean none.
fn command() -> Option<String> {
    let set = std::env::var("REJOIN_PAGER").or_else(|_| std::env::var("PAGER"));
    let command = match set {
        Ok(command) => command,
        Err(_) => installed("less").then(|| DEFAULT.to_owned())?,
    };
    let command = command.trim();
    (!command.is_empty() && command != "cat").then(|| command.to_owned())
}

fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
