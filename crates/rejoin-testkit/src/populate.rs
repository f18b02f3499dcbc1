//! Fills a store with many conversations, to measure operations that must not depend on the amount
//! of data.
//!
//! Rows are generated here and written without the store's code, which would take hours. They equal
//! the rows that the store's code would have written: ids by time, positions, scope values, sums.
//! All sessions are retired, so a turn in one of these conversations starts a new one with the
//! transcript.

mod rows;
mod sink;

use std::path::Path;

use rejoin_core::{AgentName, ConversationId, Handle};

pub use sink::{Cell, Server};

/// Amount of data to generate.
#[derive(Debug, Clone, Copy)]
pub struct Population {
    pub conversations: u64,
    /// Messages per conversation; an even number.
    pub messages: u64,
    /// Turns of one additional conversation, whose key is `long`.
    pub long: u64,
}

/// Word in every second message.
pub const COMMON: &str = "common";
/// Word in every hundredth message.
pub const MIDDLING: &str = "middling";
/// Word in every thousandth message.
pub const RARE: &str = "rarely";
/// Ratio of conversations in another namespace: one in this many.
pub const OTHERS: u64 = 10;

const AGENTS: [&str; 4] = ["demo", "claude", "codex", "opencode"];
/// Time of the first row, in milliseconds since 1970.
const BEGIN: u64 = 1_760_000_000_000;

impl Population {
    /// Fills an empty database file that `rejoin` has created.
    pub fn fill_sqlite(&self, file: &Path) -> rusqlite::Result<()> {
        let mut sink = sink::File::open(file)?;
        self.each(|table, row| sink.put(table, row))?;
        sink.finish()
    }

    /// Fills an empty schema on a server.
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

/// Properties of a conversation to generate.
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
