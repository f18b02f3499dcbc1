//! How much of a turn is shown while it happens. What comes in pieces is bounded as a whole: a line
//! may stream for minutes, and so may lines.

use crate::output::format::size;

/// Columns of one line, as elsewhere on a screen.
const LINE: usize = 4_000;
/// Text of one turn, in bytes: some thousand lines.
const TEXT: usize = 256 * 1024;
/// Tool calls and notices of one turn, a line each.
const REMARKS: usize = 1_000;

/// Output that a turn may still show.
#[derive(Debug)]
pub(super) struct OutputLimits {
    text: usize,
    remarks: usize,
    /// Columns of the line that is being shown.
    column: usize,
    /// Bytes of that line that are not.
    cut: usize,
    /// Bytes hidden in the whole turn, including those cut off lines.
    hidden: usize,
    hidden_remarks: usize,
}

impl OutputLimits {
    pub(super) fn new() -> Self {
        Self {
            text: TEXT,
            remarks: REMARKS,
            column: 0,
            cut: 0,
            hidden: 0,
            hidden_remarks: 0,
        }
    }

    pub(super) fn full(&self) -> bool {
        self.text == 0
    }

    /// Takes safe text. Returns the part within the limits.
    pub(super) fn text(&mut self, piece: &str) -> String {
        let mut shown = String::new();
        for c in piece.chars() {
            if self.full() {
                self.hidden += c.len_utf8();
            } else if c == '\n' {
                shown.push_str(&self.end_line());
                shown.push(c);
                self.text -= 1;
            } else if self.column == LINE {
                self.cut += c.len_utf8();
                self.hidden += c.len_utf8();
            } else {
                self.column += 1;
                shown.push(c);
                self.text = self.text.saturating_sub(c.len_utf8());
            }
        }
        shown
    }

    /// The line is over: what was cut off it.
    pub(super) fn end_line(&mut self) -> String {
        self.column = 0;
        match std::mem::take(&mut self.cut) {
            0 => String::new(),
            cut => format!(" … [{} more in this line]", size(cut as u64)),
        }
    }

    /// Takes a place for a remark. Returns false if none is left.
    pub(super) fn remark(&mut self) -> bool {
        let room = self.remarks > 0;
        if room {
            self.remarks -= 1;
        } else {
            self.hidden_remarks += 1;
        }
        room
    }

    /// A note on the hidden output of the turn.
    pub(super) fn hidden(&self) -> Option<String> {
        let text = (self.hidden > 0).then(|| format!("{} of text", size(self.hidden as u64)));
        let remarks = (self.hidden_remarks > 0).then(|| format!("{} lines", self.hidden_remarks));
        let parts: Vec<String> = text.into_iter().chain(remarks).collect();
        (!parts.is_empty()).then(|| parts.join(" and "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_comes_in_pieces_is_cut_once() {
        let mut room = OutputLimits::new();
        let mut shown = String::new();
        for _ in 0..1_000 {
            shown += &room.text(&"y".repeat(5_000));
        }
        shown += &room.text("\nthe next line\n");
        let (first, rest) = shown.split_once('\n').unwrap();
        assert_eq!(
            first,
            "y".repeat(LINE) + " … [5.0 MB more in this line]",
            "{}",
            first.len()
        );
        assert_eq!(rest, "the next line\n");
        assert_eq!(room.hidden().as_deref(), Some("5.0 MB of text"));
    }

    #[test]
    fn lines_without_end_fill_the_room_of_a_turn() {
        let mut room = OutputLimits::new();
        let shown: usize = (0..100_000)
            .map(|_| room.text("ä line of some length\n").len())
            .sum();
        assert!(shown <= TEXT && shown > TEXT - 30, "{shown}");
        assert!(room.full());
        assert_eq!(room.text("more"), "");
        assert_eq!(room.hidden().as_deref(), Some("2.0 MB of text"));
    }

    #[test]
    fn so_do_tool_calls() {
        let mut room = OutputLimits::new();
        assert_eq!((0..5_000).filter(|_| room.remark()).count(), REMARKS);
        assert_eq!(room.hidden().as_deref(), Some("4000 lines"));
    }
}
