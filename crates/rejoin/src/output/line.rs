//! A line made of safe pieces, each with a tone. Foreign text enters only here, so nothing that is
//! printed through it can act on the terminal.

use unicode_width::UnicodeWidthChar;

use super::safe::{broken_off, columns, safe};

/// How a piece stands out, where there are colours. The words say the same without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Tone {
    #[default]
    Plain,
    Strong,
    Faint,
    Good,
    Bad,
    Busy,
    /// A name one can type.
    Name,
}

impl Tone {
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Strong => "1",
            Self::Faint => "2",
            Self::Good => "32",
            Self::Bad => "1;31",
            Self::Busy => "33",
            Self::Name => "1;35",
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Line(Vec<(Tone, String)>);

impl Line {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn plain(text: &str) -> Self {
        Self::new().with(Tone::Plain, text)
    }

    pub(crate) fn faint(text: &str) -> Self {
        Self::new().with(Tone::Faint, text)
    }

    #[must_use]
    pub(crate) fn with(mut self, tone: Tone, text: &str) -> Self {
        self.push(tone, text);
        self
    }

    pub(crate) fn push(&mut self, tone: Tone, text: &str) {
        let shown = safe(text).replace('\t', "    ").replace('\n', " ");
        match self.0.last_mut() {
            Some((last, so_far)) if *last == tone => so_far.push_str(&shown),
            _ if shown.is_empty() => {}
            _ => self.0.push((tone, shown)),
        }
    }

    #[must_use]
    pub(crate) fn then(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    pub(crate) fn width(&self) -> usize {
        self.0.iter().map(|(_, text)| columns(text)).sum()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|(_, text)| text.is_empty())
    }

    /// Spaces up to this column.
    #[must_use]
    pub(crate) fn to(mut self, column: usize) -> Self {
        let missing = column.saturating_sub(self.width());
        self.push(Tone::Plain, &" ".repeat(missing));
        self
    }

    /// At most so many columns.
    #[must_use]
    pub(crate) fn cut(self, width: usize) -> Self {
        if self.width() <= width {
            return self;
        }
        let mut room = width;
        let mut kept = Self::new();
        for (tone, text) in self.0 {
            let taken = columns(&text);
            if taken < room {
                room -= taken;
                kept.0.push((tone, text));
            } else {
                kept.0.push((tone, broken_off(&text, room)));
                break;
            }
        }
        kept
    }

    /// Broken at spaces into lines of at most so many columns; longer words are broken as well, except an address
    /// and a path, which a person copies.
    pub(crate) fn wrap(&self, width: usize) -> Vec<Self> {
        let width = width.max(8);
        let cells: Vec<(Tone, char)> = self
            .0
            .iter()
            .flat_map(|(tone, text)| text.chars().map(|c| (*tone, c)))
            .collect();
        let mut lines = vec![];
        let mut rest = &cells[..];
        while !rest.is_empty() {
            let (line, after) = rest.split_at(fitting(rest, width));
            lines.push(Self::of(line));
            let spaces = after.iter().take_while(|(_, c)| *c == ' ').count();
            rest = &after[spaces..];
        }
        if lines.is_empty() {
            lines.push(Self::new());
        }
        lines
    }

    fn of(cells: &[(Tone, char)]) -> Self {
        let mut line = Self::new();
        for (tone, c) in cells {
            match line.0.last_mut() {
                Some((last, text)) if last == tone => text.push(*c),
                _ => line.0.push((*tone, c.to_string())),
            }
        }
        line
    }

    pub(crate) fn render(&self, colours: bool) -> String {
        let piece = |(tone, text): &(Tone, String)| {
            if colours && *tone != Tone::Plain {
                format!("\x1b[{}m{text}\x1b[0m", tone.code())
            } else {
                text.clone()
            }
        };
        let line: String = self.0.iter().map(piece).collect();
        line.trim_end_matches(' ').to_owned()
    }
}

/// How many cells of these belong into the next line.
fn fitting(cells: &[(Tone, char)], width: usize) -> usize {
    let mut taken = 0;
    let mut space = None;
    for (at, (_, c)) in cells.iter().enumerate() {
        taken += c.width().unwrap_or(0);
        if taken > width {
            let before = space.filter(|s| *s > 0);
            return before.or_else(|| whole(cells)).unwrap_or(at.max(1));
        }
        // Spaces at the beginning are indentation, not a place to break.
        if *c == ' ' && cells[..at].iter().any(|(_, c)| *c != ' ') {
            space = Some(at);
        }
    }
    cells.len()
}

/// Longest address or path that is not broken.
const WHOLE: usize = 1_000;

/// Returns the end of the first word, if it is an address or a path.
fn whole(cells: &[(Tone, char)]) -> Option<usize> {
    let begin = cells.iter().take_while(|(_, c)| *c == ' ').count();
    let letters = cells[begin..].iter().map(|(_, c)| *c);
    let word: String = letters.take_while(|c| *c != ' ').take(WHOLE + 1).collect();
    let inner = word.trim_start_matches(['`', '"', '\'', '(', '~']);
    let copied = inner.starts_with('/') || inner.contains("://");
    let length = word.chars().count();
    (copied && length <= WHOLE).then_some(begin + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &Line) -> String {
        line.render(false)
    }

    #[test]
    fn lines_are_cut_and_wrapped_by_columns() {
        let line = Line::new()
            .with(Tone::Strong, "one two ")
            .with(Tone::Plain, "three four");
        assert_eq!(shown(&line.clone().cut(9)), "one two …");
        assert_eq!(shown(&line.clone().cut(18)), "one two three four");
        let wrapped: Vec<String> = line.wrap(9).iter().map(shown).collect();
        assert_eq!(wrapped, ["one two", "three", "four"]);
        let word: Vec<String> = Line::plain("中中中中中中")
            .wrap(8)
            .iter()
            .map(shown)
            .collect();
        assert_eq!(word, ["中中中中", "中中"]);
    }

    #[test]
    fn addresses_and_paths_are_never_broken() {
        let wrapped =
            |text: &str| -> Vec<String> { Line::plain(text).wrap(10).iter().map(shown).collect() };
        assert_eq!(
            wrapped("see http://127.0.0.1:7377/pair/abc today"),
            ["see", "http://127.0.0.1:7377/pair/abc", "today"]
        );
        assert_eq!(
            wrapped("in `/home/ada/work/api` is"),
            ["in", "`/home/ada/work/api`", "is"]
        );
        let long = format!("/{}", "x".repeat(2 * WHOLE));
        assert!(wrapped(&long).iter().all(|line| line.len() <= 10));
    }

    #[test]
    fn tones_never_come_from_the_text() {
        let line = Line::new().with(Tone::Bad, "x\x1b[0m\ny");
        assert_eq!(line.render(true), "\x1b[1;31mx␛[0m y\x1b[0m");
        assert_eq!(line.render(false), "x␛[0m y");
    }
}
