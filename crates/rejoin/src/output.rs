//! Everything that is printed goes through here: JSON or text, safe for a terminal.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unused_self,
    reason = "the one place that prints"
)]

pub(crate) mod format;
mod line;
pub(crate) mod markdown;
mod pages;
mod progress;
mod safe;
mod table;

use std::io::{IsTerminal, Write};
use std::sync::{Mutex, OnceLock, PoisonError};

use serde::Serialize;

use rejoin_errors::CommandError;

pub(crate) use line::{Line, Tone};
pub(crate) use pages::Pages;
pub(crate) use progress::Progress;
pub(crate) use safe::{one_line, safe, without_floods};
pub(crate) use table::{edges, table};

/// How to talk to whoever called.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    pub(crate) json: bool,
    pub(crate) quiet: bool,
}

impl Output {
    /// Returns true if stdout is a screen.
    pub(crate) fn screen(self) -> bool {
        !self.json && std::io::stdout().is_terminal()
    }

    /// Columns to arrange things in.
    pub(crate) fn width(self) -> usize {
        let said = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
        let seen = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
        said.or_else(seen)
            .filter(|w| *w > 0)
            .unwrap_or(80)
            .clamp(20, 200)
    }

    /// The result of a command on stdout. A script gets it byte for byte; on a screen nothing in it
    /// can act on the terminal or flood it.
    pub(crate) fn text(self, text: &str) {
        if std::io::stdout().is_terminal() {
            write_out(safe(&without_floods(text)).trim_end_matches('\n'));
        } else {
            write_out(text.trim_end_matches('\n'));
        }
    }

    /// Sentences: on a screen broken between words.
    pub(crate) fn prose(self, text: &str) {
        if self.screen() {
            let broken = |line: &str| Line::plain(line).wrap(self.width());
            self.lines(
                &text
                    .trim_end()
                    .split('\n')
                    .flat_map(broken)
                    .collect::<Vec<_>>(),
            );
        } else {
            self.text(text);
        }
    }

    pub(crate) fn lines(self, lines: &[Line]) {
        if lines.is_empty() {
            return;
        }
        let colours = colours(std::io::stdout().is_terminal());
        let text: Vec<String> = lines.iter().map(|line| line.render(colours)).collect();
        write_out(&text.join("\n"));
    }

    /// A line as it would be printed, for whoever arranges a screen.
    pub(crate) fn rendered(self, line: &Line) -> String {
        line.render(colours(std::io::stdout().is_terminal()))
    }

    /// Returns a line as it would be printed on stderr.
    pub(crate) fn rendered_on_stderr(self, line: &Line) -> String {
        line.render(colours(std::io::stderr().is_terminal()))
    }

    pub(crate) fn json(self, value: &impl Serialize) {
        if let Ok(text) = serde_json::to_string(value) {
            if std::io::stdout().is_terminal() {
                write_out(&escaped(&text));
            } else {
                write_out(&text);
            }
        }
    }

    /// Prints a piece of a JSON document as it is, escaped on a terminal.
    pub(crate) fn json_piece(self, text: &str) {
        let mut out = std::io::stdout().lock();
        let escaped = std::io::stdout().is_terminal().then(|| escaped(text));
        let text = escaped.as_deref().unwrap_or(text);
        written(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
    }

    /// A remark on stderr.
    pub(crate) fn note(self, text: &str) {
        if self.quiet {
            return;
        }
        let text = without_floods(text);
        if std::io::stderr().is_terminal() {
            for line in text
                .lines()
                .flat_map(|line| Line::plain(line).wrap(self.width()))
            {
                write_err(&line.render(colours(true)));
            }
        } else {
            write_err(&safe(&text));
        }
    }

    /// Lines for a person on stderr.
    pub(crate) fn say(self, lines: &[Line]) {
        if self.quiet {
            return;
        }
        let colours = colours(std::io::stderr().is_terminal());
        for line in lines {
            write_err(&line.render(colours));
        }
    }

    pub(crate) fn failure(self, failure: &CommandError) {
        if self.json {
            let error = serde_json::json!({
                "code": failure.code, "message": failure.message, "try": failure.next,
            });
            self.json(&serde_json::json!({ "error": error }));
            return;
        }
        let colours = colours(std::io::stderr().is_terminal());
        let mut lines = without_floods(&failure.message)
            .lines()
            .map(str::to_owned)
            .collect::<Vec<_>>();
        let rest = if lines.is_empty() {
            vec![]
        } else {
            lines.split_off(1)
        };
        let first = lines.first().map_or("", String::as_str);
        let mut said = vec![
            Line::new()
                .with(Tone::Bad, "error:")
                .with(Tone::Plain, " ")
                .with(Tone::Plain, first),
        ];
        said.extend(rest.iter().map(|line| Line::plain(line)));
        let next = failure.next.as_deref().map(suggestion);
        said.extend(next.iter().map(|next| {
            Line::new()
                .with(Tone::Strong, "  try:")
                .with(Tone::Plain, " ")
                .with(Tone::Plain, &without_floods(next))
        }));
        let width = if std::io::stderr().is_terminal() {
            self.width()
        } else {
            usize::MAX
        };
        for line in said.iter().flat_map(|line| line.wrap(width)) {
            write_err(&line.render(colours));
        }
    }
}

/// Rewords suggestions for the place where they are typed; none: a shell.
static SUGGEST_BY: OnceLock<fn(&str) -> String> = OnceLock::new();

/// Sets the function that rewords the suggestions of this process.
pub(crate) fn suggest_by(reworded: fn(&str) -> String) {
    let _chosen_before = SUGGEST_BY.set(reworded);
}

/// Returns a suggested command as it is typed here.
pub(crate) fn suggestion(command: &str) -> String {
    let reworded = SUGGEST_BY.get().map(|by| by(command));
    reworded.unwrap_or_else(|| command.to_owned())
}

/// First error of a write to stdout, except that of a reader that went away.
static UNWRITTEN: Mutex<Option<std::io::Error>> = Mutex::new(None);

/// Takes the error of an earlier write to stdout.
pub(crate) fn take_unwritten() -> Option<std::io::Error> {
    UNWRITTEN
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take()
}

/// Notes the result of a write to stdout. A reader that went away is not an error.
pub(crate) fn written(result: std::io::Result<()>) {
    let Err(error) = result else { return };
    if error.kind() != std::io::ErrorKind::BrokenPipe {
        let mut first = UNWRITTEN.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(error);
    }
}

/// Returns the failure of a command whose output could not be written.
pub(crate) fn unwritten(what: &str, error: &std::io::Error) -> CommandError {
    CommandError::unavailable(format!("{what} could not be written: {error}")).try_this("df -h")
}

/// A reader that went away is not an error of ours.
fn write_err(text: &str) {
    let _gone = writeln!(std::io::stderr().lock(), "{text}");
}

fn write_out(text: &str) {
    let mut out = std::io::stdout().lock();
    written(writeln!(out, "{text}").and_then(|()| out.flush()));
}

/// The user's choice of colours: `--color`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Colors {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    Always,
    Never,
}

/// The choice of this process; none: auto.
static CHOSEN: OnceLock<Colors> = OnceLock::new();

impl Colors {
    /// Makes this the choice of the process.
    pub(crate) fn choose(self) {
        let _chosen_before = CHOSEN.set(self);
    }
}

/// Colours only for eyes that can see them, and that did not say no.
fn colours(terminal: bool) -> bool {
    match CHOSEN.get() {
        Some(Colors::Always) => return true,
        Some(Colors::Never) => return false,
        Some(Colors::Auto) | None => {}
    }
    let no = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    terminal && !no && !dumb
}

/// Escapes everything in JSON text that a terminal would obey.
fn escaped(json: &str) -> String {
    use std::fmt::Write as _;
    let mut shown = String::with_capacity(json.len());
    for c in json.chars() {
        if safe::tricks(c) || matches!(c, '\u{200c}' | '\u{200d}') {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(c);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_on_a_screen_stays_the_same_json() {
        let value = serde_json::json!({"text": "a\u{9b}2J\u{202e}b\u{e0041}\x1b\n"});
        let shown = escaped(&value.to_string());
        assert!(!shown.chars().any(safe::tricks), "{shown}");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&shown).unwrap(),
            value
        );
    }
}
