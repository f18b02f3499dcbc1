//! Foreign text that cannot move the cursor, change colours, reorder or hide what stands beside it:
//! whatever would do so is made visible.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthChar;

/// Marks (accents and the like) that may sit on one letter; more would climb over other lines.
const MARKS: usize = 4;
/// More columns in one line are not read by anybody; they are counted instead.
const LONG: usize = 4_000;

/// Makes everything visible that would not be text on a terminal. Lines and tabs stay.
pub(crate) fn safe(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut before = '\n';
    // A mark without a letter would sit on whatever was printed before.
    let mut marks = MARKS;
    while let Some(c) = chars.next() {
        let next = chars.peek().copied().unwrap_or('\n');
        if c == '\r' && next == '\n' {
            continue;
        }
        let zero = c.width() == Some(0);
        marks = if zero { marks + 1 } else { 0 };
        if c == '\n' {
            marks = MARKS;
        }
        let joins = matches!(c, '\u{200c}' | '\u{200d}') && (before.is_ascii() || next.is_ascii());
        if tricks(c) || joins || (zero && marks > MARKS) {
            reveal(c, &mut shown);
        } else {
            shown.push(c);
        }
        before = c;
    }
    shown
}

/// Controls, and characters that are not seen or change the order of others.
pub(crate) fn tricks(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

fn reveal(c: char, shown: &mut String) {
    let picture = match c as u32 {
        code @ 0..=0x1f => char::from_u32(0x2400 + code),
        0x7f => Some('\u{2421}'),
        _ => None,
    };
    match picture {
        Some(picture) => shown.push(picture),
        None => drop(write!(shown, "<U+{:04X}>", c as u32)),
    }
}

/// Joins white space and cuts the text at `width` columns.
pub(crate) fn one_line(text: &str, width: usize) -> String {
    // What lies further back cannot be within the width.
    let near: String = text.chars().take(width * 16 + 256).collect();
    let line = safe(&near).split_whitespace().collect::<Vec<_>>().join(" ");
    cut(&line, width)
}

/// At most `width` columns of safe text.
pub(crate) fn cut(line: &str, width: usize) -> String {
    if columns(line) <= width {
        return line.to_owned();
    }
    broken_off(line, width)
}

/// As much as fits, and the sign that something follows.
pub(crate) fn broken_off(line: &str, width: usize) -> String {
    let mut room = width.saturating_sub(1);
    let fits = |c: &char| {
        let taken = c.width().unwrap_or(0);
        let fits = taken <= room;
        room = room.saturating_sub(taken);
        fits
    };
    let kept: String = line.chars().take_while(fits).collect();
    format!("{}…", kept.trim_end())
}

/// How many columns safe text takes.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// Lines that would flood a screen are cut, and say so.
pub(crate) fn without_floods(text: &str) -> String {
    if text.len() <= LONG {
        return text.to_owned();
    }
    let line = |line: &str| match line.char_indices().nth(LONG) {
        None => line.to_owned(),
        Some((at, _)) => {
            let rest = super::format::size((line.len() - at) as u64);
            format!("{} … [{rest} more in this line]", &line[..at])
        }
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_act_on_a_terminal_is_shown_instead() {
        let cases = [
            ("plain ä 中 \t\n", "plain ä 中 \t\n"),
            ("\x1b[2J\x07", "␛[2J␇"),
            ("a\rb", "a␍b"),
            ("a\r\nb", "a\nb"),
            ("\u{9b}31m\x7f", "<U+009B>31m␡"),
            ("\u{202e}gpj.exe", "<U+202E>gpj.exe"),
            ("pay\u{200b}pal \u{e0041}", "pay<U+200B>pal <U+E0041>"),
            ("a\u{200d}b", "a<U+200D>b"),
            ("👩\u{200d}👧", "👩\u{200d}👧"),
            ("e\u{301}", "e\u{301}"),
            ("\u{301}x", "<U+0301>x"),
        ];
        for (text, shown) in cases {
            assert_eq!(safe(text), shown);
        }
        let tower = format!("a{}", "\u{301}".repeat(50));
        assert_eq!(safe(&tower).matches("<U+0301>").count(), 46);
    }

    #[test]
    fn long_lines_are_cut_by_columns() {
        assert_eq!(one_line("a  b\nc", 10), "a b c");
        assert_eq!(one_line("中中中", 5), "中中…");
        assert_eq!(one_line(&"x".repeat(5_000_000), 5), "xxxx…");
        let flood = without_floods(&format!("short\n{}", "y".repeat(5_000_000)));
        assert!(flood.starts_with("short\nyyy") && flood.len() < 5_000);
        assert!(flood.ends_with("y … [5.0 MB more in this line]"));
    }
}
