//! What the CLI logs on stderr (`--print-logs`): the only place where it says that its model failed and is
//! asked again, which it may do for ever (1.18.3), or for as long as the API likes (1.18.33).

/// A line of the log.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Logged {
    /// The model is asked.
    Asks,
    /// It failed, for this reason.
    Failed(String),
    Other,
}

/// None: not a line of the log.
pub(super) fn read(line: &str) -> Option<Logged> {
    let rest = line.strip_prefix("timestamp=")?;
    let (_, rest) = rest.split_once(" level=")?;
    // A request beside the turn, for a title.
    if rest.contains(" small=true") {
        return Some(Logged::Other);
    }
    let (_, message) = rest.split_once(" message=").unwrap_or_default();
    if message.starts_with("stream ") {
        return Some(Logged::Asks);
    }
    if !message.starts_with("\"stream error\"") {
        return Some(Logged::Other);
    }
    let (_, said) = message.split_once(" error.error=").unwrap_or_default();
    let said = said.strip_prefix('"').unwrap_or(said);
    let said = said.split("\\n").next().unwrap_or_default();
    let said = said.trim_end_matches('"');
    let said = said.strip_prefix("AI_APICallError: ").unwrap_or(said);
    Some(Logged::Failed(said.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_versions() {
        let at = "timestamp=2026-11-16T11:39:39.955Z";
        let line = |rest: &str| read(&format!("{at} {rest}"));
        assert_eq!(
            line("level=INFO run=c4 message=stream providerID=p modelID=m small=false agent=a"),
            Some(Logged::Asks)
        );
        assert_eq!(
            line(
                r#"level=ERROR run=c4 message="stream error" providerID=p small=false error.error="AI_APICallError: rate limited""#
            ),
            Some(Logged::Failed("rate limited".into()))
        );
        assert_eq!(
            line(r#"level=ERROR run=c4 message="stream error" small=true error.error="x""#),
            Some(Logged::Other)
        );
        assert_eq!(
            line(r#"level=ERROR message=process error="message=stream x""#),
            Some(Logged::Other)
        );
        assert_eq!(read("Error: Session not found"), None);
        for odd in [
            "timestamp=",
            "timestamp= level=",
            "timestamp=x level=ERROR message=\"stream error\"",
        ] {
            assert_ne!(read(odd), Some(Logged::Asks), "{odd}");
        }
    }
}
