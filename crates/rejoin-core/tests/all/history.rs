//! What happens to the history and to sessions between turns.

use rejoin_core::{AgentName, Message, MessageId, Role, Scope, scope_differs};

use super::words::word;
use super::world::{AGENTS, Slot, Undo, World};

impl World {
    /// What an agent should see, found by walking forward: a foreign answer ends all before it.
    pub(super) fn visible(&self, agent: &AgentName) -> (Option<MessageId>, Vec<String>) {
        let (mut boundary, mut seen) = (None, vec![]);
        for m in &self.history {
            let foreign = m.role == Role::Assistant && m.agent.as_ref() != Some(agent);
            if self.scope == Scope::Agent && foreign {
                boundary = Some(m.id);
                seen.clear();
            } else {
                seen.push(word(&m.text));
            }
        }
        (boundary, seen)
    }

    /// Changes the history; each agent's epoch moves exactly if what it sees is another.
    /// Returns the agents it moved for.
    fn mutate(&mut self, change: impl FnOnce(&mut Vec<Message>)) -> Vec<&'static str> {
        let names = AGENTS.map(|name| AgentName::new(name).unwrap());
        let before = (
            self.history.clone(),
            names.each_ref().map(|n| self.visible(n)),
        );
        change(&mut self.history);
        let mut moved = vec![];
        for (i, name) in names.iter().enumerate() {
            let differs = scope_differs(self.scope, name, &before.0, &self.history);
            assert_eq!(differs, before.1[i] != self.visible(name), "{name}");
            if differs {
                moved.push(AGENTS[i]);
            }
        }
        moved
    }

    pub(crate) fn edit(&mut self, at: usize) -> Vec<&'static str> {
        if at >= self.history.len() {
            return vec![];
        }
        let text = self.text();
        let old = &self.history[at];
        self.undo = Some(Undo::Edit(old.id, old.text.clone()));
        self.mutate(|history| history[at].text = text)
    }

    pub(crate) fn truncate(&mut self, at: usize) -> Vec<&'static str> {
        let at = at.min(self.history.len());
        self.undo = Some(Undo::Cut(self.history[at..].to_vec()));
        self.mutate(|history| history.truncate(at))
    }

    /// Takes back the last edit, or the last truncation if nothing was said since.
    pub(crate) fn undo(&mut self) -> Vec<&'static str> {
        match self.undo.take() {
            Some(Undo::Edit(id, text)) => self.mutate(|history| {
                if let Some(m) = history.iter_mut().find(|m| m.id == id) {
                    m.text = text;
                }
            }),
            Some(Undo::Cut(cut)) => self.mutate(|history| {
                let next = history.last().map_or(1, |m| m.seq + 1);
                if cut.first().is_some_and(|m| m.seq == next) {
                    history.extend(cut);
                }
            }),
            None => vec![],
        }
    }

    /// Another answer in the place of this one, word for word: `retry` as its reader sees it.
    pub(crate) fn replace(&mut self, at: usize) -> Vec<&'static str> {
        if at >= self.history.len() {
            return vec![];
        }
        let id = self.message(Role::User, None).id;
        self.mutate(|history| history[at].id = id)
    }

    pub(crate) fn delete_session(&mut self, agent: &str) {
        self.touch(agent, |slot| slot.file = None);
    }

    /// An older copy of the session is put back.
    pub(crate) fn stale_session(&mut self, agent: &str) {
        self.touch(agent, |slot| {
            slot.file = slot.snapshots.first().map(|s| s.1.clone());
        });
    }

    /// Somebody goes on with the session outside.
    pub(crate) fn continue_by_hand(&mut self, agent: &str) {
        self.touch(agent, |slot| {
            slot.file.iter_mut().for_each(|f| f.push("zqhand".into()));
        });
    }

    pub(crate) fn lose_newest_snapshot(&mut self, agent: &str) {
        self.touch(agent, |slot| {
            slot.snapshots
                .truncate(slot.snapshots.len().saturating_sub(1));
        });
    }

    fn touch(&mut self, agent: &str, change: impl FnOnce(&mut Slot)) {
        if let Some(slot) = self.slots.get_mut(agent) {
            change(slot);
        }
    }
}
