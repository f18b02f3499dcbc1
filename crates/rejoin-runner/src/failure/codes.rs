//! The one table of everything that can be wrong. `docs/errors.md` is made from it.
#![cfg_attr(
    not(test),
    allow(dead_code, reason = "only the page shows when and kept")
)]

use rejoin_core::Class;

/// One way to fail.
#[derive(Debug, Clone, Copy)]
pub struct Code {
    /// The same word in JSON and over HTTP.
    pub word: &'static str,
    pub exit: u8,
    when: &'static str,
    kept: Kept,
    /// What to type, where the place it happened knows nothing better.
    pub next: &'static str,
}

/// What became of the message.
#[derive(Debug, Clone, Copy)]
enum Kept {
    No,
    /// It stays in the history, unanswered, and the next turn shows it once.
    Unanswered,
    /// Accepted before it happened: kept; else not.
    IfAccepted,
}

impl Kept {
    fn words(self) -> &'static str {
        match self {
            Self::No => "not kept, nothing was sent",
            Self::Unanswered => "kept, unanswered",
            Self::IfAccepted => "kept if it was accepted before",
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
    USAGE = ("usage", 2, "the command line, or what it names, does not make sense", No, "rejoin --help"),
    CONFIG = ("config", 2, "a configuration file or variable is wrong; file and line are named", No, "rejoin config path"),
    NOT_FOUND = ("not_found", 3, "no such conversation, turn or message", No, "rejoin list"),
    AMBIGUOUS = ("ambiguous", 3, "the beginning of a handle fits several conversations", No, "rejoin list"),
    AGENT_NOT_FOUND = ("agent_not_found", 3, "no agent of that name is known", No, "rejoin doctor"),
    AGENT_MISSING = ("agent_missing", 3, "the agent is known, its program is not here or is another one", No, "rejoin doctor"),
    BUSY = ("busy", 4, "another turn of the conversation runs, and `--if-busy fail` was given", No, "rejoin wait"),
    IN_USE = ("in_use", 4, "another process has the agent's session open, and `--if-busy fail` was given", No, "rejoin explain --next"),
    CONFLICT = ("conflict", 4, "something changed meanwhile, or is not in the state that the command needs", IfAccepted, "rejoin list"),
    KEY_REUSED = ("key_reused", 4, "the idempotency key was used before with another message", No, "rejoin send --idempotency-key OTHER \"…\""),
    DIVERGED = ("diverged", 4, "an archive or a bundle and what is here went on from one place, each by itself; nothing was overwritten", IfAccepted, "rejoin import FILE --as-copy"),
    CONFIRM = ("confirm", 4, "the conversation is set to ask before it is continued, and nobody said yes", No, "rejoin send -c CONV --confirm \"…\""),
    NEVER_CONTINUES = ("never_continues", 5, "the conversation is set never to be continued", No, "rejoin set CONV continue=auto"),
    UNAUTHORIZED = ("unauthorized", 8, "the daemon does not know the token, or it has expired", No, "rejoin login URL"),
    FORBIDDEN = ("forbidden", 5, "the token, its ceiling, the address, the folder or the process does not allow this", No, "rejoin token create NAME --scope send"),
    TOO_LARGE = ("too_large", 2, "a request is larger than the daemon takes", No, "a shorter message, or files in the working folder"),
    RATE_LIMITED = ("rate_limited", 9, "too many refused tokens, watchers or messages in the queue", No, "the same later"),
    WOULD_RESEED = ("would_reseed", 5, "the session cannot be resumed, and `--no-reseed` was given", No, "rejoin explain --next"),
    ENVELOPE = ("envelope", 5, "the agent cannot be held to the permissions asked for", No, "rejoin send --help"),
    NOT_OPENED = ("not_opened", 5, "the agent's session cannot be handed to its terminal interface; the reason is named", No, "rejoin explain --next"),
    UNTRUSTED = ("untrusted", 5, "a repository's `rejoin.toml` sets what only you may", No, "rejoin trust"),
    UNAVAILABLE = ("unavailable", 6, "the store or a file of rejoin cannot be used", IfAccepted, "rejoin doctor"),
    DAMAGED = ("damaged", 11, "`snapshot verify` found snapshots that are not what was kept; they are named", No, "rejoin snapshot verify --read-data"),
    BAD_ARCHIVE = ("bad_archive", 11, "an archive is damaged, cut short, or holds what it must not; nothing of it was taken", No, "rejoin export CONV, once more where it came from"),
    CANCELLED = ("cancelled", 130, "interrupted before the turn began", No, "rejoin list"),
    INTERNAL = ("internal", 1, "a defect of rejoin", IfAccepted, "rejoin doctor"),
}

codes! { TURNS:
    REFUSED = ("refused", 1, "the agent refused the session, and a tool had run: nothing is done twice", Unanswered, Class::Refused.advice()),
    TRANSIENT = ("transient", 1, "network, overload, an error of the server", Unanswered, Class::Transient.advice()),
    QUOTA = ("quota", 9, "quota or rate limit", Unanswered, Class::Quota.advice()),
    AUTH = ("auth", 8, "login or key missing or refused", Unanswered, Class::Auth.advice()),
    CONTEXT_OVERFLOW = ("context_overflow", 1, "the conversation did not fit the model; the next turn tells a shorter record", Unanswered, Class::ContextOverflow.advice()),
    POISONED = ("poisoned", 1, "the API refuses the session's history as such; the next turn does not use it", Unanswered, Class::Poisoned.advice()),
    INVALID_REQUEST = ("invalid_request", 1, "the API refused this request", Unanswered, Class::InvalidRequest.advice()),
    INTERRUPTED = ("interrupted", 130, "the agent was interrupted", Unanswered, Class::Interrupted.advice()),
    CRASHED = ("crashed", 1, "the agent ended without an answer", Unanswered, Class::Crashed.advice()),
    DISK_FULL = ("disk_full", 1, "no space left while it ran", Unanswered, Class::DiskFull.advice()),
    NOT_RECORDED = ("not_recorded", 1, "it answered, but in another session than the one it was given", Unanswered, Class::NotRecorded.advice()),
    TIME_LIMIT = ("time_limit", 124, "stopped by `--timeout`", Unanswered, Class::TimeLimit.advice()),
    IDLE_LIMIT = ("idle_limit", 124, "stopped by `--idle-timeout`: the agent printed nothing for too long", Unanswered, Class::IdleLimit.advice()),
    COST_LIMIT = ("cost_limit", 124, "stopped by `--max-cost`", Unanswered, Class::CostLimit.advice()),
    NOT_STARTED = ("not_started", 1, "the agent could not be started", Unanswered, Class::NotStarted.advice()),
    TURN_WOULD_RESEED = ("would_reseed", 5, "held back by `--no-reseed`", No, Class::WouldReseed.advice()),
    TURN_ENVELOPE = ("envelope", 5, "the agent itself refused the permissions it was started with", Unanswered, Class::Envelope.advice()),
    TURN_IN_USE = ("in_use", 4, "the agent itself says that its session is open elsewhere", Unanswered, Class::InUse.advice()),
    LOST = ("lost", 1, "its process is gone and nothing says how it ended", Unanswered, Class::Lost.advice()),
    UNKNOWN = ("unknown", 1, "it failed in a way nobody has seen yet", Unanswered, Class::Unknown.advice()),
}

/// The row of a word that came over HTTP.
pub fn of_word(word: &str) -> Option<&'static Code> {
    let all = COMMANDS.iter().chain(TURNS);
    all.into_iter().find(|code| code.word == word)
}

/// The row of a turn's error.
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
        Class::Envelope => &TURN_ENVELOPE,
        Class::InUse => &TURN_IN_USE,
        Class::Lost => &LOST,
        Class::Unknown => &UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    fn page() -> String {
        let mut page = String::from(
            "# Errors\n\n\
            <!-- Made from crates/rejoin-runner/src/failure/codes.rs: REGENERATE=1 cargo test -p rejoin-runner errors -->\n\n\
            Every error is one sentence on stderr, with a command to try; with `--json` it is\n\
            `{\"error\":{\"code\",\"message\",\"try\"}}` on stdout. The exit code says the same to a script.\n",
        );
        let tables = [
            (
                "Commands",
                "code",
                "Nothing ran, or nothing that could answer.",
                COMMANDS,
            ),
            (
                "Turns",
                "class",
                "The turn ran, or was held back; it is printed with `\"error\":{\"class\",\"message\",\"try\"}`.",
                TURNS,
            ),
        ];
        for (title, head, intro, rows) in tables {
            let _ = write!(
                page,
                "\n## {title}\n\n{intro}\n\n| {head} | exit | when | the message | try |\n|---|--:|---|---|---|\n"
            );
            for row in rows {
                let Code {
                    word,
                    exit,
                    when,
                    kept,
                    next,
                } = row;
                let _ = writeln!(
                    page,
                    "| `{word}` | {exit} | {when} | {} | `{next}` |",
                    kept.words()
                );
            }
        }
        page.push_str("\nOther exit codes: 0 done · 7 a person is needed · 10 answered but not saved (`--must-save`) · 130 and 143 interrupted.\n");
        page
    }

    #[test]
    fn docs_errors_md_is_this_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/errors.md");
        if std::env::var_os("REGENERATE").is_some() {
            fs_err::write(path, page()).unwrap();
        }
        let found = fs_err::read_to_string(path).unwrap_or_default();
        assert!(
            found == page(),
            "docs/errors.md is out of date; run: REGENERATE=1 cargo test -p rejoin-runner errors"
        );
    }

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

    /// No command of today leaves such a turn: `send` takes it back and says so itself.
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
