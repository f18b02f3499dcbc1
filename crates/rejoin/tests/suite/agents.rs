//! What holds for Claude Code holds for the others: each in a module of its own.

mod gemini;
