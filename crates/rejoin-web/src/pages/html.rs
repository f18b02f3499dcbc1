//! Pieces of HTML, and foreign text made harmless.

use std::fmt;
use std::fmt::Write as _;

/// HTML that this crate has built. Templates print it unchanged.
#[derive(Debug, Clone, Default)]
pub(crate) struct Html(pub(crate) String);

impl fmt::Display for Html {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl askama::filters::HtmlSafe for Html {}

/// Returns an icon: decoration beside a word.
pub(crate) fn icon(name: &str) -> Html {
    mark("i", &format!("i-{name}"))
}

/// Returns the mark of a verdict.
pub(crate) fn verdict(name: &str) -> Html {
    let id = format!("v-{name}");
    mark(&format!("v {id}"), &id)
}

fn mark(class: &str, id: &str) -> Html {
    Html(format!(
        "<svg class=\"{class}\" viewBox=\"0 0 16 16\" aria-hidden=\"true\"><use href=\"#{id}\"/></svg>"
    ))
}

/// True for characters that change the direction or order of other text.
fn is_bidi(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}')
}

/// Returns the text with control characters and direction marks as visible symbols, and without the
/// colours of terminals.
pub(crate) fn plain(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(c) = letters.next() {
        match c {
            '\n' | '\t' => shown.push(c),
            '\r' if letters.peek() == Some(&'\n') => {}
            '\u{1b}' if letters.peek() == Some(&'[') => {
                letters.next();
                while letters.next().is_some_and(|c| !('@'..='~').contains(&c)) {}
            }
            '\u{0}'..='\u{1f}' => shown.push(char::from_u32(0x2400 + c as u32).unwrap_or(' ')),
            '\u{7f}' => shown.push('\u{2421}'),
            c if is_bidi(c) || ('\u{80}'..='\u{9f}').contains(&c) => {
                let _ = write!(shown, "\u{27e8}U+{:04X}\u{27e9}", c as u32);
            }
            c => shown.push(c),
        }
    }
    shown
}

/// Appends text that cannot be read as HTML.
pub(crate) fn escape_into(out: &mut String, text: &str) {
    for c in plain(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
}

/// Returns text that cannot be read as HTML.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    escape_into(&mut out, text);
    out
}

/// Cuts a text behind that many characters.
pub(crate) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_is_shown_and_never_obeyed() {
        assert_eq!(plain("a\u{1b}[31mred\u{1b}[0m\u{7}"), "ared\u{2407}");
        assert_eq!(plain("x\u{202e}y"), "x\u{27e8}U+202E\u{27e9}y");
        assert_eq!(
            escape("<b onclick=\"x\">'&"),
            "&lt;b onclick=&quot;x&quot;&gt;&#39;&amp;"
        );
        assert_eq!(plain("a\r\nb\tc"), "a\nb\tc");
        assert_eq!(cut("äöü", 2), "äö…");
    }
}
