//! Files of a repository that coding agents would obey, as `rejoin trust` shows them.

use std::path::{Path, PathBuf};

use rejoin_agents::ADAPTERS;
use rejoin_runner::repository::{Found, scan, scan_nested, shortened};
use rejoin_runner::trust::{TrustList, TrustState};
use serde_json::{Value, json};

use super::{visible, whole};
use crate::output::{Line, Output, Tone};

/// A file, and the agents that would obey it.
pub(super) struct AgentFile {
    pub(super) found: Found,
    pub(super) agents: Vec<&'static str>,
    pub(super) was: TrustState,
}

/// Finds the files that any agent would obey in `folder`, each once.
pub(super) fn find(folder: &Path, trust: &TrustList) -> Vec<AgentFile> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let mut files: Vec<AgentFile> = vec![];
    for adapter in ADAPTERS {
        let mut all = scan(*adapter, folder, home.as_deref());
        if !all.is_empty() {
            all.extend(scan_nested(*adapter, folder));
        }
        for found in all {
            match files.iter_mut().find(|file| file.found.path == found.path) {
                Some(file) => {
                    file.agents.push(adapter.name());
                    file.found.file.effects.extend(found.file.effects);
                    file.found.file.effects.dedup();
                }
                None => files.push(AgentFile {
                    was: found.state(trust),
                    found,
                    agents: vec![adapter.name()],
                }),
            }
        }
    }
    files
}

impl AgentFile {
    /// Path, hash and effects for the trust list. None: the file cannot be read.
    pub(super) fn entry(&self) -> Option<(PathBuf, String, Vec<String>)> {
        let effects = self.found.file.effects.iter();
        let keys = effects.map(|effect| shortened(effect)).collect();
        Some((self.found.path.clone(), self.found.hash.clone()?, keys))
    }

    pub(super) fn json(&self, trusted: bool) -> Value {
        json!({
            "path": self.found.path, "hash": self.found.hash, "agents": self.agents,
            "was": self.was.word(), "trusted": trusted, "effects": self.found.file.effects,
        })
    }

    pub(super) fn show(&self, out: Output) {
        let path = self.found.path.display();
        let agents = self.agents.join(", ");
        let head = match (self.was, &self.found.hash) {
            (_, None) => format!("{path} cannot be read, and so not be trusted ({agents})"),
            (TrustState::Trusted | TrustState::NotNeeded, _) => {
                format!("{path} is trusted and obeyed by {agents}")
            }
            (TrustState::Untrusted, _) => format!("{path} would be obeyed by {agents}"),
            (TrustState::Changed, _) => {
                format!("{path} has changed since you trusted it, and would be obeyed by {agents}")
            }
        };
        out.lines(&whole(out, &Line::plain(&visible(&head))));
        for effect in &self.found.file.effects {
            let line = Line::plain("  ").with(Tone::Name, &visible(effect));
            out.lines(&whole(out, &line));
        }
    }
}
