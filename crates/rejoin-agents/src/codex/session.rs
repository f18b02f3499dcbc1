//! Reads the CLI's session files: JSON lines, only ever appended, each with its number.
//!
//! The cursor is the number of the last line, and the provider that line 0 named.

use std::collections::{HashMap, HashSet};

use rejoin_core::{Context, ToolNote, Usage, strip};
use serde::Deserialize;
use serde_json::Value;

use super::ledger::Ledger;
use super::neutral;
use super::rollout::{Call, Counted, Line, Spoken};
use crate::session::{ReadEntry, Reading, SessionReader, text_mark};
use crate::stream::Denied;

/// What a call gives back that a person did not allow.
const BY_A_PERSON: &str = "rejected by user";

/// In place of a number, where lines have none.
const UNNUMBERED: &str = "-";

pub(super) struct Reader {
    confirmed: Option<String>,
    /// Of the last line; none: no line had one.
    last: Option<u64>,
    lines: u64,
    calls: HashMap<String, Call>,
    answered: HashMap<String, String>,
    /// Calls of which the stream told as well.
    told: HashSet<String>,
    ledger: Ledger,
    reading: Reading,
}

impl Reader {
    pub(super) fn new(cursor: Option<&str>) -> Self {
        let (at, provider) = match cursor.and_then(|cursor| cursor.split_once(' ')) {
            Some((at, provider)) => (Some(at), Some(provider)),
            None => (cursor, None),
        };
        let reading = Reading {
            connected: true,
            only_added: cursor.is_some(),
            provider: provider.map(str::to_owned),
            ..Reading::default()
        };
        Self {
            last: at.and_then(|at| at.parse().ok()),
            confirmed: at.map(str::to_owned),
            lines: 0,
            calls: HashMap::new(),
            answered: HashMap::new(),
            told: HashSet::new(),
            ledger: Ledger::default(),
            reading,
        }
    }
}

impl SessionReader for Reader {
    fn line(&mut self, line: &[u8]) {
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        let Ok(line) = serde_json::from_slice::<Line>(line) else {
            self.reading.damaged_lines += 1;
            return;
        };
        self.count(&line);
        match line.kind.as_str() {
            "response_item" => self.item(line.at(), line.payload),
            "event_msg" => self.event(&line.payload),
            "compacted" => self.compacted(&line.payload),
            "session_meta" => self.named(&line.payload["model_provider"]),
            "turn_context" => {
                let model = line.payload["model"].as_str().map(str::to_owned);
                self.reading.model = model.or(self.reading.model.take());
            }
            _ => {}
        }
    }

    fn finish(mut self: Box<Self>) -> Reading {
        self.reading.begun = self.begun();
        let open = |id: &&String| !self.answered.contains_key(*id);
        self.reading.orphaned_calls = self.calls.keys().filter(open).count() as u64;
        self.reading.denied = self.denied();
        let entries = &mut self.reading.entries;
        let refused: Vec<&String> = self
            .answered
            .iter()
            .filter(|(_, said)| refused(said))
            .map(|(id, _)| id)
            .collect();
        std::mem::take(&mut self.ledger).without(entries, &refused);
        let at = match self.last {
            Some(last) => Some(last.to_string()),
            None => (self.lines > 0)
                .then(|| UNNUMBERED.to_owned())
                .or(self.confirmed),
        };
        self.reading.cursor = at.map(|at| match &self.reading.provider {
            Some(provider) => format!("{at} {provider}"),
            None => at,
        });
        self.reading
    }
}

impl Reader {
    /// Every line follows the one before it, or something was lost, or two wrote at once.
    fn count(&mut self, line: &Line) {
        let first = self.lines == 0;
        self.lines += 1;
        if first && self.confirmed.is_none() && line.kind != "session_meta" {
            self.reading.connected = false;
        }
        let numbered = self.confirmed.as_deref() != Some(UNNUMBERED) || self.last.is_some();
        match (self.last, line.ordinal) {
            (Some(last), Some(ordinal)) => {
                self.reading.connected &= last.checked_add(1) == Some(ordinal);
            }
            (Some(_), None) => self.reading.connected = false,
            // A fork does not begin at zero, and a newer version may begin to number.
            (None, Some(_)) => self.reading.connected &= first || !numbered,
            (None, None) => {}
        }
        self.last = line.ordinal.or(self.last);
    }

    fn named(&mut self, provider: &Value) {
        let provider = provider.as_str().map(str::to_owned);
        self.reading.provider = provider.or(self.reading.provider.take());
    }

    fn item(&mut self, at: Option<i64>, payload: Value) {
        let kind = payload["type"].as_str().unwrap_or_default().to_owned();
        match kind.as_str() {
            "message" => match Spoken::deserialize(payload) {
                Ok(spoken) => self.spoken(at, &spoken),
                Err(_) => self.reading.damaged_lines += 1,
            },
            "function_call" | "custom_tool_call" | "local_shell_call" => {
                if let Ok(call) = Call::deserialize(payload)
                    && let Some(id) = call.id.clone()
                {
                    self.ledger.call(&mut self.reading.entries, &id, &call);
                    self.calls.insert(id, call);
                }
            }
            "function_call_output" | "custom_tool_call_output" => {
                if let Ok(output) = Call::deserialize(payload) {
                    let (said, id) = (output.said(), output.id.unwrap_or_default());
                    self.ledger.ended(&mut self.reading.entries, &id, &said);
                    self.answered.insert(id, said);
                }
            }
            "web_search_call" => Ledger::search(&mut self.reading.entries, &payload),
            "compaction" | "compaction_summary" | "context_compaction" => {
                self.reading.compacted = true;
                self.reading.summed_up = self.reading.entries.len();
            }
            _ => {}
        }
    }

    fn spoken(&mut self, at: Option<i64>, spoken: &Spoken) {
        let text = spoken.text();
        let entry = match spoken.role.as_str() {
            "assistant" => ReadEntry::Answer { text, at },
            "user" if spoken.by_a_person() => {
                let id = text_mark(&text);
                self.reading.prompts.push(id.clone());
                ReadEntry::Prompt {
                    id,
                    text: strip(&neutral::said(&text)).trim().to_owned(),
                    at,
                }
            }
            _ => ReadEntry::Synthetic,
        };
        self.reading.entries.push(entry);
    }

    fn event(&mut self, payload: &Value) {
        match payload["type"].as_str() {
            Some("token_count") => {
                if let Ok(counted) = Counted::deserialize(&payload["info"]) {
                    self.counted(&counted);
                }
            }
            Some("item_completed") => {
                let id = payload["item"]["id"].as_str().unwrap_or_default();
                self.told.insert(id.to_owned());
                let changes = &payload["item"]["changes"];
                if payload["item"]["status"] == "completed" {
                    let entries = &mut self.reading.entries;
                    self.ledger.patched(entries, id, changes);
                }
            }
            Some("patch_apply_end") if payload["success"] == true => {
                let id = payload["call_id"].as_str().unwrap_or_default();
                let entries = &mut self.reading.entries;
                self.ledger.patched(entries, id, &payload["changes"]);
            }
            Some("thread_settings_applied") => {
                self.named(&payload["thread_settings"]["model_provider_id"]);
            }
            Some("thread_rolled_back") => self.rolled_back(payload["num_turns"].as_u64()),
            Some(_) | None => {}
        }
    }

    /// After a compaction only the total says how full it is.
    fn counted(&mut self, counted: &Counted) {
        self.reading.usage = Some(Usage::from(counted.total_token_usage));
        let last = counted.last_token_usage;
        let used = if last.input > 0 {
            last.input
        } else {
            last.total
        };
        let window = counted.model_context_window;
        self.reading.context = window.map(|window| Context { used, window });
    }

    /// The summary was asked of the model, so it stands there like an answer.
    fn compacted(&mut self, payload: &Value) {
        self.reading.compacted = true;
        self.calls.clear();
        let summary = payload["message"].as_str().unwrap_or_default();
        let is_it = |entry: &&mut ReadEntry| matches!(entry, ReadEntry::Answer { .. });
        if let Some(entry) = self.reading.entries.iter_mut().rev().find(is_it)
            && matches!(entry, ReadEntry::Answer { text, .. } if summary.ends_with(text.as_str()))
        {
            *entry = ReadEntry::Synthetic;
        }
        self.reading.summed_up = self.reading.entries.len();
    }

    /// Turns that were taken back are not replayed.
    fn rolled_back(&mut self, turns: Option<u64>) {
        for _ in 0..turns.unwrap_or(1) {
            let entries = &mut self.reading.entries;
            let prompt = |entry: &ReadEntry| matches!(entry, ReadEntry::Prompt { .. });
            match entries.iter().rposition(prompt) {
                Some(at) => {
                    entries.truncate(at);
                    self.reading.summed_up = self.reading.summed_up.min(at);
                    self.ledger.cut(at);
                }
                // Some of what was confirmed is gone.
                None => {
                    self.reading.connected &= self.confirmed.is_none();
                    return;
                }
            }
        }
    }

    /// That a command runs is printed only when it has run for a moment. An interrupt then answers
    /// it in the session, and prints nothing more.
    fn begun(&self) -> Vec<ToolNote> {
        let aborted = |said: &String| said.ends_with("aborted by user") || said == "aborted";
        let open = |id: &&String| self.answered.get(*id).is_none_or(aborted);
        let mut ids: Vec<&String> = self.calls.keys().filter(open).collect();
        ids.sort();
        let calls = ids.into_iter().filter_map(|id| self.calls.get(id));
        let note = |call: &Call| ToolNote {
            tool: call.name.clone(),
            subject: call.subject(),
            changed_file: false,
            finished: false,
        };
        calls.map(note).collect()
    }

    /// A command that the sandbox stopped has an output, but no event tells of it; nor of a call
    /// that was rejected, or of a tool that was taken away.
    fn denied(&self) -> Vec<Denied> {
        let mut denied: Vec<Denied> = vec![];
        for (id, call) in &self.calls {
            let Some(output) = self.answered.get(id).filter(|_| !self.told.contains(id)) else {
                continue;
            };
            let stopped = call.name == "exec_command"
                && output.contains("Process exited with code ")
                && !output.contains("Process exited with code 0");
            // What a person refused was told when they did.
            let told = output.contains(BY_A_PERSON);
            if !told && (stopped || refused(output)) {
                denied.push(Denied {
                    tool: call.name.clone(),
                    id: id.clone(),
                    input: call.subject(),
                });
            }
        }
        denied.sort_by(|a, b| a.id.cmp(&b.id));
        denied
    }
}

/// Nothing was run, unlike what a sandbox stopped: that may have done a part.
fn refused(output: &str) -> bool {
    output.contains("rejected")
        || output.contains("reject command")
        || output.starts_with("unsupported call: ")
}
