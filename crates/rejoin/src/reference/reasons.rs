//! `docs/reasons.md`: verdicts and reason codes, with causes and remedies.

use std::fmt::Write as _;

use rejoin_core::{Reason, Verdict};

const INTRO: &str = "\
Every turn has a verdict: how the agent came to know the conversation. A turn that did not resume the agent's own session
also has a reason code. Both are in the verdict line, in `rejoin explain`, in the turn's JSON (`verdict`, `reason`, `checks`)
and in the event `turn.decided`.

`rejoin explain CONV` shows the last turn with every check and its evidence; `rejoin explain CONV --next` predicts the next.
`rejoin send --no-reseed` refuses to run (exit 5, `would_reseed`) where the turn would start a new session.
";

const REASONS_INTRO: &str = "\
rejoin checks the conditions in this order. The first that fails is the reason; all of them are evaluated and kept.
Whatever the reason, the model receives every message in scope exactly once: as its own session, or as a transcript.
";

/// Explanation of a reason code.
struct Text {
    /// Condition under which a turn has this reason, as one sentence without its end.
    meaning: &'static str,
    /// Usual causes.
    causes: &'static str,
    /// Steps that avoid it, or bring the session back.
    remedy: &'static str,
}

/// Returns the text of the page.
pub(super) fn page() -> String {
    let mut text = super::head("Verdicts and reason codes") + INTRO;
    text.push_str("\n## Verdicts\n\n| verdict | what happened |\n|---|---|\n");
    for verdict in Verdict::ALL {
        let _infallible = writeln!(text, "| `{verdict}` | {} |", verdict_text(*verdict));
    }
    let _infallible = write!(text, "\n## Reason codes\n\n{REASONS_INTRO}");
    text.push_str("\n| code | meaning |\n|---|---|\n");
    for reason in Reason::ALL {
        let meaning = reason_text(*reason).meaning;
        let _infallible = writeln!(text, "| [`{reason}`](#{reason}) | {meaning} |");
    }
    for reason in Reason::ALL {
        let Text {
            meaning,
            causes,
            remedy,
        } = reason_text(*reason);
        let _infallible = write!(
            text,
            "\n### {reason}\n\n{meaning}.\n\n- **Cause.** {causes}\n- **Remedy.** {remedy}\n"
        );
    }
    text
}

fn verdict_text(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Started => "A new session: nothing preceded the message.",
        Verdict::Live => {
            "The process of the previous turn was still running in a daemon and took the message."
        }
        Verdict::Resumed => {
            "The agent resumed its own session, which was compared to the byte with the confirmed one. Only new messages were sent."
        }
        Verdict::Restored => {
            "The agent's session was missing or damaged. rejoin put it back from a verified snapshot, then resumed it."
        }
        Verdict::Reseeded => {
            "A new session that received the transcript. The reason code says why the old one was not used."
        }
    }
}

#[expect(clippy::too_many_lines, reason = "one arm for each code")]
fn reason_text(reason: Reason) -> Text {
    let (meaning, causes, remedy) = match reason {
        Reason::FirstTurn => (
            "The conversation has no answer yet",
            "The first message of a conversation (`started`), or one after messages that were never answered (`reseeded`: they are sent along).",
            "None needed.",
        ),
        Reason::FreshRequested => (
            "The request or a setting asked for a new session",
            "`--fresh-session`, `rejoin retry`, `[agents.NAME] resume = false`, or a conversation set to start fresh.",
            "Leave the flag out; `rejoin set CONV` shows and changes the settings of a conversation.",
        ),
        Reason::NoCapability => (
            "This build of the agent's CLI is not known to resume a session",
            "The proof failed for this binary, or a described agent has no resume command.",
            "`rejoin doctor --prove AGENT` shows the row that failed. Install another version of the CLI.",
        ),
        Reason::NoSession => (
            "The agent has no session of this conversation",
            "The agent joins a conversation that other agents have held so far, or its first turn failed.",
            "None needed: the next turn of the same agent resumes.",
        ),
        Reason::SessionRetired => (
            "The session is no longer used",
            "It failed `[resume] breaker` times in a row (default 2), the model's API rejected its content, or `rejoin reset` retired it.",
            "`rejoin explain CONV --raw` names the reason. The conversation continues in the new session.",
        ),
        Reason::HistoryChanged => (
            "The history changed after the session had seen it",
            "`edit`, `truncate`, `retry` or `merge` changed a message that the session holds, or scope `agent` moved its boundary.",
            "`rejoin undo CONV` takes the change back; the old session is usable again.",
        ),
        Reason::OtherFolder => (
            "The working folder is a different one",
            "The folder was given with `-w`, or was copied, and is not the same place in a checkout of the same repository.",
            "Send from the old folder, or allow the move with `--relocate`.",
        ),
        Reason::OtherRuntime => (
            "A different program, or an older version, than the one that wrote the session",
            "A downgrade of the CLI, or a fork of it under the same name.",
            "Install the version that the check names, or a newer one.",
        ),
        Reason::OtherProvider => (
            "The session belongs to a model provider that is not configured here",
            "Codex and OpenCode store the provider in the session; this machine's configuration lacks it.",
            "Configure the provider for the agent's CLI.",
        ),
        Reason::ContextFull => (
            "The session fills the model's context window beyond the threshold",
            "A long conversation. The threshold is `[resume] context_threshold` (default 0.80) of the window of the model that will run.",
            "None needed: the new session receives a transcript that fits. Raise the threshold, or set `[models.NAME] window` if the window is wrong.",
        ),
        Reason::SessionMissing => (
            "The session's files are not on this machine and there is no snapshot of them",
            "The CLI's home was deleted or is another one (container, `HOME`), and snapshots are off or could not be stored.",
            "Keep snapshots on (`[snapshots] enabled`); with containers use a shared store or `--bundle`: [portable.md](portable.md).",
        ),
        Reason::InUse => (
            "Another process is writing the session",
            "The session is open in the agent's own terminal interface, or another program resumed it.",
            "Close it. The turn waits, or is refused with exit 4 (`--if-busy fail`); it never continues behind that process's back.",
        ),
        Reason::SessionDirty => (
            "An earlier turn left something in the session that could not be removed",
            "A turn failed, was cancelled or was lost, and the session could not be cut back to its confirmed bytes.",
            "None needed: the new session receives the transcript, with the unanswered message marked. `rejoin doctor --prove AGENT` shows whether cutting back works with this version.",
        ),
        Reason::SessionDamaged => (
            "The session's files are shorter than confirmed, or have other bytes",
            "A program rewrote, truncated or replaced the file, or a disk failed.",
            "`rejoin snapshot list CONV` shows whether a snapshot exists; with one the turn is `restored` instead.",
        ),
        Reason::SessionChanged => (
            "The session was continued outside of rejoin in a way that cannot be read",
            "The CLI was used by hand and left lines that rejoin does not understand, or an incomplete tool call.",
            "None needed: messages that could be read are in the history. Messages added by hand normally become part of the history, and the session is resumed.",
        ),
        Reason::ModelChanged => (
            "The turn uses another model, and the configuration asks for a new session then",
            "`[resume] model_change = \"reseed\"`.",
            "Set it to `\"resume\"` (the default), or use the session's model.",
        ),
        Reason::Compacted => (
            "The agent compacted the session, and the configuration asks for a new session then",
            "`[resume] after_compaction = \"reseed\"`.",
            "Set it to `\"resume\"` (the default) to continue from the agent's own summary.",
        ),
        Reason::SnapshotDamaged => (
            "The session is gone and its snapshot does not match its hashes",
            "The database or the object store lost or changed data.",
            "`rejoin snapshot verify` lists the damage. Check the disk or the bucket.",
        ),
        Reason::SnapshotExpired => (
            "The session is gone and its snapshot was removed by retention",
            "`[snapshots] keep_older`, or `rejoin sweep`.",
            "Keep snapshots for longer: `[snapshots] keep_latest`, `keep_older`.",
        ),
        Reason::Rejected => (
            "The agent's CLI refused the session when it started",
            "A new release of the CLI changed its session format, or the CLI keeps an index that does not know the session.",
            "None needed: rejoin retried once with the transcript; no tool had run. `rejoin doctor --prove AGENT` tests the CLI.",
        ),
    };
    Text {
        meaning,
        causes,
        remedy,
    }
}
