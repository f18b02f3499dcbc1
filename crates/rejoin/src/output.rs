//! Everything that is printed goes through here: JSON or text, safe for a terminal.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unused_self,
    reason = "the one place that prints"
)]

use std::io::{IsTerminal, Write};

use serde::Serialize;

use crate::failure::Failure;

/// How to talk to whoever called.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    pub(crate) json: bool,
    pub(crate) quiet: bool,
}

impl Output {
    /// The result of a command on stdout.
    pub(crate) fn text(self, text: &str) {
        let shown = if std::io::stdout().is_terminal() {
            safe(text)
        } else {
            text.to_owned()
        };
        let mut out = std::io::stdout().lock();
        // A reader that went away is not an error of ours.
        let _gone = writeln!(out, "{}", shown.trim_end_matches('\n')).and_then(|()| out.flush());
    }

    pub(crate) fn json(self, value: &impl Serialize) {
        if let Ok(text) = serde_json::to_string(value) {
            let mut out = std::io::stdout().lock();
            let _gone = writeln!(out, "{text}").and_then(|()| out.flush());
        }
    }

    /// A remark on stderr.
    pub(crate) fn note(self, text: &str) {
        if !self.quiet {
            eprintln!("{}", safe(text));
        }
    }

    pub(crate) fn failure(self, failure: &Failure) {
        if self.json {
            let error = serde_json::json!({
                "code": failure.code, "message": failure.message, "try": failure.next,
            });
            self.json(&serde_json::json!({ "error": error }));
            return;
        }
        eprintln!("error: {}", safe(&failure.message));
        if let Some(next) = &failure.next {
            eprintln!("  try: {}", safe(next));
        }
    }
}

/// Text that cannot move the cursor, change colours or reorder what stands beside it.
pub(crate) fn safe(text: &str) -> String {
    let hidden = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
    };
    text.chars()
        .map(|c| if hidden(c) { '\u{fffd}' } else { c })
        .collect()
}

/// The first line, at most `width` characters.
pub(crate) fn one_line(text: &str, width: usize) -> String {
    let line = safe(text).split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= width {
        return line;
    }
    line.chars()
        .take(width.saturating_sub(1))
        .chain(['…'])
        .collect()
}
