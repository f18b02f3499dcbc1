//! Keeps text from being taken for a command of the CLI.
//!
//! Headless, 0.166.0 interprets neither `/command` nor `@file` nor `!command`. But a `$name`
//! anywhere in a prompt, even quoted or after a word or a backslash, adds the skill of that name to
//! the request; `[@name](…)` does so with a plugin. A word joiner behind the sign disables both.

const JOINER: char = '\u{2060}';

/// Names that the CLI never takes for a skill, even if one of that name exists (tried). They often
/// occur as plain variables.
const VARIABLES: &[&str] = &[
    "HOME",
    "LANG",
    "PATH",
    "PWD",
    "SHELL",
    "TEMP",
    "TERM",
    "TMP",
    "TMPDIR",
    "USER",
    "XDG_CONFIG_HOME",
];

/// Disables every mention in a message that is data.
pub(super) fn data(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (at, sign) in text.char_indices() {
        let rest = &text[at + sign.len_utf8()..];
        out.push(sign);
        if is_mention(&text[..at], sign, rest) {
            out.push(JOINER);
        }
    }
    out
}

/// Reverts [`data`].
pub(super) fn said(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut after = None::<(usize, char)>;
    for (at, sign) in text.char_indices() {
        let rest = &text[at + sign.len_utf8()..];
        let ours = |(before, sigil)| is_mention(&text[..before], sigil, rest);
        if sign != JOINER || !after.is_some_and(ours) {
            out.push(sign);
        }
        after = Some((at, sign));
    }
    out
}

/// True if the sign starts a mention. A joiner that was already in the text counts as a name, so
/// that it can be distinguished from an added one.
fn is_mention(before: &str, sign: char, rest: &str) -> bool {
    // The sign is checked first: searching the end of a name at each letter would take quadratic
    // time.
    if sign != '$' && !(sign == '@' && before.ends_with('[')) {
        return false;
    }
    let part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | ':' | JOINER);
    let name = &rest[..rest.find(|c| !part(c)).unwrap_or(rest.len())];
    !name.is_empty() && (sign == '@' || !VARIABLES.contains(&name))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_mentions_change() {
        for (text, sent) in [
            ("plain @file /clear !ls # x", "plain @file /clear !ls # x"),
            ("use $skill now", "use $\u{2060}skill now"),
            (
                "`$a` x$b \\$c $$d",
                "`$\u{2060}a` x$\u{2060}b \\$\u{2060}c $$\u{2060}d",
            ),
            (
                "costs $5, $HOME/x ${A} $(id) $",
                "costs $\u{2060}5, $HOME/x ${A} $(id) $",
            ),
            (
                "[$a](p) [@b](plugin://b) me@b",
                "[$\u{2060}a](p) [@\u{2060}b](plugin://b) me@b",
            ),
        ] {
            assert_eq!(data(text), sent);
            assert_eq!(said(sent), text);
        }
    }

    /// Each of these took minutes when the end of the word was searched at every letter.
    #[test]
    fn long_words_take_linear_time() {
        let long = 1 << 21;
        for piece in ["a", "$", "$a", "[@a", "\u{2060}", "$\u{2060}"] {
            let text = piece.repeat(long / piece.len());
            assert!(said(&data(&text)) == text, "{piece}");
        }
    }

    proptest! {
        #[test]
        fn nothing_is_lost(text in "([$@\\[\u{2060}ab{ ]|HOME){0,12}|.{0,20}") {
            prop_assert_eq!(said(&data(&text)), text);
        }
    }
}
