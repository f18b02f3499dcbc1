//! Keeps text from being taken for a command or a file of the CLI.
//!
//! The CLI reads every `@path` anywhere in a prompt, even in words such as `me@example.org`, and on
//! a resume drops prompts that begin with `/`, `?` or some of its own markers (0.61.0). But it does
//! not scan the arguments of a custom command of the user. So each message is sent as the argument
//! of a command that only passes it on, and not a byte of it is changed. If that does not work, an
//! invisible joiner after the `@` disables a mention.

use rejoin_core::{MARK_CLOSE, MARK_COMMAND, MARK_MESSAGE, MARK_OPEN, strip};

use crate::facts::MentionEscape;
use crate::order::RunOrder;
use crate::session::text_mark;

const JOINER: char = '\u{2060}';

/// Returns the text of that command. The CLI puts it before the command line, with an empty line in
/// between.
fn passed_on() -> String {
    format!("{MARK_OPEN}{MARK_COMMAND}")
}

/// First characters with which a prompt may be a command, or vanish from the history.
const LEADING: [char; 4] = ['/', '$', '?', '<'];

/// Prompt of a run, and the files it needs.
pub(super) struct Prompt {
    pub(super) text: String,
    pub(super) files: Vec<(String, String)>,
}

pub(super) fn prompt(order: &RunOrder<'_>) -> Prompt {
    let (context, message) = (
        order.composed.context.as_deref(),
        order.composed.message.as_str(),
    );
    let plain = |text| Prompt {
        text,
        files: vec![],
    };
    if order.raw {
        // A context of notices alone is left out if it would disable a command.
        let sent = &order.composed.sent;
        let told = sent.caught_up + sent.transcribed > 0;
        let context = context.filter(|_| told || !message.starts_with('/'));
        return plain(raw(context, message, order.outside));
    }
    let text = match context {
        Some(context) => format!("{context}\n\n{message}"),
        None => message.to_owned(),
    };
    match order.neutral {
        MentionEscape::ByPlace => {
            let name = command_name(order.home);
            Prompt {
                text: format!("/{name} {MARK_CLOSE}\n{text}"),
                files: vec![(
                    format!("commands/{name}.toml"),
                    format!(
                        "description = \"of rejoin\"\nprompt = \"{}\"\n",
                        passed_on()
                    ),
                )],
            }
        }
        MentionEscape::ByJoiner => plain(by_joiner(&text)),
    }
}

/// Builds the prompt for the protocol, where the CLI reads no mentions, and of commands only its
/// own, after a `/` or a `$`.
pub(super) fn plain(order: &RunOrder<'_>) -> String {
    let message = &order.composed.message;
    match &order.composed.context {
        Some(context) => format!("{context}\n\n{message}"),
        None => guarded(message.clone()),
    }
}

/// Returns the name of the command. No folder defines it: a command of the folder would win over
/// one of the user's.
fn command_name(home: &str) -> String {
    let hash = blake3::hash(home.as_bytes()).to_hex();
    format!("rejoin-{}", &hash[..8])
}

fn by_joiner(text: &str) -> String {
    guarded(joined(text, |_| true))
}

/// Adds a prefix to a text that the CLI could take for a command.
fn guarded(text: String) -> String {
    // The CLI treats it as white space, rejoin does not.
    let begins = text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    if begins.starts_with(LEADING) && !text.starts_with(MARK_OPEN) {
        return format!("{MARK_OPEN}{MARK_MESSAGE}{MARK_CLOSE}\n{text}");
    }
    text
}

/// Builds a message that keeps its CLI meaning. Only mentions of files outside the folder stay
/// text.
fn raw(context: Option<&str>, message: &str, outside: &[String]) -> String {
    let stays_text = |rest: &str| leads_outside(rest) || outside.contains(&path(rest));
    let message = joined(message, stays_text);
    match context {
        Some(context) => format!("{}\n\n{message}", joined(context, |_| true)),
        None => message,
    }
}

/// Identifies a prompt in a session by the typed text, in whichever form it was passed on.
pub(super) fn mark(stored: &str) -> String {
    let typed = stored.strip_prefix(passed_on().as_str()).unwrap_or(stored);
    // The CLI treats it as white space, rejoin does not.
    text_mark(typed.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}'))
}

/// Restores the message of a stored prompt by removing rejoin's additions.
pub(super) fn message_of(stored: &str) -> String {
    let mut out = String::with_capacity(stored.len());
    let mut chars = stored.chars().peekable();
    while let Some(c) = chars.next() {
        out.push(c);
        if c == '@' {
            chars.next_if_eq(&JOINER);
        }
    }
    strip(&out)
}

/// Returns the positions at which an `@` could be taken for a mention.
fn mentions(text: &str) -> impl Iterator<Item = usize> + '_ {
    text.match_indices('@').map(|(at, _)| at).filter(|at| {
        let next = text[at + 1..].chars().next();
        next.is_some_and(|c| !c.is_whitespace())
    })
}

fn joined(text: &str, which: impl Fn(&str) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for at in mentions(text).filter(|at| which(&text[at + 1..])) {
        out.push_str(&text[done..=at]);
        out.push(JOINER);
        done = at + 1;
    }
    out.push_str(&text[done..]);
    out
}

/// Returns the paths that a message mentions.
pub(super) fn paths(message: &str) -> Vec<String> {
    mentions(message)
        .map(|at| path(&message[at + 1..]))
        .collect()
}

/// Returns the path that follows an `@`: up to white space or most punctuation, unless quoted or
/// escaped.
fn path(rest: &str) -> String {
    let mut path = String::new();
    let mut chars = rest.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if chars.clone().any(|c| c == '"') => {
                path.extend(chars.by_ref().take_while(|c| *c != '"'));
            }
            '\\' => path.extend(chars.next()),
            '.' if chars.peek().is_none_or(|next| next.is_whitespace()) => break,
            ',' | ';' | '!' | '?' | '(' | ')' | '[' | ']' | '{' | '}' => break,
            c if c.is_whitespace() => break,
            c => path.push(c),
        }
    }
    path
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

    #[test]
    fn by_joiner_nothing_is_a_mention() {
        for (text, sent) in [
            ("hello", "hello"),
            ("a@b @ c", "a@\u{2060}b @ c"),
            ("@x", "@\u{2060}x"),
            ("/clear", "<rejoin>the message:</rejoin>\n/clear"),
            ("$help", "<rejoin>the message:</rejoin>\n$help"),
            (" \u{feff}/x", "<rejoin>the message:</rejoin>\n \u{feff}/x"),
            (" ?", "<rejoin>the message:</rejoin>\n ?"),
            ("<rejoin>n</rejoin>\n\n/x", "<rejoin>n</rejoin>\n\n/x"),
        ] {
            assert_eq!(by_joiner(text), sent);
        }
    }

    #[test]
    fn raw_keeps_its_meaning_inside_the_folder() {
        assert_eq!(raw(None, "/review @src/a.rs", &[]), "/review @src/a.rs");
        assert_eq!(
            raw(
                Some("said @a"),
                "@link, @\"li nk\" @in",
                &["link".into(), "li nk".into()]
            ),
            "said @\u{2060}a\n\n@\u{2060}link, @\u{2060}\"li nk\" @in"
        );
        let outside = "@/etc/x @~/y @../z @\"/a b\" @in/side.txt. @mcp:x";
        assert_eq!(
            raw(None, outside, &[]),
            "@\u{2060}/etc/x @\u{2060}~/y @\u{2060}../z @\u{2060}\"/a b\" @in/side.txt. @\u{2060}mcp:x"
        );
        assert_eq!(
            paths("@a.b. @\"c d\"e @f\\ g, x@h(i)"),
            ["a.b", "c de", "f g", "h"]
        );
    }

    proptest! {
        #[test]
        fn what_was_added_can_be_taken_back(
            text in "(@|/|\\?| |\n|a|<|rejoin|>|é|\u{2060}){0,30}",
        ) {
            let message = rejoin_core::escape(&text);
            let sent = by_joiner(&message);
            let trimmed = |text: &str| text.trim_start_matches('\n').to_owned();
            prop_assert_eq!(trimmed(&message_of(&sent)), trimmed(&text));
            let passed_on = passed_on();
            let passed = format!("{passed_on}\n\n/rejoin-1 {MARK_CLOSE}\n{message}");
            if !text.contains("@\u{2060}") {
                prop_assert_eq!(trimmed(&message_of(&passed)), trimmed(&text));
            }
            prop_assert_eq!(mark(&passed), mark(&format!("/rejoin-1 {MARK_CLOSE}\n{message}")));
            prop_assert!(paths(&sent).iter().all(|path| path.starts_with(JOINER)));
        }
    }
}
