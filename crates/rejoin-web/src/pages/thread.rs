//! A conversation as blocks: a message of a person, and how the agent continued and answered.

use std::collections::HashMap;

use rejoin_core::{MessageState, Role, TurnId};
use rejoin_hub::{MessageView, TurnView, WholeView};

use super::format::{count, money, took, when};
use super::html::{Html, cut, escape, plain};
use super::list::first;
use super::markdown;
use super::question::{self, QuestionForm};
use super::tools::{Block, Progress, of_notes};

/// Longer messages are cut on the page of their conversation, in bytes.
const LONG: usize = 12 << 10;
/// Bytes of a long message that are shown.
const SHOWN: usize = 3 << 10;

/// Message of a person.
pub(super) struct Ask {
    pub(super) seq: Option<i64>,
    pub(super) to: String,
    pub(super) html: Html,
    pub(super) long: Option<String>,
    pub(super) tags: Vec<&'static str>,
    pub(super) when: Html,
    pub(super) removed: bool,
}

/// How a turn was continued, as its mark and words.
#[derive(Clone)]
pub(super) struct Chip {
    pub(super) mark: String,
    pub(super) words: String,
}

/// Failure of a turn, and the next step.
pub(super) struct FailBox {
    pub(super) text: String,
    pub(super) step: String,
    pub(super) retry: bool,
}

/// Answer, or the state of the turn that has none yet.
pub(super) struct Reply {
    pub(super) seq: Option<i64>,
    pub(super) agent: String,
    pub(super) model: String,
    pub(super) chip: Option<Chip>,
    pub(super) blocks: Vec<Block>,
    pub(super) partial: String,
    pub(super) long: Option<String>,
    pub(super) figures: Vec<(&'static str, String)>,
    pub(super) when: Html,
    pub(super) running: bool,
    pub(super) failed: Option<FailBox>,
    pub(super) questions: Vec<QuestionForm>,
    pub(super) tags: Vec<&'static str>,
}

/// Message, turn and answer.
pub(super) struct TurnBlock {
    pub(super) key: String,
    pub(super) turn: String,
    pub(super) class: String,
    pub(super) ask: Option<Ask>,
    pub(super) reply: Option<Reply>,
    pub(super) queued: bool,
    /// Number of the last event that the block contains.
    pub(super) seq: i64,
    pub(super) todo: Vec<(&'static str, String)>,
}

/// Builds the blocks of a page. `progress` has the events of turns that are shown step by step.
pub(super) fn blocks(
    whole: &WholeView,
    progress: &mut HashMap<TurnId, Progress>,
    now: i64,
    may_send: bool,
) -> Vec<TurnBlock> {
    let turns: HashMap<TurnId, &TurnView> = whole
        .turns
        .iter()
        .map(|turn| (turn.turn_id, turn))
        .collect();
    let mut blocks: Vec<TurnBlock> = vec![];
    for message in &whole.messages {
        let turn = message.turn_id.and_then(|id| turns.get(&id).copied());
        match message.role {
            Role::User => blocks.push(asked(message, turn, now)),
            Role::Assistant => {
                let joins = blocks.last().is_some_and(|block| {
                    block.reply.is_none()
                        && !block.turn.is_empty()
                        && Some(block.turn.as_str())
                            == message.turn_id.map(|id| id.to_string()).as_deref()
                });
                if !joins {
                    blocks.push(block(message, turn));
                }
                if let Some(block) = blocks.last_mut() {
                    let steps = turn.and_then(|turn| progress.remove(&turn.turn_id));
                    answered(block, message, turn, steps, (now, may_send));
                }
            }
        }
    }
    for block in &mut blocks {
        let turn = block
            .turn
            .parse::<TurnId>()
            .ok()
            .and_then(|id| turns.get(&id).copied());
        if let Some(turn) = turn.filter(|_| block.reply.is_none()) {
            let steps = progress.remove(&turn.turn_id);
            unanswered(block, turn, steps, now, may_send);
        }
    }
    if whole.older.is_none()
        && let Some(block) = blocks.first_mut()
    {
        block.class += " first";
    }
    if let Some(block) = blocks.last_mut()
        && block.reply.as_ref().is_none_or(|reply| !reply.running)
    {
        block.class += " last";
    }
    blocks
}

fn block(message: &MessageView, turn: Option<&TurnView>) -> TurnBlock {
    let key = message
        .seq
        .map_or_else(|| format!("q{}", message.id), |seq| format!("m{seq}"));
    TurnBlock {
        key,
        turn: message.turn_id.map(|id| id.to_string()).unwrap_or_default(),
        class: String::new(),
        ask: None,
        reply: None,
        queued: turn.is_some_and(|turn| turn.status == "queued"),
        seq: 0,
        todo: vec![],
    }
}

fn asked(message: &MessageView, turn: Option<&TurnView>, now: i64) -> TurnBlock {
    let mut made = block(message, turn);
    let (html, long) = prose(&message.text);
    let mut tags = vec![];
    if message.edited {
        tags.push("edited");
    }
    if message.removed {
        tags.push("removed");
    }
    if message.state == MessageState::Unanswered && turn.is_none_or(TurnView::ended) {
        tags.push("unanswered");
    }
    if message.origin == "outside" || message.turn_id.is_none() {
        tags.push("written outside rejoin");
    }
    if message.removed {
        made.class += " will-go";
    }
    if made.queued {
        made.class += " queued";
    }
    made.ask = Some(Ask {
        seq: message.seq,
        to: turn.map(|turn| turn.agent.clone()).unwrap_or_default(),
        html,
        long,
        tags,
        when: when(&message.created_at, now),
        removed: message.removed,
    });
    made
}

fn answered(
    block: &mut TurnBlock,
    message: &MessageView,
    turn: Option<&TurnView>,
    steps: Option<Progress>,
    (now, may_send): (i64, bool),
) {
    let (html, long) = prose(&message.text);
    let mut blocks = vec![];
    // Step by step if that tells the whole answer, and the answer with its tools in short otherwise.
    // The events of a turn that asked for a higher tier contain the block that is not part of its answer.
    let asked = turn.is_some_and(|turn| turn.escalation.is_some());
    let complete = steps.filter(|_| !message.edited && long.is_none() && !asked);
    if let Some(steps) =
        complete.filter(|steps| steps.blocks.iter().any(|b| matches!(b, Block::Text(_))))
    {
        blocks = steps.blocks;
        block.seq = steps.last;
    } else {
        if let Some(row) = of_notes(&message.tools) {
            blocks.push(Block::Tools(vec![row]));
        }
        blocks.push(Block::Text(html));
    }
    let agent = message
        .agent
        .clone()
        .or_else(|| turn.map(|turn| turn.agent.clone()));
    if turn.is_some_and(|turn| turn.verdict.as_deref() == Some("reseeded")) {
        block.class += " retold";
    }
    block.reply = Some(Reply {
        seq: message.seq,
        agent: agent.unwrap_or_default(),
        model: turn.and_then(|turn| turn.model.clone()).unwrap_or_default(),
        chip: turn.and_then(chip),
        blocks,
        partial: String::new(),
        long,
        figures: turn.map(figures).unwrap_or_default(),
        when: when(&message.created_at, now),
        running: false,
        failed: None,
        questions: turn.filter(|_| may_send).map(forms).unwrap_or_default(),
        tags: if message.edited {
            vec!["edited"]
        } else {
            vec![]
        },
    });
}

/// Builds the forms of a turn's questions.
fn forms(turn: &TurnView) -> Vec<QuestionForm> {
    let form = |q| question::form(turn.turn_id, q);
    turn.questions.iter().map(form).collect()
}

fn unanswered(
    block: &mut TurnBlock,
    turn: &TurnView,
    steps: Option<Progress>,
    now: i64,
    may_send: bool,
) {
    if turn.status == "queued" {
        return;
    }
    let steps = steps.unwrap_or_default();
    let running = !turn.ended();
    if turn.verdict.as_deref() == Some("reseeded") {
        block.class += " retold";
    }
    if running {
        block.class += " open";
    }
    block.seq = steps.last;
    block.todo = steps.todo;
    let failed = turn.error.as_ref().map(|error| FailBox {
        text: super::error::capital(&plain(&error.message)),
        step: error.next.clone().unwrap_or_default(),
        retry: block.ask.as_ref().is_some_and(|ask| ask.seq.is_some()),
    });
    block.reply = Some(Reply {
        seq: None,
        agent: turn.agent.clone(),
        model: turn.model.clone().unwrap_or_default(),
        chip: chip(turn),
        blocks: steps.blocks,
        partial: if running {
            plain(&steps.partial)
        } else {
            String::new()
        },
        long: None,
        figures: if running { vec![] } else { figures(turn) },
        when: turn
            .started_at
            .as_deref()
            .map(|at| when(at, now))
            .unwrap_or_default(),
        running,
        failed,
        questions: if running && may_send {
            forms(turn)
        } else {
            vec![]
        },
        tags: vec![],
    });
}

/// Returns the mark and words of a verdict.
pub(super) fn chip(turn: &TurnView) -> Option<Chip> {
    let verdict = turn.verdict.clone();
    if joins(turn) && turn.status == "succeeded" {
        let (told, left_out) = (turn.sent.transcribed, turn.sent.left_out);
        let messages = |n: u64| if n == 1 { "message" } else { "messages" };
        let all = told + left_out;
        let words = match left_out {
            0 => format!("joined, told all {told} {}", messages(told)),
            _ => format!("joined, told {told} of {all} {}", messages(all)),
        };
        let mark = "started".to_owned();
        return Some(Chip { mark, words });
    }
    let said = first(&turn.summary);
    let mark = match turn.status.as_str() {
        "failed" | "lost" | "cancelled" => "failed".to_owned(),
        "waiting" => "waiting".to_owned(),
        _ => verdict.clone()?,
    };
    if said.is_empty() {
        let words = match turn.status.as_str() {
            "waiting" => "waits for you".to_owned(),
            _ => words_of(turn, verdict.as_deref()?),
        };
        return Some(Chip { mark, words });
    }
    // `reseeded, history_changed: message 3 was edited` without the code.
    let words = match (said.split_once(", "), said.split_once(": ")) {
        (Some((verdict, code)), Some((_, why)))
            if code.starts_with(|c: char| c.is_ascii_lowercase())
                && code
                    .split(": ")
                    .next()
                    .is_some_and(|code| !code.contains(' ')) =>
        {
            format!("{verdict}: {why}")
        }
        _ => said,
    };
    Some(Chip {
        mark,
        words: plain(&words),
    })
}

/// Returns true for the first turn of an agent in a conversation that others began. It is no loss, so its mark is
/// neutral.
fn joins(turn: &TurnView) -> bool {
    turn.verdict.as_deref() == Some("reseeded") && turn.reason.as_deref() == Some("no_session")
}

/// Returns the words of a verdict while its turn runs.
fn words_of(turn: &TurnView, verdict: &str) -> String {
    let caught_up = turn.sent.caught_up;
    match (verdict, &turn.reason) {
        ("resumed" | "live", _) if caught_up > 0 => format!("{verdict}, caught up on {caught_up}"),
        ("reseeded", _) if joins(turn) => "joined".to_owned(),
        ("reseeded", Some(reason)) => format!("reseeded: {}", reason.replace('_', " ")),
        _ => verdict.to_owned(),
    }
}

/// Returns the figures of a turn that has ended, each with its class.
pub(super) fn figures(turn: &TurnView) -> Vec<(&'static str, String)> {
    let mut shown = vec![];
    let usage = turn.usage;
    let cached = usage.cache_read.unwrap_or_default();
    if let Some(input) = usage.input {
        let all = input + cached + usage.cache_write.unwrap_or_default();
        let share = (cached * 100).checked_div(all).unwrap_or_default();
        shown.push(("", format!("{} in, {share}% cached", count(all))));
    }
    if let Some(output) = usage.output {
        shown.push(("", format!("{} out", count(output))));
    }
    shown.push(("", money(turn.cost_usd)));
    if let Some((_, fresh)) = turn.summary.split_once("(fresh ≈ ") {
        let fresh = fresh.split(')').next().unwrap_or_default();
        shown.push(("save", format!("fresh ≈ {fresh}")));
    }
    if turn.duration_ms > 0 {
        shown.push(("", took(turn.duration_ms)));
    }
    shown
}

/// Returns a message as HTML, and how long it is if only its beginning is shown.
fn prose(text: &str) -> (Html, Option<String>) {
    if text.len() <= LONG {
        return (markdown::render(text), None);
    }
    let begin = cut(text, SHOWN);
    let size = format!("{} lines, {} KB", text.lines().count(), text.len() / 1024);
    (markdown::render(&begin), Some(size))
}

/// Returns a whole message as HTML.
pub(super) fn whole(text: &str) -> Html {
    // Markdown of this length is data rather than prose.
    if text.len() > 1 << 20 {
        return Html(format!("<pre tabindex=\"0\">{}</pre>", escape(text)));
    }
    markdown::render(text)
}

impl TurnBlock {
    /// Returns the number of the message of the person; 0 if it has none.
    pub(super) fn number(&self) -> i64 {
        self.ask
            .as_ref()
            .and_then(|ask| ask.seq)
            .unwrap_or_default()
    }
}
