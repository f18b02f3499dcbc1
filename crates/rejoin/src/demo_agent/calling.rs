//! The demo agent pretends to run commands: `call: docker restart db`, one after the other in several
//! lines. It obeys limits of calls, and runs nothing.

use serde_json::json;

use super::emit;

const TOOL: &str = "Shell";

/// Makes the calls of a message. Returns what came of them, in sentences.
pub(super) fn call(message: &str, id: &str) -> String {
    let commands = message.lines().map_while(|l| l.strip_prefix("call:"));
    let mut told = String::new();
    for (at, command) in commands.map(str::trim).enumerate() {
        let (id, input) = (format!("{id}-call-{at}"), json!({"command": command}));
        emit(&json!({"type": "call", "id": id, "tool": TOOL, "input": input}).to_string());
        let (is_error, text) = match rejoin_runner::limits::take(TOOL, &input) {
            Ok(()) => (false, format!("I called {command}. ")),
            Err(why) => (true, format!("I did not call {command}. {why} ")),
        };
        emit(&json!({"type": "result", "id": id, "is_error": is_error, "text": text}).to_string());
        told += &text;
    }
    told
}
