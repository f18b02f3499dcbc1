//! Fills a store with many conversations, to measure what does not depend on how much is stored.
//!
//! Rows are made here and written past the store's code, which would take hours. They are what that
//! code would have written: ids by time, places, scope values, sums. Sessions are all retired, so that
//! a turn in such a conversation starts a new one with the transcript.

mod rows;
mod sink;

use std::path::Path;

use rejoin_core::{AgentName, ConversationId, Handle};

pub use sink::{Cell, Server};

/// How much to make.
#[derive(Debug, Clone, Copy)]
pub struct Population {
    pub conversations: u64,
    /// In each of them; an even number.
    pub messages: u64,
    /// Turns of one more conversation, whose key is `long`.
    pub long: u64,
}

/// A word of every second message.
pub const COMMON: &str = "common";
/// A word of every hundredth message.
pub const MIDDLING: &str = "middling";
/// A word of every thousandth message.
pub const RARE: &str = "rarely";
/// Conversations of another namespace: one in so many.
pub const OTHERS: u64 = 10;

const AGENTS: [&str; 4] = ["demo", "claude", "codex", "opencode"];
/// Of the first row, in milliseconds since 1970.
const BEGIN: u64 = 1_760_000_000_000;

impl Population {
    /// Fills a database file that `rejoin` has made, and that holds nothing yet.
    pub fn fill_sqlite(&self, file: &Path) -> rusqlite::Result<()> {
        let mut sink = sink::File::open(file)?;
        self.each(|table, row| sink.put(table, row))?;
        sink.finish()
    }

    /// The same for a schema on a server.
    pub fn fill_postgres(&self, server: &Server) -> std::io::Result<()> {
        let mut sink = sink::Copy::new(server)?;
        self.each(|table, row| sink.put(table, row))?;
        sink.finish()
    }

    fn each<E>(
        &self,
        mut put: impl FnMut(&'static str, &[Cell]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut clock = BEGIN;
        let mut said = 0;
        for n in 0..self.conversations {
            let turns = self.messages / 2;
            rows::conversation(&Shape::of(n, turns), &mut clock, &mut said, &mut put)?;
        }
        if self.long > 0 {
            let mut shape = Shape::of(self.conversations, self.long);
            shape.key = Some("long".into());
            shape.namespace = String::new();
            shape.agent = agent("demo");
            rows::conversation(&shape, &mut clock, &mut said, &mut put)?;
        }
        Ok(())
    }
}

/// One conversation.
struct Shape {
    n: u64,
    turns: u64,
    key: Option<String>,
    namespace: String,
    agent: AgentName,
}

impl Shape {
    fn of(n: u64, turns: u64) -> Self {
        let others = n % OTHERS == OTHERS - 1;
        Self {
            n,
            turns,
            key: n.is_multiple_of(3).then(|| format!("key-{n}")),
            namespace: if others {
                format!("tenant{}", n % 50)
            } else {
                String::new()
            },
            agent: agent(AGENTS[(n % AGENTS.len() as u64) as usize]),
        }
    }

    fn workdir(&self) -> String {
        format!("/work/project-{}", self.n % 997)
    }
}

fn agent(name: &str) -> AgentName {
    AgentName::new(name.to_owned()).unwrap()
}

fn handle(id: ConversationId) -> String {
    Handle::of(id).letters().to_owned()
}
