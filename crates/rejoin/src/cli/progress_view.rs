//! A turn as it happens: on a terminal the text as it streams, one line per tool call, a spinner with
//! the elapsed time; as JSON lines with `--stream`; nothing when piped.

mod limits;
mod open_tool;

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use rejoin_core::{EventBody, StoredEvent, TurnId, TurnStatus};
use rejoin_hub::rfc3339;
use rejoin_store::EventRow;
use serde_json::Value;

use crate::app::App;
use crate::output::{Output, one_line, safe};
use limits::OutputLimits;
use open_tool::OpenTool;
use rejoin_errors::Result;

/// How often the spinner turns, and rows of another process are looked for.
const TICK: Duration = Duration::from_millis(100);
/// Turns of the spinner after which a turn that has not begun is looked at.
const LOOK_AT_QUEUE: usize = 5;

/// Shows the events of a turn, each once, only after they are committed.
pub(super) struct View {
    out: Output,
    kind: Kind,
    /// The last event shown.
    after: i64,
    begin: Instant,
    /// Text of the block that is streaming was shown already.
    streamed: bool,
    /// The cursor stands in the middle of a line of text.
    mid_line: bool,
    tools: BTreeMap<String, OpenTool>,
    limits: OutputLimits,
    /// The conversation, once there is something to say of it.
    name: String,
    turned: usize,
    /// Words beside the spinner while no tool runs, and the time since which they hold.
    doing: Option<(String, Instant)>,
    /// The turn has begun.
    decided: bool,
    /// The spinner stands on the line the cursor is in.
    spinning: bool,
    /// Set while a person types in the line of the cursor.
    held: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Nothing,
    JsonLines,
    Live,
}

impl View {
    pub(super) fn of(out: Output, stream: bool) -> Self {
        let kind = match (stream, out.live()) {
            (true, _) => Kind::JsonLines,
            (false, true) => Kind::Live,
            (false, false) => Kind::Nothing,
        };
        Self {
            out,
            kind,
            after: 0,
            begin: Instant::now(),
            streamed: false,
            mid_line: false,
            tools: BTreeMap::new(),
            limits: OutputLimits::new(),
            name: String::new(),
            turned: 0,
            doing: None,
            decided: false,
            spinning: false,
            held: false,
        }
    }

    /// Leaves the line to whoever types in it.
    pub(super) fn hold(&mut self, held: bool) {
        if held && !self.held {
            self.end_line();
            self.clear();
        }
        self.held = held;
    }

    pub(super) fn wants_events(&self) -> bool {
        self.kind != Kind::Nothing
    }

    /// Resolves when it is time to look again.
    pub(super) async fn tick(&self) {
        match self.kind {
            Kind::Nothing => std::future::pending().await,
            Kind::JsonLines | Kind::Live => tokio::time::sleep(TICK).await,
        }
    }

    /// Shows what has been committed since the last time.
    pub(super) async fn show(&mut self, app: &App, turn: TurnId) -> Result<()> {
        if self.kind == Kind::Nothing {
            return Ok(());
        }
        loop {
            let rows = app
                .hub()
                .store
                .read()
                .await?
                .events()
                .of_turn(turn, self.after, 256)
                .await?;
            let Some(last) = rows.last() else { break };
            self.after = last.seq;
            for row in rows {
                self.row(row);
            }
        }
        if self.name.is_empty() && self.limits.hidden().is_some() {
            let handle = app.hub().turn_view(turn).await?.handle;
            self.called(&handle);
        }
        if !self.decided && self.turned % LOOK_AT_QUEUE == LOOK_AT_QUEUE - 1 {
            let view = app.hub().turn_view(turn).await?;
            self.queued(&view.handle, &view.status);
        }
        self.spin();
        Ok(())
    }

    /// How people call the turn.
    pub(super) fn called(&mut self, handle: &str) {
        let name = handle.split(':').next().unwrap_or_default();
        name.clone_into(&mut self.name);
    }

    /// Shows an event that a daemon told of, as it was written there.
    pub(super) fn told(&mut self, json: &str) {
        match (self.kind, serde_json::from_str::<StoredEvent>(json)) {
            (Kind::JsonLines, Ok(event)) => self.out.json(&event),
            // Of a newer daemon: whoever reads it ignores what it does not know.
            (Kind::JsonLines, Err(_)) => {
                if let Ok(event) = serde_json::from_str::<Value>(json) {
                    self.out.json(&event);
                }
            }
            (Kind::Live, Ok(event)) => {
                let at = event.at.parse::<jiff::Timestamp>();
                self.line(&event.body, at.map_or(0, jiff::Timestamp::as_microsecond));
            }
            (Kind::Nothing, _) | (Kind::Live, Err(_)) => {}
        }
    }

    /// Something is going on, and for how long.
    pub(super) fn spin(&mut self) {
        if self.kind == Kind::Live && !self.mid_line && !self.held {
            self.turned += 1;
            self.spinning = true;
            let (words, since) = self.activity();
            let room = self.out.width().saturating_sub(10);
            spin(self.turned, &one_line(&words, room), since);
        }
    }

    /// Shows that a turn in this state waits for another one.
    pub(super) fn queued(&mut self, handle: &str, status: &str) {
        let name = handle.split(':').next().unwrap_or_default();
        let waits = status == TurnStatus::Queued.as_str();
        self.doing(waits.then(|| format!("waiting for another turn of {name}")));
    }

    /// Sets the words beside the spinner.
    fn doing(&mut self, words: Option<String>) {
        let same = self.doing.as_ref().map(|(now, _)| now) == words.as_ref();
        if !same {
            self.doing = words.map(|words| (words, Instant::now()));
        }
    }

    /// Returns what is going on, and for how long: the tool call that began last, or the words that
    /// were set.
    fn activity(&self) -> (String, Duration) {
        if let Some(tool) = self.tools.values().max_by_key(|tool| tool.since) {
            return (tool.what.clone(), tool.begun.elapsed());
        }
        match &self.doing {
            Some((words, since)) => (words.clone(), since.elapsed()),
            None => (String::new(), self.begin.elapsed()),
        }
    }

    /// Leaves the terminal as it should be.
    pub(super) fn close(&mut self) {
        if self.kind == Kind::Live {
            self.end_line();
            self.clear();
            if let Some(hidden) = self.limits.hidden() {
                let all = format!("rejoin show {} | less", self.name);
                self.out.note(&format!(
                    "  {hidden} more, not shown here; all of it: {all}"
                ));
            }
        }
    }

    fn row(&mut self, row: EventRow) {
        match self.kind {
            Kind::Live => self.line(&row.body, row.at),
            Kind::JsonLines | Kind::Nothing => self.out.json(&StoredEvent {
                seq: row.seq,
                conversation_id: row.conversation,
                turn_id: (!row.turn.is_nil()).then_some(row.turn),
                at: rfc3339(row.at),
                body: row.body.described(),
            }),
        }
    }

    /// `at`: when it happened, in microseconds.
    fn line(&mut self, body: &EventBody, at: i64) {
        match body {
            EventBody::TextDelta { text } => {
                self.streamed = true;
                self.write(text);
            }
            EventBody::Text {
                text,
                parent_tool: None,
            } => {
                if !std::mem::take(&mut self.streamed) {
                    self.write(text);
                }
                self.end_line();
            }
            EventBody::ToolCall {
                id, tool, input, ..
            } => {
                let what = one_line(&format!("{tool} {}", subject(input)), 60);
                self.tools.insert(id.clone(), OpenTool::new(what, at));
            }
            EventBody::Approval { id, .. } => {
                if let Some(tool) = self.tools.get_mut(id) {
                    tool.asked = Some(at);
                }
            }
            EventBody::Answered { id, decision, .. } => {
                if let Some(tool) = self.tools.get_mut(id) {
                    tool.answered(decision, at);
                }
            }
            EventBody::ToolResult { id, is_error, .. } => {
                if let Some(tool) = self.tools.remove(id) {
                    self.remark(&tool.result(*is_error, at));
                }
            }
            // Not into the line that somebody types in.
            EventBody::Notice { level, .. } if self.held && level == "info" => {}
            EventBody::Notice { message, .. } => {
                self.remark(&format!("  {}", one_line(message, 76)));
            }
            EventBody::Escalation {
                requested,
                decision,
                ..
            } => {
                let to = requested.as_deref().unwrap_or("the next tier");
                self.remark(&format!("  asks for {}: {decision}", one_line(to, 40)));
            }
            EventBody::Compacted { .. } => self.remark("  the agent compacted its session"),
            EventBody::TurnDecided { .. } => {
                self.decided = true;
                self.doing(None);
            }
            EventBody::TurnAccepted { .. }
            | EventBody::TurnStarted { .. }
            | EventBody::TurnEnded { .. }
            | EventBody::Text { .. }
            | EventBody::Thinking { .. }
            | EventBody::FileChanged { .. }
            | EventBody::Question { .. }
            | EventBody::Todo { .. }
            | EventBody::Usage { .. }
            | EventBody::HistoryChanged { .. }
            | EventBody::ConversationCreated { .. }
            | EventBody::ConversationChanged { .. }
            | EventBody::ConversationDeleted {}
            | EventBody::Raw { .. } => {}
        }
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.spinning) {
            stop_spin();
        }
    }

    fn write(&mut self, text: &str) {
        if self.limits.full() {
            // Only counted.
            self.limits.text(text);
            return;
        }
        self.clear();
        let shown = self.limits.text(&safe(text));
        part(&shown);
        self.mid_line = !text.ends_with('\n');
        if self.limits.full() {
            // The rest comes unseen: the spinner shows that something does.
            self.end_line();
        }
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.mid_line) {
            let cut = self.limits.end_line();
            part(&format!("{cut}\n"));
        }
    }

    fn remark(&mut self, text: &str) {
        if !self.limits.remark() {
            return;
        }
        self.end_line();
        self.clear();
        self.out.note(text);
    }
}

/// The subject of a tool call, in a few words.
fn subject(input: &Value) -> String {
    let known = [
        "command",
        "file_path",
        "path",
        "pattern",
        "url",
        "query",
        "description",
    ];
    let found = known.iter().find_map(|key| input[key].as_str());
    found.unwrap_or_default().to_owned()
}

impl Output {
    /// Returns true if progress is shown to a person as it happens.
    pub(super) fn live(self) -> bool {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        !self.json
            && !self.quiet
            && !dumb
            && std::io::stdout().is_terminal()
            && std::io::stderr().is_terminal()
    }
}

/// Safe text that goes on where the last piece ended.
fn part(text: &str) {
    let mut out = std::io::stdout().lock();
    let _gone = write!(out, "{text}").and_then(|()| out.flush());
}

/// Overwrites the line with a spinner, words and the elapsed time.
pub(super) fn spin(turned: usize, words: &str, elapsed: Duration) {
    const FACES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
    let face = FACES[turned % FACES.len()];
    let mut err = std::io::stderr().lock();
    let words = match words {
        "" => String::new(),
        _ => format!("{} · ", safe(words)),
    };
    let seconds = elapsed.as_secs();
    let _gone = write!(err, "\r\x1b[K{face} {words}{seconds}s ").and_then(|()| err.flush());
}

pub(super) fn stop_spin() {
    let mut err = std::io::stderr().lock();
    let _gone = write!(err, "\r\x1b[K").and_then(|()| err.flush());
}
