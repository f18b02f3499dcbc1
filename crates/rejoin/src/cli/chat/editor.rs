//! The line that a person types: edited on a terminal, read as it comes from a pipe.

use std::borrow::Cow;
use std::io::BufRead;
use std::sync::{Arc, Mutex, PoisonError};

use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::MemHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Config, Context, Editor, Helper};

use super::message::is_incomplete;
use super::slash;
use crate::output::safe;
use rejoin_errors::{CommandError, Result};

/// Lines of a session that the arrow keys bring back.
const HISTORY: usize = 1_000;

/// A line, or the end of the input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Input {
    Line(String),
    /// Ctrl-C while a line was typed; the line is in the history.
    Interrupted,
    End,
}

/// An editor of lines on a terminal.
pub(super) struct LineEditor {
    editor: Editor<Assist, MemHistory>,
    line: CurrentLine,
}

/// The line as it is typed at the moment, for the case that the process has to end.
#[derive(Clone, Default)]
pub(super) struct CurrentLine(Arc<Mutex<String>>);

impl CurrentLine {
    pub(super) fn take(&self) -> String {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn set(&self, line: &str) {
        line.clone_into(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl LineEditor {
    pub(super) fn new(line: CurrentLine) -> Result<Self> {
        let failed = |e: ReadlineError| CommandError::unavailable(format!("the terminal: {e}"));
        let config = Config::builder().max_history_size(HISTORY);
        let config = config.map_err(failed)?.build();
        let history = MemHistory::with_config(&config);
        let mut editor = Editor::with_history(config, history).map_err(failed)?;
        editor.set_helper(Some(Assist(line.clone())));
        Ok(Self { editor, line })
    }

    /// Reads a line behind the prompt, which is a plain and a coloured text. `offered` stands there already.
    pub(super) fn read(&mut self, prompt: &(String, String), offered: &str) -> Result<Input> {
        self.line.set(offered);
        let read = self.editor.readline_with_initial(prompt, (offered, ""));
        let left = self.line.take();
        match read {
            Ok(typed) => {
                self.remember(&typed);
                Ok(Input::Line(typed))
            }
            Err(ReadlineError::Interrupted) => {
                self.remember(&left);
                Ok(Input::Interrupted)
            }
            Err(ReadlineError::Eof) => Ok(Input::End),
            Err(e) => Err(CommandError::unavailable(format!("the terminal: {e}"))),
        }
    }

    fn remember(&mut self, typed: &str) {
        if !typed.trim().is_empty() {
            let _kept = self.editor.add_history_entry(typed);
        }
    }
}

/// Help while a line is typed.
struct Assist(CurrentLine);

impl Helper for Assist {}

impl Hinter for Assist {
    type Hint = String;

    /// Shows no hint. The editor calls this at every change of the line.
    fn hint(&self, line: &str, _pos: usize, _ctx: &Context<'_>) -> Option<String> {
        self.0.set(line);
        None
    }
}

impl Highlighter for Assist {
    /// Makes pasted control characters visible.
    fn highlight<'l>(&self, line: &'l str, _pos: usize) -> Cow<'l, str> {
        let shown = safe(line);
        if shown == line {
            return Cow::Borrowed(line);
        }
        Cow::Owned(shown)
    }
}

impl Completer for Assist {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _ctx: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok((0, slash::completions(&line[..pos])))
    }
}

impl Validator for Assist {
    fn validate(&self, ctx: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        if is_incomplete(ctx.input()) {
            return Ok(ValidationResult::Incomplete);
        }
        Ok(ValidationResult::Valid(None))
    }
}

/// Reads a message from stdin, which is no terminal.
pub(super) fn read_piped() -> Result<Input> {
    let mut typed = String::new();
    loop {
        let mut line = vec![];
        let read = std::io::stdin().lock().read_until(b'\n', &mut line);
        let read = read.map_err(|e| CommandError::usage(format!("stdin: {e}")))?;
        let line = String::from_utf8(line)
            .map_err(|_| CommandError::usage("a line on stdin is not UTF-8; it was not sent"))?;
        typed.push_str(&line);
        if read == 0 && typed.is_empty() {
            return Ok(Input::End);
        }
        if read == 0 || !is_incomplete(typed.trim_end_matches(['\n', '\r'])) {
            let whole = typed.trim_end_matches(['\n', '\r']).to_owned();
            return Ok(Input::Line(whole));
        }
    }
}

/// The terminal while a chat has it: an interrupt does not remove the lines that were typed ahead.
pub(super) struct TerminalMode(Option<Termios>);

impl TerminalMode {
    pub(super) fn begin() -> Self {
        let Ok(before) = tcgetattr(std::io::stdin()) else {
            return Self(None);
        };
        let mut mode = before.clone();
        mode.local_flags.insert(LocalFlags::NOFLSH);
        let _set = tcsetattr(std::io::stdin(), SetArg::TCSANOW, &mode);
        Self(Some(before))
    }
}

impl Drop for TerminalMode {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _set = tcsetattr(std::io::stdin(), SetArg::TCSANOW, before);
        }
    }
}
