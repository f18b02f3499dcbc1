//! Reads the CLI's session files: JSON lines that are only appended, each with a number.
//!
//! The cursor is the number of the last line, and the provider named in line 0.

use std::collections::{HashMap, HashSet};

use rejoin_core::{Context, ToolNote, Usage, strip};
use serde::Deserialize;
use serde_json::Value;

use super::escape;
use super::rollout::{Call, Counted, Line, Spoken};
use super::tool_log::ToolLog;
use crate::session::{ReadEntry, Reading, SessionReader, text_mark};
use crate::stream::Denied;

/// Output of a call that a person denied.
const BY_A_PERSON: &str = "rejected by user";

/// Cursor of a session whose lines have no numbers.
const UNNUMBERED: &str = "-";

pub(super) struct Reader {
    confirmed: Option<String>,
    /// Number of the last line. None if no line had a number.
    last: Option<u64>,
    lines: u64,
    calls: HashMap<String, Call>,
    answered: HashMap<String, String>,
    /// Calls that the stream reported as well.
    told: HashSet<String>,
    ledger: ToolLog,
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
            ledger: ToolLog::default(),
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
    /// Checks that every line follows the one before it. Otherwise lines were lost, or two
    /// processes wrote at once.
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
            // A fork does not begin at zero, and a newer version may begin to number lines.
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
            "web_search_call" => ToolLog::search(&mut self.reading.entries, &payload),
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
                    text: strip(&escape::said(&text)).trim().to_owned(),
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

    /// Records the token counts. After a compaction only the total tells the context use.
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

    /// Handles a compaction. The model wrote the summary, so it looks like an answer.
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

    /// Removes turns that were taken back, which the CLI does not replay.
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
                // Part of the confirmed messages is gone.
                None => {
                    self.reading.connected &= self.confirmed.is_none();
                    return;
                }
            }
        }
    }

    /// Lists calls that began but did not finish. The stream reports a command only after it has
    /// run for a moment. After an interrupt the session contains an output, and the stream nothing
    /// more.
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

    /// Lists denied calls. The stream does not report a command that the sandbox stopped (although
    /// it has an output), a rejected call, or a call of a disabled tool.
    fn denied(&self) -> Vec<Denied> {
        let mut denied: Vec<Denied> = vec![];
        for (id, call) in &self.calls {
            let Some(output) = self.answered.get(id).filter(|_| !self.told.contains(id)) else {
                continue;
            };
            let stopped = call.name == "exec_command"
                && output.contains("Process exited with code ")
                && !output.contains("Process exited with code 0");
            // A person's denial was already reported when it was given.
            let by_a_person = refused(output) && output.contains(BY_A_PERSON);
            if !by_a_person && (stopped || refused(output)) {
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

/// True if the call did not run, unlike one that the sandbox stopped, which may have done part of
/// its work. A command that ran may itself print these words: its output begins with its time and
/// its exit code (0.166.0).
fn refused(output: &str) -> bool {
    let ran = ["Chunk ID: ", "Wall time: ", "Exit code: ", "Process "];
    if ran.iter().any(|begin| output.starts_with(begin)) {
        return false;
    }
    let line = output.lines().next().unwrap_or_default();
    line.contains("rejected")
        || line.contains("reject command")
        || line.starts_with("unsupported call: ")
}
