//! What every agent is held to, and what is peculiar to it.

mod codex;
