//! Tool calls of a session with their results, in order.

use rejoin_core::ToolNote;
use serde_json::Value;

use super::rollout::Call;
use crate::session::ReadEntry;
use crate::tool_note::one_line;

/// Calls that only change the CLI's own to-do list.
const ABOUT_NOTHING: &[&str] = &["update_plan"];
const PATCH: &str = "apply_patch";

/// Positions of the calls among the entries.
#[derive(Default)]
pub(super) struct ToolLog {
    calls: Vec<(usize, String)>,
}

impl ToolLog {
    pub(super) fn call(&mut self, entries: &mut Vec<ReadEntry>, id: &str, call: &Call) {
        if ABOUT_NOTHING.contains(&call.name.as_str()) {
            return;
        }
        self.calls.push((entries.len(), id.to_owned()));
        entries.push(ReadEntry::Did(ToolNote {
            tool: call.name.clone(),
            subject: call.patched().unwrap_or_else(|| call.subject()),
            changed_file: false,
            finished: false,
        }));
    }

    /// Adds a web search. The vendor runs it, so there is no result.
    pub(super) fn search(entries: &mut Vec<ReadEntry>, payload: &Value) {
        let query = payload["action"]["query"].as_str().unwrap_or_default();
        entries.push(ReadEntry::Did(ToolNote {
            tool: "web_search".into(),
            subject: one_line(query),
            changed_file: false,
            finished: true,
        }));
    }

    /// Marks a call as finished. `said` is its output.
    pub(super) fn ended(&self, entries: &mut [ReadEntry], id: &str, said: &str) {
        if let Some(note) = self.note(entries, id) {
            note.finished = true;
            note.changed_file |= note.tool == PATCH && said.contains("Success.");
        }
    }

    /// Sets the files that a patch changed, as reported by the CLI: `item_completed`, before 0.100
    /// `patch_apply_end`.
    pub(super) fn patched(&self, entries: &mut [ReadEntry], id: &str, changes: &Value) {
        let Some(changes) = changes.as_object().filter(|changes| !changes.is_empty()) else {
            return;
        };
        if let Some(note) = self.note(entries, id) {
            let paths: Vec<&str> = changes.keys().map(String::as_str).collect();
            note.subject = one_line(&paths.join(" "));
            note.changed_file = true;
        }
    }

    fn note<'e>(&self, entries: &'e mut [ReadEntry], id: &str) -> Option<&'e mut ToolNote> {
        let at = self.calls.iter().rev().find(|(_, call)| call == id)?.0;
        match entries.get_mut(at) {
            Some(ReadEntry::Did(note)) => Some(note),
            Some(ReadEntry::Prompt { .. } | ReadEntry::Answer { .. } | ReadEntry::Synthetic)
            | None => None,
        }
    }

    /// Forgets the calls beyond the first `entries` entries.
    pub(super) fn cut(&mut self, entries: usize) {
        self.calls.retain(|(at, _)| *at < entries);
    }

    /// Removes refused calls, which did nothing.
    pub(super) fn without(self, entries: &mut Vec<ReadEntry>, refused: &[&String]) {
        for (at, id) in self.calls.into_iter().rev() {
            if refused.contains(&&id) {
                entries.remove(at);
            }
        }
    }
}
