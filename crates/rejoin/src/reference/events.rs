//! `docs/events.md`: every event type, with a sample of its JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use rejoin_core::{Context, Counts, EventBody, MessageId, QuestionId, StoredEvent, TurnId, Usage};
use rejoin_core::{ConversationId, EventBody as Event};
use serde_json::json;

const INTRO: &str = "\
Everything that happens in a turn is an event. Events look the same for all agents. rejoin commits each one to the store
before it shows it, so a reader that reconnects misses nothing.

You see them with `rejoin send --stream` and `rejoin watch --stream` (one JSON document per line), and over HTTP as server-sent
events: `GET /api/conversations/{id}/events`, `GET /api/events`, or `POST /api/send` with `Accept: text/event-stream`.
The SSE field `id` is the number `seq`, `event` is the type, `data` is the JSON. `Last-Event-ID` (or `?after=N`) replays
from there; `0` replays from the beginning.

Every event has these fields beside its own:

| field | |
|---|---|
| `seq` | number of the event, one sequence for the whole store, increasing |
| `conversation_id` | |
| `turn_id` | null for events of the conversation as a whole (`history.changed`) |
| `at` | time, RFC 3339 |
| `type` | one of the types below |

Readers must ignore types and fields that they do not know: new ones may be added, none is renamed.
";

/// Returns the text of the page.
pub(super) fn page() -> String {
    let mut text = super::head("Event types") + INTRO;
    let samples = samples();
    text.push_str("\n| type | when |\n|---|---|\n");
    for sample in &samples {
        let kind = sample.kind();
        let anchor = kind.replace('.', "");
        let _infallible = writeln!(text, "| [`{kind}`](#{anchor}) | {} |", when(sample).0);
    }
    for sample in &samples {
        let (when, more) = when(sample);
        let kind = sample.kind();
        let body = serde_json::to_string(sample).unwrap_or_default();
        let _infallible = write!(text, "\n## {kind}\n\n{when}.");
        if !more.is_empty() {
            let _infallible = write!(text, " {more}");
        }
        let _infallible = writeln!(text, "\n\n```json\n{body}\n```");
    }
    text.push_str("\n## A whole event\n\n```json\n");
    text.push_str(&serde_json::to_string(&whole()).unwrap_or_default());
    text.push_str("\n```\n");
    text
}

fn whole() -> StoredEvent {
    StoredEvent {
        seq: 4217,
        conversation_id: ConversationId::nil(),
        turn_id: Some(TurnId::nil()),
        at: "2026-01-05T09:30:00.125Z".into(),
        body: Event::Text {
            text: "The test passes now.".into(),
            parent_tool: None,
        },
    }
}

/// Returns when an event is written, and details for its own section.
fn when(event: &EventBody) -> (&'static str, &'static str) {
    match event {
        Event::TurnAccepted { .. } => (
            "A message was stored, with a turn to answer it",
            "The turn runs at once, or waits in the queue of its conversation.",
        ),
        Event::TurnDecided { .. } => (
            "rejoin decided how to continue the conversation",
            "`verdict` and `reason`: [reasons.md](reasons.md). `checks` lists every check with its evidence. `sent` \
             counts the messages that the session holds already (`resumed`), and those sent with this turn. A turn whose \
             resume the agent refused has two of these events.",
        ),
        Event::TurnStarted { .. } => (
            "The agent's process reported that it is up",
            "Fields that the agent does not report are null or empty.",
        ),
        Event::TurnEnded { .. } => (
            "The turn is over; no other event of the turn follows",
            "`status` is `succeeded`, `failed`, `cancelled` or `lost`. `summary` is the verdict line.",
        ),
        Event::TextDelta { .. } => (
            "A piece of the answer arrived",
            "The complete text follows in a `text` event. Agents that do not stream write none.",
        ),
        Event::Text { .. } => (
            "A complete part of the answer",
            "`parent_tool` is set for the text of a sub-agent, which is not part of the answer.",
        ),
        Event::Thinking { .. } => ("The agent reported its reasoning", ""),
        Event::ToolCall { .. } => (
            "The agent called a tool",
            "`tool` and `input` are the agent's own names. `kind` is the same for every agent: `read`, `search`, `edit`, \
             `run`, `web`, `agent` or `other`. `subject` is the command, file, pattern or address on one line. `id` links \
             the call to its result.",
        ),
        Event::ToolResult { .. } => (
            "A tool call ended",
            "`text` is the output, shortened if it is long. `exit_code` is that of a command; only Codex and Claude Code \
             report it, the latter if it is not 0.",
        ),
        Event::FileChanged { .. } => ("A tool changed a file", ""),
        Event::Question { .. } => (
            "The agent asked a person; the turn waits",
            "Answer with `question_id`: `rejoin answer`, or `POST /api/turns/{id}/answer`. Without a `question_id` the \
             agent asked in a mode in which it cannot wait. See [questions.md](questions.md).",
        ),
        Event::Approval { .. } => (
            "The agent asked for permission to call a tool; the turn waits",
            "Answer as a question.",
        ),
        Event::Answered { .. } => (
            "A question or an approval was answered",
            "`by` names the person's user or token.",
        ),
        Event::Escalation { .. } => (
            "The agent of a tier asked for a higher one, or a person climbed",
            "`decision` is `climbed`, `refused`, or `none` if the turn does not climb by itself. `next_turn_id` is the turn \
             that the climb began. See [tiers.md](tiers.md).",
        ),
        Event::Todo { .. } => (
            "The agent changed its list of tasks",
            "`items` is the whole list, in the agent's own form.",
        ),
        Event::Usage { .. } => (
            "The agent reported tokens",
            "Counts that the agent did not report are null. `context` is the size of the conversation and of the model's \
             window.",
        ),
        Event::Compacted { .. } => (
            "The agent shortened its own session to a summary",
            "`before` and `after` are tokens, or null.",
        ),
        Event::Notice { .. } => (
            "rejoin or the agent reports something that is not part of the answer",
            "`level` is `info` or `warning`.",
        ),
        Event::HistoryChanged { .. } => (
            "Somebody edited, truncated, merged, reset or restored the history",
            "`affected` lists the agents with a session: whether it can still be resumed, and the reason if not. \
             `message_id` is the changed message; `removed` and `restored` list messages that left the history or are in \
             it again. `turn_id` of this event is null.",
        ),
        Event::ConversationCreated { .. } => (
            "A conversation was created: by its first message, empty, forked, adopted or imported",
            "`parent_id` is set for a fork. `turn_id` is null.",
        ),
        Event::ConversationChanged { .. } => (
            "Settings of a conversation changed",
            "`fields` names them: `title`, `key`, `agent`, `workdir`, `permission`, `scope`, `fresh`, `continue`, \
             `settings` (model and tools of an agent), `archived`, `merged_into` (this conversation is part of another \
             one now, or no longer), `seen`. `turn_id` is null.",
        ),
        Event::ConversationDeleted {} => (
            "A conversation was deleted with all its events",
            "Only streams of all conversations contain this event. `turn_id` is null.",
        ),
        Event::Raw { .. } => (
            "The agent printed a line that rejoin does not know",
            "The line is unchanged. New releases of a CLI cause these.",
        ),
    }
}

/// Returns one event of every type, in the order of the page.
fn samples() -> Vec<EventBody> {
    let question = Some(QuestionId::nil());
    let text = |text: &str| text.to_owned();
    let counts = Counts {
        input: Some(310),
        cache_read: Some(14_200),
        cache_write: None,
        output: Some(212),
    };
    vec![
        Event::TurnAccepted {
            message_id: MessageId::nil(),
        },
        Event::TurnDecided {
            verdict: text("resumed"),
            reason: None,
            checks: json!([{"check": "history", "ok": true, "evidence": "seen through message 4 of 5"}]),
            sent: json!({"resumed": 4, "caught_up": 0, "transcribed": 0, "left_out": 0, "bytes": 118}),
        },
        Event::TurnStarted {
            session_id: Some(text("5ba2cd4e-…")),
            model: Some(text("claude-sonnet-4-5")),
            version: Some(text("2.1.325")),
            tools: vec![text("Read"), text("Edit")],
            permission: Some(text("acceptEdits")),
        },
        Event::TextDelta {
            text: text("The test "),
        },
        Event::Text {
            text: text("The test passes now."),
            parent_tool: None,
        },
        Event::Thinking {
            text: text("The assertion compares the wrong field."),
        },
        Event::ToolCall {
            id: text("toolu_01"),
            tool: text("Bash"),
            input: json!({"command": "cargo test"}),
            parent_tool: None,
            kind: Some(rejoin_core::ToolKind::Run),
            subject: Some(text("cargo test")),
        },
        Event::ToolResult {
            id: text("toolu_01"),
            is_error: false,
            text: text("test result: ok. 12 passed"),
            exit_code: Some(0),
        },
        Event::FileChanged {
            path: text("src/lib.rs"),
            tool: text("Edit"),
        },
        Event::Question {
            id: text("toolu_02"),
            question_id: question,
            questions: json!([{"id": "q0", "text": "Which port?", "options": [{"label": "8080"}, {"label": "9090"}], "multi": false}]),
        },
        Event::Approval {
            id: text("toolu_03"),
            question_id: question,
            tool: text("Bash"),
            input: json!({"command": "rm -r build"}),
        },
        Event::Answered {
            id: text("toolu_03"),
            question_id: question,
            decision: text("allow"),
            message: None,
            answers: BTreeMap::new(),
            by: Some(text("ada")),
        },
        Event::Escalation {
            requested: Some("remediate".into()),
            reason: "the database is down".into(),
            decision: "climbed".into(),
            checks: json!([{"check": "known_tier", "ok": true, "evidence": "`remediate` is a tier"}]),
            next_turn_id: Some(TurnId::nil()),
        },
        Event::Todo {
            items: json!([{"content": "fix the test", "status": "in_progress"}]),
        },
        Event::Usage {
            usage: Usage::from(counts),
            context: Some(Context {
                used: 14_722,
                window: 200_000,
            }),
        },
        Event::Compacted {
            trigger: text("auto"),
            before: Some(168_000),
            after: Some(21_000),
        },
        Event::Notice {
            level: text("warning"),
            message: text("the agent left a process running; it was ended"),
        },
        Event::HistoryChanged {
            change: text("edit"),
            affected: json!([{"agent": "claude", "usable": false, "was_usable": true, "reason": "history_changed", "epoch": 2}]),
            message_id: Some(rejoin_core::MessageId::nil()),
            removed: vec![],
            restored: vec![],
        },
        Event::ConversationCreated { parent_id: None },
        Event::changed(["title"]),
        Event::ConversationDeleted {},
        Event::Raw {
            line: text("{\"type\":\"new_in_the_next_release\"}"),
        },
        Event::TurnEnded {
            status: text("succeeded"),
            summary: text("rejoin: resumed, knows all 4 messages · tmqx:6 · claude sonnet"),
        },
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// A new event type needs a sample: the page lists all of them.
    #[test]
    fn every_type_has_one_sample() {
        let samples = samples();
        let kinds: BTreeSet<&str> = samples.iter().map(EventBody::kind).collect();
        assert_eq!(kinds.len(), samples.len());
        assert_eq!(kinds, EventBody::KINDS.iter().copied().collect());
    }
}
