//! A message as it is typed: one line; lines joined by a backslash at their end; or everything between two `"""`.

/// Marks the begin and the end of a message of several lines.
const FENCE: &str = "\"\"\"";

/// Returns true if the message goes on in the next line.
pub(super) fn is_incomplete(typed: &str) -> bool {
    let typed = typed.trim_end_matches('\n');
    match typed.trim_start().strip_prefix(FENCE) {
        Some(rest) => !rest.trim_end().ends_with(FENCE),
        None => joins(typed.rsplit('\n').next().unwrap_or_default()),
    }
}

/// Returns the text to send for what was typed.
pub(super) fn text_of(typed: &str) -> String {
    let inner = typed.trim().strip_prefix(FENCE);
    if let Some(inner) = inner {
        let inner = inner.strip_suffix(FENCE).unwrap_or(inner);
        return inner.trim_matches('\n').to_owned();
    }
    let lines: Vec<&str> = typed.trim_end_matches('\n').split('\n').collect();
    let last = lines.len() - 1;
    let text = lines.iter().enumerate().map(|(n, line)| match line {
        line if n < last && joins(line) => &line[..line.len() - 1],
        line => line,
    });
    text.collect::<Vec<_>>().join("\n")
}

/// Returns true for a line that ends with a backslash of its own, and not with an escaped one.
fn joins(line: &str) -> bool {
    let backslashes = line.len() - line.trim_end_matches('\\').len();
    backslashes % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_ends_with_its_line_or_its_fence() {
        let cases = [
            ("hello", false, "hello"),
            ("one \\", true, "one \\"),
            ("one \\\ntwo", false, "one \ntwo"),
            ("a path \\\\", false, "a path \\\\"),
            ("\"\"\"", true, ""),
            ("\"\"\"\nfn x() {}\n", true, "fn x() {}"),
            (
                "\"\"\"\nfn x() {}\n\n  y\n\"\"\"",
                false,
                "fn x() {}\n\n  y",
            ),
            ("\"\"\"short\"\"\"", false, "short"),
            ("pasted\ntext", false, "pasted\ntext"),
        ];
        for (typed, incomplete, text) in cases {
            assert_eq!(is_incomplete(typed), incomplete, "{typed}");
            assert_eq!(text_of(typed), text, "{typed}");
        }
    }
}
