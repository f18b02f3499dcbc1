//! What is particular to one agent.

mod described;
