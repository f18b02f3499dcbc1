//! A tool call that has begun and not ended.

use std::fmt::Write as _;
use std::time::Instant;

/// Tool call of a turn that is shown as it happens. Times are in microseconds.
pub(super) struct OpenTool {
    /// The tool and the subject of the call.
    pub(super) what: String,
    pub(super) since: i64,
    /// Time at which the call was shown first.
    pub(super) begun: Instant,
    /// Time at which a person was asked, while no answer was given.
    pub(super) asked: Option<i64>,
    /// Time for which a person was asked.
    thought: i64,
    denied: bool,
}

impl OpenTool {
    pub(super) fn new(what: String, since: i64) -> Self {
        Self {
            what,
            since,
            begun: Instant::now(),
            asked: None,
            thought: 0,
            denied: false,
        }
    }

    /// Notes a person's answer.
    pub(super) fn answered(&mut self, decision: &str, at: i64) {
        self.denied |= decision == "deny";
        if let Some(asked) = self.asked.take() {
            self.thought += (at - asked).max(0);
        }
    }

    /// Formats the line for the end of the call: its result, and its time without the person's.
    pub(super) fn result(&self, is_error: bool, at: i64) -> String {
        let mut line = format!("  {}", self.what);
        if self.denied {
            line.push_str(" · denied");
            return line;
        }
        let mark = if is_error { "failed" } else { "ok" };
        let seconds = (at - self.since - self.thought).max(0) as f64 / 1e6;
        let _ = write!(line, " · {mark} · {seconds:.1}s");
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denied_call_has_not_failed_and_thinking_is_no_work() {
        let second = 1_000_000;
        let mut tool = OpenTool::new("Bash make".into(), 0);
        assert_eq!(tool.result(true, 2 * second), "  Bash make · failed · 2.0s");
        tool.asked = Some(second);
        tool.answered("allow", 9 * second);
        assert_eq!(tool.result(false, 10 * second), "  Bash make · ok · 2.0s");
        tool.answered("deny", 10 * second);
        assert_eq!(tool.result(true, 11 * second), "  Bash make · denied");
    }
}
