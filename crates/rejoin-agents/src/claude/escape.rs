//! Keeps text from being taken for a command or a file of the CLI.
//!
//! The CLI scans only the last text block of a user message: for a leading `/command`, and for
//! `@file` at its start or after white space or 。、？！ (2.1.197, 2.1.325; canary files and `/clear`
//! in earlier blocks had no effect). Therefore a fixed block follows a message that could be taken
//! for a mention, and a newline precedes one that could be taken for a command. A word joiner
//! before the `@` also disables a mention.

use rejoin_core::{MARK_CLOSE, MARK_END, MARK_OPEN, strip};

use crate::facts::MentionEscape;

const JOINER: char = '\u{2060}';

/// First characters that have a meaning in the CLI's prompt, headless or not.
const LEADING: [char; 3] = ['/', '!', '#'];

fn closing() -> String {
    format!("{MARK_OPEN}{MARK_END}{MARK_CLOSE}")
}

/// Splits a user message into text blocks that the CLI treats as data.
pub(super) fn blocks(context: Option<&str>, message: &str, how: MentionEscape) -> Vec<String> {
    let mut blocks: Vec<String> = context
        .into_iter()
        .chain([message])
        .map(str::to_owned)
        .collect();
    for block in &mut blocks {
        if how == MentionEscape::ByJoiner {
            *block = joined(block, |_| true);
        }
        if block.starts_with(LEADING) {
            block.insert(0, '\n');
        }
    }
    if mentions(message).next().is_some() || is_blank(message) {
        blocks.push(closing());
    }
    blocks
}

/// Splits a user message that keeps its CLI meaning. Only mentions of files outside the folder stay
/// text.
pub(super) fn raw_blocks(context: Option<&str>, message: &str, outside: &[String]) -> Vec<String> {
    let mut blocks: Vec<String> = context.into_iter().map(str::to_owned).collect();
    let stays_text = |rest: &str| leads_outside(rest) || outside.iter().any(|p| p == path(rest));
    blocks.push(joined(message, stays_text));
    if is_blank(message) {
        blocks.push(closing());
    }
    blocks
}

/// True for a message of white space. 2.1.325 drops a blank block from the request. It did not scan
/// the block before it in that case, but rejoin does not rely on that.
fn is_blank(message: &str) -> bool {
    message.trim().is_empty()
}

/// True for a block that rejoin added and that contains nothing of the message.
pub(super) fn is_added(block: &str) -> bool {
    block.trim_start().starts_with(MARK_OPEN) && strip(block).is_empty()
}

/// Restores the message of a stored prompt by removing rejoin's additions.
pub(super) fn message_of<'a>(blocks: impl IntoIterator<Item = &'a str>) -> String {
    let kept: Vec<String> = blocks
        .into_iter()
        .filter(|block| !is_added(block))
        .map(|block| strip(&unjoined(block)))
        .collect();
    kept.join("\n")
}

/// Returns the positions at which an `@` could be taken for a mention.
fn mentions(text: &str) -> impl Iterator<Item = usize> + '_ {
    text.match_indices('@').map(|(at, _)| at).filter(|at| {
        let before = text[..*at].chars().next_back();
        before.is_none_or(|c| {
            c.is_whitespace() || matches!(c, '\u{feff}' | '。' | '、' | '？' | '！')
        })
    })
}

fn joined(text: &str, which: impl Fn(&str) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for at in mentions(text).filter(|at| which(&text[at + 1..])) {
        out.push_str(&text[done..at]);
        out.push(JOINER);
        done = at;
    }
    out.push_str(&text[done..]);
    out
}

fn unjoined(text: &str) -> String {
    let text = text
        .strip_prefix('\n')
        .filter(|rest| rest.starts_with(LEADING))
        .unwrap_or(text);
    let mut out = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        let rest = &text[at + c.len_utf8()..];
        let ours = c == JOINER
            && rest.starts_with('@')
            && mentions(&format!(
                "{}@",
                text[..at].chars().next_back().unwrap_or(' ')
            ))
            .next()
            .is_some();
        if !ours {
            out.push(c);
        }
    }
    out
}

/// Returns the paths that a message mentions.
pub(super) fn paths(message: &str) -> Vec<String> {
    mentions(message)
        .map(|at| path(&message[at + 1..]).to_owned())
        .collect()
}

/// Returns the path that follows an `@`, quoted or not.
fn path(rest: &str) -> &str {
    let (rest, end) = match rest.strip_prefix('"') {
        Some(quoted) => (quoted, quoted.find('"')),
        None => (rest, rest.find(char::is_whitespace)),
    };
    &rest[..end.unwrap_or(rest.len())]
}

/// True if the path leads outside by its spelling. Links are resolved by the caller, which can read
/// the disk.
fn leads_outside(rest: &str) -> bool {
    let path = path(rest);
    path.starts_with(['/', '~', '\\']) || path.contains("..") || path.contains(':')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const END: &str = "<rejoin>end of message</rejoin>";

    #[test]
    fn by_place_no_word_changes() {
        for (message, sent, closed) in [
            ("hello", "hello", false),
            ("me@example.org", "me@example.org", false),
            ("a/b", "a/b", false),
            (" /clear", " /clear", false),
            ("/clear", "\n/clear", false),
            ("!ls", "\n!ls", false),
            ("# note", "\n# note", false),
            ("@x", "@x", true),
            ("see @/etc/hostname", "see @/etc/hostname", true),
            ("/see @x", "\n/see @x", true),
            ("see\u{a0}@x", "see\u{a0}@x", true),
            ("見て。@x", "見て。@x", true),
            ("see\u{feff}@x", "see\u{feff}@x", true),
            ("(@x)", "(@x)", false),
            ("", "", true),
            (" \n", " \n", true),
        ] {
            let blocks = blocks(None, message, MentionEscape::ByPlace);
            let expected = if closed { vec![sent, END] } else { vec![sent] };
            assert_eq!(blocks, expected);
        }
    }

    #[test]
    fn by_joiner_also_without_the_place() {
        assert_eq!(
            blocks(Some("ctx @a"), "/clear @b c@d", MentionEscape::ByJoiner),
            ["ctx \u{2060}@a", "\n/clear \u{2060}@b c@d", END]
        );
    }

    #[test]
    fn raw_keeps_its_meaning_inside_the_folder() {
        assert_eq!(
            raw_blocks(None, "/review @src/a.rs", &[]),
            ["/review @src/a.rs"]
        );
        assert_eq!(
            raw_blocks(
                None,
                "@link @\"li nk\" @in",
                &["link".into(), "li nk".into()]
            ),
            ["\u{2060}@link \u{2060}@\"li nk\" @in"]
        );
        let outside = "@/etc/x @~/y @../z @\"/a b\" @a/../../b @\"in side\" @C:\\x";
        let joined = "\u{2060}@/etc/x \u{2060}@~/y \u{2060}@../z \u{2060}@\"/a b\" \u{2060}@a/../../b @\"in side\" \u{2060}@C:\\x";
        assert_eq!(raw_blocks(None, outside, &[]), [joined]);
    }

    proptest! {
        #[test]
        fn what_was_added_can_be_taken_back(
            text in "(@|/|!|#| |\n|a|。|<|rejoin|>|é){0,30}",
            context in proptest::option::of(Just("<rejoin>\nStanding instructions of the product you work in:\nsaid @x\n</rejoin>")),
        ) {
            let message = rejoin_core::escape(&text);
            for how in [MentionEscape::ByPlace, MentionEscape::ByJoiner] {
                let blocks = blocks(context, &message, how);
                // A newline before a slash is the only input that looks like rejoin's own.
                if !message.starts_with('\n') {
                    prop_assert_eq!(message_of(blocks.iter().map(String::as_str)), text.clone());
                }
                if how == MentionEscape::ByJoiner {
                    for block in &blocks {
                        prop_assert!(mentions(block).next().is_none());
                        prop_assert!(!block.starts_with(LEADING));
                    }
                }
            }
        }
    }
}
