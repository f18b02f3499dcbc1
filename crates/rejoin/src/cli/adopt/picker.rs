//! A list to choose from: type to filter, arrows to move, space to mark, enter to take, esc to leave.
//! What is shown and what a key does; nothing here touches the terminal.

use std::collections::BTreeSet;

use super::keys::Key;
use crate::output::{Line, Tone, table};

/// Lines above and below the rows.
const FRAME: usize = 4;

/// A row of the list.
pub(super) struct Choice {
    pub(super) cells: Vec<Line>,
    /// Text that the filter searches.
    pub(super) words: String,
}

/// The result of a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Pressed {
    Going,
    /// These, by their numbers.
    Taken(Vec<usize>),
    Left,
}

pub(super) struct Picker {
    choices: Vec<Choice>,
    filter: String,
    /// Numbers of the choices that the filter lets through.
    shown: Vec<usize>,
    /// Index of the row under the cursor, among the rows shown.
    at: usize,
    marked: BTreeSet<usize>,
    /// The first row on the screen.
    top: usize,
    rows: usize,
}

impl Picker {
    pub(super) fn new(choices: Vec<Choice>) -> Self {
        let shown = (0..choices.len()).collect();
        Self {
            choices,
            filter: String::new(),
            shown,
            at: 0,
            marked: BTreeSet::new(),
            top: 0,
            rows: 1,
        }
    }

    pub(super) fn press(&mut self, key: Key) -> Pressed {
        let last = self.shown.len().saturating_sub(1);
        match key {
            Key::Up => self.at = self.at.saturating_sub(1),
            Key::Down => self.at = (self.at + 1).min(last),
            Key::PageUp => self.at = self.at.saturating_sub(self.rows),
            Key::PageDown => self.at = (self.at + self.rows).min(last),
            Key::First => self.at = 0,
            Key::Last => self.at = last,
            Key::Letter(' ') => self.mark(),
            Key::Letter(letter) => {
                self.filter.push(letter);
                self.sift();
            }
            Key::Back => {
                self.filter.pop();
                self.sift();
            }
            Key::Clear => {
                self.filter.clear();
                self.sift();
            }
            Key::Enter => return self.taken(),
            Key::Leave => return Pressed::Left,
            Key::Other => {}
        }
        Pressed::Going
    }

    /// Marks it, or takes the mark away, and goes on to the next.
    fn mark(&mut self) {
        if let Some(&choice) = self.shown.get(self.at) {
            if !self.marked.remove(&choice) {
                self.marked.insert(choice);
            }
            self.press(Key::Down);
        }
    }

    /// The marked rows, filtered out or not; without marks the row under the cursor.
    fn taken(&self) -> Pressed {
        if !self.marked.is_empty() {
            return Pressed::Taken(self.marked.iter().copied().collect());
        }
        match self.shown.get(self.at) {
            Some(&choice) => Pressed::Taken(vec![choice]),
            None => Pressed::Going,
        }
    }

    fn sift(&mut self) {
        let wanted = self.filter.to_lowercase();
        let fits = |n: &usize| self.choices[*n].words.contains(&wanted);
        self.shown = (0..self.choices.len()).filter(fits).collect();
        self.at = 0;
        self.top = 0;
    }

    /// Everything on a screen of that size, line by line.
    pub(super) fn screen(&mut self, width: usize, height: usize) -> Vec<Line> {
        self.rows = height.saturating_sub(FRAME).max(1);
        if self.at < self.top {
            self.top = self.at;
        } else if self.at >= self.top + self.rows {
            self.top = self.at + 1 - self.rows;
        }
        let keys = "type to filter · ↑↓ move · space marks · enter adopts · esc leaves";
        let mut lines = vec![
            Line::faint(keys).cut(width),
            Line::new()
                .with(Tone::Strong, "> ")
                .with(Tone::Plain, &self.filter)
                .cut(width),
        ];
        let rows = self.shown.iter().skip(self.top).take(self.rows);
        let rows: Vec<Vec<Line>> = rows.enumerate().map(|(n, &c)| self.row(n, c)).collect();
        let some = !rows.is_empty();
        lines.extend(table(&rows, Some(width)));
        if !some {
            lines.push(Line::faint("  nothing like that"));
        }
        lines.push(Line::new());
        let marked = match self.marked.len() {
            0 => String::new(),
            n => format!(" · {n} marked"),
        };
        let of = format!("{} of {}{marked}", self.shown.len(), self.choices.len());
        lines.push(Line::faint(&of).cut(width));
        lines
    }

    fn row(&self, n: usize, choice: usize) -> Vec<Line> {
        let here = if self.top + n == self.at { "›" } else { " " };
        let mark = if self.marked.contains(&choice) {
            "[x]"
        } else {
            "[ ]"
        };
        let front = Line::new().with(Tone::Strong, here).with(Tone::Plain, mark);
        let cells = self.choices[choice].cells.iter().cloned();
        [front].into_iter().chain(cells).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picker(rows: &[&str]) -> Picker {
        let choice = |text: &&str| Choice {
            cells: text.split(' ').map(Line::plain).collect(),
            words: text.to_lowercase(),
        };
        Picker::new(rows.iter().map(choice).collect())
    }

    fn shown(picker: &mut Picker, height: usize) -> String {
        let lines = picker.screen(60, height);
        let text = lines.iter().map(|line| line.render(false));
        text.collect::<Vec<_>>().join("\n")
    }

    fn typed(picker: &mut Picker, text: &str) {
        for letter in text.chars() {
            assert_eq!(picker.press(Key::Letter(letter)), Pressed::Going);
        }
    }

    #[test]
    fn it_is_filtered_by_what_is_typed() {
        let mut picker = picker(&["claude Tea", "codex coffee", "gemini tea"]);
        typed(&mut picker, "TEA");
        insta::assert_snapshot!(shown(&mut picker, 24), @r"
        type to filter · ↑↓ move · space marks · enter adopts · esc…
        > TEA
        ›[ ]  claude  Tea
         [ ]  gemini  tea

        2 of 3
        ");
        picker.press(Key::Down);
        assert_eq!(picker.press(Key::Enter), Pressed::Taken(vec![2]));
        typed(&mut picker, "x");
        assert!(shown(&mut picker, 24).contains("nothing like that"));
        assert_eq!(picker.press(Key::Enter), Pressed::Going);
        picker.press(Key::Back);
        picker.press(Key::Clear);
        assert!(shown(&mut picker, 24).contains("3 of 3"));
        assert_eq!(picker.press(Key::Leave), Pressed::Left);
    }

    #[test]
    fn marks_stay_when_the_filter_changes() {
        let mut picker = picker(&["a one", "b two", "c three"]);
        typed(&mut picker, " ");
        typed(&mut picker, "three");
        typed(&mut picker, " ");
        picker.press(Key::Clear);
        insta::assert_snapshot!(shown(&mut picker, 24), @r"
        type to filter · ↑↓ move · space marks · enter adopts · esc…
        >
        ›[x]  a  one
         [ ]  b  two
         [x]  c  three

        3 of 3 · 2 marked
        ");
        assert_eq!(picker.press(Key::Enter), Pressed::Taken(vec![0, 2]));
        // Marked again, the mark is gone.
        typed(&mut picker, " ");
        assert_eq!(picker.press(Key::Enter), Pressed::Taken(vec![2]));
    }

    #[test]
    fn a_long_list_moves_under_the_cursor() {
        let rows: Vec<String> = (0..50).map(|n| format!("row {n}")).collect();
        let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
        let mut picker = picker(&rows);
        assert!(shown(&mut picker, 10).contains("row  5\n"));
        for _ in 0..7 {
            picker.press(Key::Down);
        }
        let screen = shown(&mut picker, 10);
        assert!(
            screen.contains("›[ ]  row  7") && !screen.contains("row  1\n"),
            "{screen}"
        );
        picker.press(Key::Last);
        assert!(shown(&mut picker, 10).contains("›[ ]  row  49"));
        picker.press(Key::PageUp);
        picker.press(Key::First);
        assert!(shown(&mut picker, 10).contains("›[ ]  row  0"));
        // The smallest screen still shows where one is.
        assert!(shown(&mut picker, 1).contains("row  0"));
    }
}
