//! Parser of the CLI's log on stderr (`--print-logs`). Only the log reports that a request to the
//! model failed and is retried, which the CLI may do forever (1.18.3), or for as long as the API
//! demands (1.18.33).

/// A line of the log, with the id of its session.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Logged<'a> {
    /// The model is asked.
    Asks(&'a str),
    /// The request failed, for this reason.
    Failed(&'a str, String),
    Other,
}

/// Parses a line. None if it is not part of the log.
pub(super) fn read(line: &str) -> Option<Logged<'_>> {
    let rest = line.strip_prefix("timestamp=")?;
    let (_, rest) = rest.split_once(" level=")?;
    // A request beside the turn, for a title.
    if rest.contains(" small=true") {
        return Some(Logged::Other);
    }
    let (_, message) = rest.split_once(" message=").unwrap_or_default();
    let (_, session) = message.split_once(" session.id=").unwrap_or_default();
    let session = session.split(' ').next().unwrap_or_default();
    if message.starts_with("stream ") {
        return Some(Logged::Asks(session));
    }
    if !message.starts_with("\"stream error\"") {
        return Some(Logged::Other);
    }
    let (_, said) = message.split_once(" error.error=").unwrap_or_default();
    let said = said.strip_prefix('"').unwrap_or(said);
    let said = said.split("\\n").next().unwrap_or_default();
    let said = said.trim_end_matches('"');
    let said = said.strip_prefix("AI_APICallError: ").unwrap_or(said);
    Some(Logged::Failed(session, said.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_versions() {
        let at = |rest: &str| format!("timestamp=2026-11-16T11:39:39.955Z {rest}");
        let asks =
            at("level=INFO message=stream providerID=p session.id=ses_1 small=false agent=a");
        assert_eq!(read(&asks), Some(Logged::Asks("ses_1")));
        let failed = at(
            r#"level=ERROR run=c4 message="stream error" session.id=ses_1 small=false error.error="AI_APICallError: rate limited""#,
        );
        let limited = Logged::Failed("ses_1", "rate limited".into());
        assert_eq!(read(&failed), Some(limited));
        for other in [
            r#"level=ERROR run=c4 message="stream error" small=true error.error="x""#,
            r#"level=ERROR message=process error="message=stream x""#,
        ] {
            assert_eq!(read(&at(other)), Some(Logged::Other));
        }
        assert_eq!(read("Error: Session not found"), None);
        for odd in [
            "timestamp=",
            "timestamp= level=",
            "timestamp=x level=ERROR message=\"stream error\"",
        ] {
            assert!(!matches!(read(odd), Some(Logged::Asks(_))), "{odd}");
        }
    }
}
