//! What holds for one CLI after the other, and what is particular to it.

mod codex;
mod described;
mod gemini;
mod opencode;
mod repositories;
