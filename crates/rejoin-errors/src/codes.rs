//! Table of all errors. `docs/errors.md` is generated from it.

use std::fmt::Write as _;

use rejoin_core::Class;

/// Kind of failure.
#[derive(Debug, Clone, Copy)]
pub struct Code {
    /// Error code in JSON and over HTTP.
    pub word: &'static str,
    pub exit: u8,
    when: &'static str,
    kept: Kept,
    /// Suggested command, if the place of the error knows nothing better.
    pub next: &'static str,
}

/// Fate of the message.
#[derive(Debug, Clone, Copy)]
enum Kept {
    No,
    /// Stays in the history, unanswered; the next turn shows it once.
    Unanswered,
    /// Kept if it was accepted before the error, otherwise not.
    IfAccepted,
}

impl Kept {
    fn words(self) -> &'static str {
        match self {
            Self::No => "not stored, not sent",
            Self::Unanswered => "stored, unanswered",
            Self::IfAccepted => "stored if it was accepted before",
        }
    }
}

macro_rules! codes {
    ($list:ident: $($name:ident = ($word:literal, $exit:literal, $when:literal, $kept:ident, $next:expr),)+) => {
        $(pub const $name: Code =
            Code { word: $word, exit: $exit, when: $when, kept: Kept::$kept, next: $next };)+
        const $list: &[Code] = &[$($name),+];
    };
}

codes! { COMMANDS:
    USAGE = ("usage", 2, "the command line is wrong, or names something that cannot be used", No, "rejoin --help"),
    CONFIG = ("config", 2, "a configuration file or variable is wrong; the message names file and line", No, "rejoin config path"),
    NOT_FOUND = ("not_found", 3, "no such conversation, turn or message", No, "rejoin list"),
    AMBIGUOUS = ("ambiguous", 3, "the prefix of a handle fits several conversations", No, "rejoin list"),
    AGENT_NOT_FOUND = ("agent_not_found", 3, "there is no agent of this name", No, "rejoin doctor"),
    AGENT_MISSING = ("agent_missing", 3, "the agent is supported, but its program was not found or is a different program", No, "rejoin doctor"),
    BUSY = ("busy", 4, "another turn of the conversation is running, and `--if-busy fail` was given", No, "rejoin wait"),
    IN_USE = ("in_use", 4, "another process has the agent's session open, and `--if-busy fail` was given", No, "rejoin explain --next"),
    CONFLICT = ("conflict", 4, "the conversation changed meanwhile, or is not in the state that the command needs", IfAccepted, "rejoin list"),
    KEY_REUSED = ("key_reused", 4, "the idempotency key was used before with another message", No, "rejoin send --idempotency-key OTHER \"…\""),
    DIVERGED = ("diverged", 4, "the archive or bundle and the local conversation both have new messages; nothing was overwritten", IfAccepted, "rejoin import FILE --as-copy"),
    CONFIRM = ("confirm", 4, "the conversation has `continue=ask`, and the request was not confirmed", No, "rejoin send -c CONV --confirm \"…\""),
    NEVER_CONTINUES = ("never_continues", 5, "the conversation has `continue=never`", No, "rejoin set CONV continue=auto"),
    CLIMB_REFUSED = ("climb_refused", 5, "the policy of the tiers does not allow the climb", No, "rejoin escalate --dry-run"),
    UNAUTHORIZED = ("unauthorized", 8, "the daemon does not know the token, or it has expired", No, "rejoin login URL"),
    FORBIDDEN = ("forbidden", 5, "the token, its ceiling, the address, the folder or the process does not allow this", No, "rejoin token create NAME --scope send"),
    TOO_LARGE = ("too_large", 2, "a request is larger than the daemon takes", No, "a shorter message, or files in the working folder"),
    RATE_LIMITED = ("rate_limited", 9, "too many refused tokens, open streams or messages in the queue", No, "the same later"),
    WOULD_RESEED = ("would_reseed", 5, "the session cannot be resumed, and `--no-reseed` was given", No, "rejoin explain --next"),
    ENVELOPE = ("envelope", 5, "the agent cannot enforce the requested permissions", No, "rejoin send --help"),
    NOT_OPENED = ("not_opened", 5, "the agent's session cannot be opened in its terminal interface; the message names the reason", No, "rejoin explain --next"),
    UNTRUSTED = ("untrusted", 5, "a repository's `rejoin.toml` sets keys that need your trust", No, "rejoin trust"),
    UNAVAILABLE = ("unavailable", 6, "the store or a file of rejoin cannot be used", IfAccepted, "rejoin doctor"),
    DAMAGED = ("damaged", 11, "`snapshot verify` found damaged snapshots; the message names them", No, "rejoin snapshot verify --read-data"),
    BAD_ARCHIVE = ("bad_archive", 11, "an archive is damaged, incomplete or contains invalid data; nothing was imported", No, "rejoin export CONV, once more where it came from"),
    CANCELLED = ("cancelled", 130, "interrupted before the turn began", No, "rejoin list"),
    INTERNAL = ("internal", 1, "a bug in rejoin", IfAccepted, "rejoin doctor"),
}

codes! { TURNS:
    REFUSED = ("refused", 1, "the agent refused the session after a tool had run, so rejoin did not retry", Unanswered, Class::Refused.advice()),
    TRANSIENT = ("transient", 1, "network failure, overload or server error", Unanswered, Class::Transient.advice()),
    QUOTA = ("quota", 9, "quota or rate limit", Unanswered, Class::Quota.advice()),
    AUTH = ("auth", 8, "the login or key is missing or was refused", Unanswered, Class::Auth.advice()),
    CONTEXT_OVERFLOW = ("context_overflow", 1, "the conversation did not fit the model; the next turn sends a shorter transcript", Unanswered, Class::ContextOverflow.advice()),
    POISONED = ("poisoned", 1, "the API rejects the session's history; the next turn uses a new session", Unanswered, Class::Poisoned.advice()),
    INVALID_REQUEST = ("invalid_request", 1, "the API refused this request", Unanswered, Class::InvalidRequest.advice()),
    INTERRUPTED = ("interrupted", 130, "the agent was interrupted", Unanswered, Class::Interrupted.advice()),
    CRASHED = ("crashed", 1, "the agent ended without an answer", Unanswered, Class::Crashed.advice()),
    DISK_FULL = ("disk_full", 1, "the disk was full", Unanswered, Class::DiskFull.advice()),
    NOT_RECORDED = ("not_recorded", 1, "the agent answered in a different session than requested", Unanswered, Class::NotRecorded.advice()),
    TIME_LIMIT = ("time_limit", 124, "stopped by `--timeout`", Unanswered, Class::TimeLimit.advice()),
    IDLE_LIMIT = ("idle_limit", 124, "stopped by `--idle-timeout`: the agent printed nothing for too long", Unanswered, Class::IdleLimit.advice()),
    COST_LIMIT = ("cost_limit", 124, "stopped by `--max-cost`", Unanswered, Class::CostLimit.advice()),
    NOT_STARTED = ("not_started", 1, "the agent could not be started", Unanswered, Class::NotStarted.advice()),
    TURN_WOULD_RESEED = ("would_reseed", 5, "not run because of `--no-reseed`", No, Class::WouldReseed.advice()),
    TURN_ENVELOPE = ("envelope", 5, "the agent refused the permissions it was started with", Unanswered, Class::Permissions.advice()),
    TURN_IN_USE = ("in_use", 4, "the agent reported that its session is open elsewhere", Unanswered, Class::InUse.advice()),
    LOST = ("lost", 1, "its process is gone and left no result", Unanswered, Class::Lost.advice()),
    UNKNOWN = ("unknown", 1, "an error that rejoin does not recognise", Unanswered, Class::Unknown.advice()),
}

/// Returns the row for an error code that came over HTTP.
pub fn of_word(word: &str) -> Option<&'static Code> {
    let all = COMMANDS.iter().chain(TURNS);
    all.into_iter().find(|code| code.word == word)
}

/// Returns the row for the class of a turn's error.
pub fn of_class(class: Class) -> &'static Code {
    match class {
        Class::Refused => &REFUSED,
        Class::Transient => &TRANSIENT,
        Class::Quota => &QUOTA,
        Class::Auth => &AUTH,
        Class::ContextOverflow => &CONTEXT_OVERFLOW,
        Class::Poisoned => &POISONED,
        Class::InvalidRequest => &INVALID_REQUEST,
        Class::Interrupted => &INTERRUPTED,
        Class::Crashed => &CRASHED,
        Class::DiskFull => &DISK_FULL,
        Class::NotRecorded => &NOT_RECORDED,
        Class::TimeLimit => &TIME_LIMIT,
        Class::IdleLimit => &IDLE_LIMIT,
        Class::CostLimit => &COST_LIMIT,
        Class::NotStarted => &NOT_STARTED,
        Class::WouldReseed => &TURN_WOULD_RESEED,
        Class::Permissions => &TURN_ENVELOPE,
        Class::InUse => &TURN_IN_USE,
        Class::Lost => &LOST,
        Class::Unknown => &UNKNOWN,
    }
}

/// Returns the text of `docs/errors.md`.
pub fn page() -> String {
    let mut page = String::from(
        "# Errors\n\n\
        <!-- Generated by `cargo run -p rejoin -- reference docs`. -->\n\n\
        Every error is one sentence on stderr with a command to try. With `--json` it is\n\
        `{\"error\":{\"code\",\"message\",\"try\"}}` on stdout. Scripts use the exit code.\n",
    );
    let tables = [
        (
            "Commands",
            "code",
            "The command failed, and no turn ran to an answer.",
            COMMANDS,
        ),
        (
            "Turns",
            "class",
            "The turn failed; its output contains `\"error\":{\"class\",\"message\",\"try\"}`.",
            TURNS,
        ),
    ];
    for (title, head, intro, rows) in tables {
        let _infallible = write!(
            page,
            "\n## {title}\n\n{intro}\n\n| {head} | exit | when | message | try |\n|---|--:|---|---|---|\n"
        );
        for row in rows {
            let Code {
                word,
                exit,
                when,
                kept,
                next,
            } = row;
            let _infallible = writeln!(
                page,
                "| `{word}` | {exit} | {when} | {} | `{next}` |",
                kept.words()
            );
        }
    }
    page.push_str("\nOther exit codes: 0 done · 7 a person is needed · 10 answered but not saved (`--must-save`) · 130 and 143 interrupted.\n");
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_has_its_own_row() {
        for class in Class::ALL {
            assert_eq!(of_class(*class).word, class.as_str());
        }
        assert_eq!(TURNS.len(), Class::ALL.len());
        assert!(
            COMMANDS
                .iter()
                .all(|code| !code.next.is_empty() && code.exit > 0)
        );
    }

    /// Present commands leave no turn of this kind: `send` withdraws it and reports that itself.
    #[test]
    fn a_turn_that_was_held_back() {
        let failure = rejoin_core::Failure {
            class: Class::WouldReseed,
            message: "the session cannot be resumed (session_missing)".into(),
        };
        let line = rejoin_core::summary(&rejoin_core::SummaryFacts {
            status: rejoin_core::TurnStatus::Failed,
            verdict: None,
            reason: None,
            because: None,
            sent: rejoin_core::Sent::default(),
            caught_up_by: None,
            reference: "tmqx:3",
            agent: "claude",
            model: Some("sonnet"),
            usage: None,
            cost: rejoin_core::Cost::Unknown,
            fresh_estimate: None,
            duration_ms: 0,
            failure: Some(&failure),
            tools_run: 0,
            notes: &[failure.class.advise("tmqx:3", "claude")],
        });
        let row = of_class(failure.class);
        insta::assert_snapshot!(format!("exit {}, turn {}\n{line}", row.exit, row.word), @r#"
        exit 5, turn would_reseed
        rejoin: failed, would_reseed: the session cannot be resumed (session_missing) · tmqx:3 not kept, no tool ran · claude sonnet · rejoin explain tmqx --next
        "#);
    }
}
