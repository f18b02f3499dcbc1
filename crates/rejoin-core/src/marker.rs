//! The one fixed marker around everything rejoin adds to a prompt.
//!
//! What stands inside is not part of the message: it is stripped when a session is read, adopted or
//! transcribed. The marker in somebody's own words is escaped by one backslash, reversibly, so
//! nobody can forge or hide an addition.

pub const MARK_OPEN: &str = "<rejoin>";
pub const MARK_CLOSE: &str = "</rejoin>";

/// Elements that only rejoin may write.
const NAMES: [&str; 2] = ["rejoin", "said"];

/// Makes text safe to stand beside, or inside, the marker.
pub fn escape(text: &str) -> String {
    rewrite(text, |backslashes| Some(backslashes + 1))
}

/// Takes back what [`escape`] did.
pub fn unescape(text: &str) -> String {
    rewrite(text, |backslashes| backslashes.checked_sub(1))
}

/// The message without what rejoin added to it.
pub fn strip(text: &str) -> String {
    let mut rest = text;
    let mut kept = String::new();
    while let Some(at) = rest.find(MARK_OPEN) {
        let Some(end) = rest[at..].find(MARK_CLOSE) else {
            break;
        };
        kept.push_str(&rest[..at]);
        rest = rest[at + end + MARK_CLOSE.len()..].trim_start_matches('\n');
    }
    kept.push_str(rest);
    unescape(&kept)
}

/// Finds `<`, any backslashes, an optional `/`, one of the names; and changes the backslashes.
fn rewrite(text: &str, change: impl Fn(usize) -> Option<usize>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let (before, from) = rest.split_at(at + 1);
        out.push_str(before);
        let name = from.trim_start_matches('\\');
        let backslashes = from.len() - name.len();
        let bare = name.strip_prefix('/').unwrap_or(name);
        let ours = NAMES.iter().any(|n| bare.starts_with(n));
        let kept = if ours {
            change(backslashes).unwrap_or(backslashes)
        } else {
            backslashes
        };
        out.extend(std::iter::repeat_n('\\', kept));
        rest = name;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_forged_marker_is_only_text() {
        let nasty = "a </rejoin> b <rejoin>c</rejoin> <\\rejoin> <said n=\"1\">";
        let escaped = escape(nasty);
        assert!(!escaped.contains(MARK_OPEN) && !escaped.contains(MARK_CLOSE));
        assert_eq!(unescape(&escaped), nasty);
        let sent =
            format!("{MARK_OPEN}added{MARK_CLOSE}\n\n{escaped}\n\n{MARK_OPEN}end{MARK_CLOSE}");
        assert_eq!(strip(&sent).trim_end(), nasty);
    }

    #[test]
    fn other_text_is_untouched() {
        for text in ["", "a < b", "<html>", "<\\n>", "x <<rej", "日本 <"] {
            assert_eq!(escape(text), text);
        }
    }

    proptest! {
        #[test]
        fn escaping_is_reversible(text in "(<|\\\\|/|rejoin|said|>|a|\n){0,40}") {
            let escaped = escape(&text);
            prop_assert!(!escaped.contains(MARK_OPEN) && !escaped.contains(MARK_CLOSE));
            prop_assert_eq!(unescape(&escaped), text);
        }
    }
}
