//! What the tools of a session did, in the order of their calls.

use rejoin_core::ToolNote;
use serde_json::Value;

use super::rollout::Call;
use super::wire::one_line;
use crate::session::ReadEntry;

/// Calls that change only the CLI's own list of things to do.
const ABOUT_NOTHING: &[&str] = &["update_plan"];
const PATCH: &str = "apply_patch";

/// Where the calls stand among the entries.
#[derive(Default)]
pub(super) struct Ledger {
    calls: Vec<(usize, String)>,
}

impl Ledger {
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

    /// The vendor searches by itself: there is no result.
    pub(super) fn search(entries: &mut Vec<ReadEntry>, payload: &Value) {
        let query = payload["action"]["query"].as_str().unwrap_or_default();
        entries.push(ReadEntry::Did(ToolNote {
            tool: "web_search".into(),
            subject: one_line(query),
            changed_file: false,
            finished: true,
        }));
    }

    /// `said`: what the call gave back.
    pub(super) fn ended(&self, entries: &mut [ReadEntry], id: &str, said: &str) {
        if let Some(note) = self.note(entries, id) {
            note.finished = true;
            note.changed_file |= note.tool == PATCH && said.contains("Success.");
        }
    }

    /// The CLI tells which files a patch changed: `item_completed`, before 0.100 `patch_apply_end`.
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

    /// Only so many entries are left.
    pub(super) fn cut(&mut self, entries: usize) {
        self.calls.retain(|(at, _)| *at < entries);
    }

    /// Removes what was refused: nothing was done.
    pub(super) fn without(self, entries: &mut Vec<ReadEntry>, refused: &[&String]) {
        for (at, id) in self.calls.into_iter().rev() {
            if refused.contains(&&id) {
                entries.remove(at);
            }
        }
    }
}
