//! Reads the CLI's session files: JSON lines that form a tree by `parentUuid`.
//!
//! The CLI replays the chain that ends in the last message of the file. Lines are only appended,
//! parents before children, so the order in the file is the order on the branch.

use rejoin_core::Micros;
use serde::Deserialize;

use super::escape::{is_added, message_of};
use super::stream::of_result;
use super::tool_note;
use super::wire::{Block, Content, Message, SYNTHETIC};
use crate::session::{ReadEntry, Reading, SessionReader, moment};

mod branch;
mod reach;
mod repeated;

use branch::Tree;
pub(super) use reach::refuses;

/// Prefixes of user lines that the CLI writes itself (always as a plain string, unlike prompts of
/// rejoin).
const CLI_PREFIXES: &[&str] = &[
    "<bash-input>",
    "<bash-stderr>",
    "<bash-stdout>",
    "<command-args>",
    "<command-message>",
    "<command-name>",
    "<local-command-caveat>",
    "<local-command-stderr>",
    "<local-command-stdout>",
    "<system-reminder>",
    "<task-notification>",
    "Caveat: The messages below",
];
const INTERRUPTED: &str = "[Request interrupted by user";

pub(super) struct Reader {
    tree: Tree,
    damaged: u64,
    total: Option<Micros>,
}

impl Reader {
    pub(super) fn new(cursor: Option<&str>) -> Self {
        Self {
            tree: Tree::new(cursor),
            damaged: 0,
            total: None,
        }
    }
}

impl SessionReader for Reader {
    fn line(&mut self, line: &[u8]) {
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        match read(line) {
            Ok(Some(node)) => self.tree.add(node),
            Ok(None) => self.total = total(line).or(self.total),
            Err(Damaged) => self.damaged += 1,
        }
    }

    fn finish(self: Box<Self>) -> Reading {
        let mut reading = self.tree.reading();
        reading.damaged_lines = self.damaged;
        reading.total = self.total;
        reading
    }
}

/// A line of the tree, reduced to the required fields.
#[derive(Default)]
pub(super) struct Node {
    uuid: String,
    /// At a compaction boundary the chain continues with the logical parent.
    parent: Option<String>,
    /// True for a message, from which the CLI can continue.
    spoken: bool,
    compacts: bool,
    message: Option<String>,
    model: Option<String>,
    at: Option<i64>,
    /// True if the CLI version that wrote the line may write lines a second time.
    repeats: bool,
    /// Ids of the calls, one for each [`ReadEntry::Did`], in order.
    calls: Vec<String>,
    results: Vec<CallResult>,
    entries: Vec<ReadEntry>,
}

/// Result of a call.
pub(super) struct CallResult {
    id: String,
    failed: bool,
    denied: bool,
}

struct Damaged;

/// Cost of the session so far, which 2.1.325 writes when its terminal interface is closed.
#[derive(Deserialize)]
#[serde(tag = "type", rename = "cost-state", rename_all = "camelCase")]
struct CostState {
    #[serde(rename = "totalCostUSD")]
    total: f64,
    #[serde(default)]
    has_unknown_model_cost: bool,
}

fn total(line: &[u8]) -> Option<Micros> {
    let state: CostState = serde_json::from_slice(line).ok()?;
    let known = Some(state.total).filter(|_| !state.has_unknown_model_cost);
    known.and_then(Micros::from_dollars)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LineHeader {
    #[serde(rename = "type")]
    kind: String,
    subtype: Option<String>,
    uuid: Option<String>,
    parent_uuid: Option<String>,
    logical_parent_uuid: Option<String>,
    is_sidechain: Option<bool>,
    timestamp: Option<String>,
    version: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MessageLine {
    message: Message,
    is_meta: Option<bool>,
    is_compact_summary: Option<bool>,
    is_api_error_message: Option<bool>,
    is_visible_in_transcript_only: Option<bool>,
    origin: Option<Origin>,
}

#[derive(Deserialize)]
struct Origin {
    kind: Option<String>,
}

/// Line with a prompt that was typed during a turn: it reaches the model as an attachment.
#[derive(Deserialize)]
struct Attached {
    attachment: Attachment,
}

#[derive(Deserialize)]
struct Attachment {
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(rename = "commandMode")]
    mode: Option<String>,
    prompt: Option<Content>,
}

fn read(line: &[u8]) -> Result<Option<Node>, Damaged> {
    let head: LineHeader = serde_json::from_slice(line).map_err(|_| Damaged)?;
    let Some(uuid) = head.uuid.filter(|_| head.is_sidechain != Some(true)) else {
        return Ok(None);
    };
    let mut node = Node {
        parent: head.parent_uuid.or(head.logical_parent_uuid),
        spoken: matches!(head.kind.as_str(), "user" | "assistant"),
        compacts: head.subtype.as_deref() == Some("compact_boundary"),
        message: None,
        model: None,
        at: head.timestamp.as_deref().and_then(moment),
        repeats: head.version.is_some_and(repeated::repeats),
        calls: vec![],
        results: vec![],
        entries: vec![],
        uuid,
    };
    match head.kind.as_str() {
        "assistant" => node.assistant(serde_json::from_slice(line).map_err(|_| Damaged)?),
        "user" => node.user(serde_json::from_slice(line).map_err(|_| Damaged)?),
        "attachment" => {
            if let Ok(attached) = serde_json::from_slice::<Attached>(line) {
                node.attached(attached.attachment);
            }
        }
        _ => {}
    }
    Ok(Some(node))
}

/// Returns the prompt in this line. None if the line contains no prompt of a person.
pub(super) fn prompt_of(line: &[u8]) -> Option<String> {
    let node = read(line).ok().flatten()?;
    node.entries.into_iter().find_map(|entry| match entry {
        ReadEntry::Prompt { text, .. } => Some(text),
        ReadEntry::Answer { .. } | ReadEntry::Did(_) | ReadEntry::Synthetic => None,
    })
}

impl Node {
    /// True if the line contains a prompt of a person.
    fn asks(&self) -> bool {
        let mut entries = self.entries.iter();
        entries.any(|entry| matches!(entry, ReadEntry::Prompt { .. }))
    }

    fn assistant(&mut self, spoken: MessageLine) {
        let synthetic = spoken.is_api_error_message == Some(true)
            || spoken.message.model.as_deref() == Some(SYNTHETIC);
        self.message.clone_from(&spoken.message.id);
        if !synthetic {
            self.model.clone_from(&spoken.message.model);
        }
        let at = self.at;
        for block in spoken.message.blocks() {
            match block {
                Block::Text { .. } if synthetic => self.entries.push(ReadEntry::Synthetic),
                Block::Text { text } => self.entries.push(ReadEntry::Answer { text, at }),
                Block::ToolUse { id, name, input } => {
                    self.calls.push(id);
                    let begun = tool_note::begun(&name, &input);
                    self.entries.push(ReadEntry::Did(begun));
                }
                Block::Thinking { .. } | Block::ToolResult { .. } | Block::Other => {}
            }
        }
    }

    fn user(&mut self, spoken: MessageLine) {
        let of_person = spoken
            .origin
            .and_then(|o| o.kind)
            .is_none_or(|kind| kind == "human");
        let own = [
            spoken.is_meta,
            spoken.is_compact_summary,
            spoken.is_visible_in_transcript_only,
        ]
        .contains(&Some(true));
        let text = match spoken.message.content {
            Some(Content::Text(text)) => {
                let added = CLI_PREFIXES
                    .iter()
                    .any(|word| text.trim_start().starts_with(word));
                (!added).then(|| message_of([text.as_str()]))
            }
            Some(Content::Blocks(blocks)) => {
                // A message may consist only of blocks that rejoin added, if the CLI has made a
                // message of each block.
                let ours = |block: &Block| matches!(block, Block::Text { text } if is_added(text));
                let of_more = !blocks.iter().all(ours);
                Some(self.blocks(blocks)).filter(|_| of_more)
            }
            None => None,
        };
        if !self.results.is_empty() {
            return;
        }
        let text = text.filter(|text| of_person && !own && !text.starts_with(INTERRUPTED));
        self.entries.push(match text {
            Some(text) => ReadEntry::Prompt {
                id: self.uuid.clone(),
                text,
                at: self.at,
            },
            None => ReadEntry::Synthetic,
        });
    }

    fn blocks(&mut self, blocks: Vec<Block>) -> String {
        let mut texts = vec![];
        for block in blocks {
            match block {
                Block::Text { text } => texts.push(text),
                Block::ToolResult {
                    tool_use_id,
                    content,
                    is_error,
                } => {
                    let failed = is_error == Some(true);
                    let denied = tool_note::is_denial(failed, &of_result(&content));
                    self.results.push(CallResult {
                        id: tool_use_id,
                        failed,
                        denied,
                    });
                }
                Block::Thinking { .. } | Block::ToolUse { .. } | Block::Other => {}
            }
        }
        message_of(texts.iter().map(String::as_str))
    }

    fn attached(&mut self, attachment: Attachment) {
        let queued = attachment.kind.as_deref() == Some("queued_command");
        if !queued
            || attachment
                .mode
                .as_deref()
                .is_some_and(|mode| mode != "prompt")
        {
            return;
        }
        let text = match attachment.prompt {
            Some(Content::Text(text)) => Some(message_of([text.as_str()])),
            Some(Content::Blocks(blocks)) => Some(self.blocks(blocks)),
            None => None,
        };
        let cli = |text: &String| {
            text.is_empty() || CLI_PREFIXES.iter().any(|words| text.starts_with(words))
        };
        if let Some(text) = text.filter(|text| !cli(text)) {
            self.entries.push(ReadEntry::Prompt {
                id: self.uuid.clone(),
                text,
                at: self.at,
            });
        }
    }
}
