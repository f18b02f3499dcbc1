//! One binary for all tests from outside.
#![allow(clippy::unwrap_used, reason = "tests, helpers included")]
#![allow(clippy::disallowed_methods, reason = "fixtures are read with std::fs")]

#[path = "all/claude_command.rs"]
mod claude_command;
#[path = "all/claude_session.rs"]
mod claude_session;
#[path = "all/claude_stream.rs"]
mod claude_stream;
#[path = "all/codex_command.rs"]
mod codex_command;
#[path = "all/codex_server.rs"]
mod codex_server;
#[path = "all/codex_session.rs"]
mod codex_session;
#[path = "all/codex_stream.rs"]
mod codex_stream;
#[path = "all/fork.rs"]
mod fork;
#[path = "all/fuzz.rs"]
mod fuzz;
#[path = "all/gemini_acp.rs"]
mod gemini_acp;
#[path = "all/gemini_command.rs"]
mod gemini_command;
#[path = "all/gemini_session.rs"]
mod gemini_session;
#[path = "all/gemini_stream.rs"]
mod gemini_stream;
#[path = "all/heads.rs"]
mod heads;
#[path = "all/opencode_command.rs"]
mod opencode_command;
#[path = "all/opencode_dialogue.rs"]
mod opencode_dialogue;
#[path = "all/opencode_session.rs"]
mod opencode_session;
#[path = "all/opencode_stream.rs"]
mod opencode_stream;
#[path = "all/order.rs"]
mod order;
#[path = "all/said.rs"]
mod said;
#[path = "all/terminal.rs"]
mod terminal;

/// The parser of a run with a dialogue.
fn dialogue_parser(agent: &str, data: &str) -> Box<dyn rejoin_agents::StreamParser> {
    let adapter = rejoin_agents::adapter(agent).unwrap();
    adapter
        .capabilities()
        .dialogue
        .unwrap()
        .dialogue_parser(data)
}

/// A tool call as it is told later.
fn did(note: &rejoin_core::ToolNote) -> String {
    let changed = if note.changed_file { ", changed" } else { "" };
    let end = if note.finished { "" } else { ", no end" };
    format!("did {} {}{changed}{end}", note.tool, note.subject)
}
#[path = "all/unknown_tools.rs"]
mod unknown_tools;
