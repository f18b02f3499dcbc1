//! The built-in scripts, by name.
//!
//! Tool names and inputs are those of Claude Code 2.1.197 and 2.1.325; dialects of other CLIs
//! translate them. A CLI answers a call of a tool that it does not have with an error result, which
//! is a useful script as well.

use std::collections::BTreeMap;

use serde_json::json;

use super::{Script, Step, StepUsage, ToolCall};

/// Returns the built-in scripts. [`Options::scripts`](crate::Options) override them.
pub fn builtin_scripts() -> BTreeMap<String, Script> {
    [
        ("hello", vec![Step::text("Hello from the scripted model.")]),
        (
            "think",
            vec![Step { thinking: Some("Let me think.".into()), ..Step::text("Thought done.") }],
        ),
        (
            "bash",
            vec![
                Step {
                    tools: vec![bash("echo tool-ran > ran.txt; echo hi-from-bash")],
                    ..Step::text("Running it.")
                },
                Step::text("Bash done."),
            ],
        ),
        ("two", vec![calls(vec![bash("echo one"), bash("echo two")]), Step::text("Both done.")]),
        (
            "write",
            vec![
                calls(vec![ToolCall::new("Write", json!({"file_path": "out.txt", "content": "written\n"}))]),
                Step::text("Write done."),
            ],
        ),
        ("ask", vec![ask(), Step::text("Thanks for the answer.")]),
        ("agent", vec![agent(), Step::text("Agent done.")]),
        ("subjob", vec![calls(vec![bash("echo from-sub")]), Step::text("Sub job result text.")]),
        (
            "task",
            vec![
                calls(vec![ToolCall::new(
                    "TaskCreate",
                    json!({"subject": "first task", "description": "do a thing", "activeForm": "doing"}),
                )]),
                calls(vec![ToolCall::new("TaskList", json!({}))]),
                Step::text("Tasks done."),
            ],
        ),
        ("slow", vec![slow()]),
        ("slow2", vec![calls(vec![bash("echo first-tool")]), slow()]),
        (
            "sleep",
            vec![
                Step {
                    tools: vec![bash("sleep 47 & echo child=$!; sleep 48; echo slept")],
                    ..Step::text("Sleeping.")
                },
                Step::text("Slept."),
            ],
        ),
        ("bgsleep", vec![background_sleep(), Step::text("Background job started.")]),
        ("hang", vec![Step { hang_ms: Some(60_000), ..Step::default() }]),
        ("e400", vec![failure(400, "bad request made up")]),
        ("e401", vec![failure(401, "invalid x-api-key")]),
        ("e429", vec![Step { retry_after: Some(1), ..failure(429, "rate limited") }]),
        ("e500", vec![failure(500, "Internal server error")]),
        ("e529", vec![Step { retry_after: Some(1), ..failure(529, "Overloaded") }]),
        ("toolong", vec![failure(400, "prompt is too long: 208310 tokens > 200000 maximum")]),
        (
            "cut",
            vec![Step {
                chunks: Some(4),
                cut_after: Some(2),
                ..Step::text("This answer is cut off before its end.")
            }],
        ),
        (
            "eof",
            vec![Step { unfinished: true, ..Step::text("This answer lacks its end.") }],
        ),
        ("refuse", vec![Step { refuse: true, ..Step::default() }]),
        ("full85", vec![filled(170_000)]),
        ("full7", vec![filled(15_000)]),
        ("bigctx", vec![filled(190_000)]),
        ("recall", vec![Step { recall: true, ..Step::default() }]),
    ]
    .into_iter()
    .map(|(name, script)| (name.to_owned(), script))
    .collect()
}

fn bash(command: &str) -> ToolCall {
    ToolCall::new(
        "Bash",
        json!({"command": command, "description": "scripted command"}),
    )
}

fn calls(tools: Vec<ToolCall>) -> Step {
    Step {
        tools,
        ..Step::default()
    }
}

fn slow() -> Step {
    // All words differ: Gemini CLI takes repetition for a loop and gives up.
    let words: Vec<String> = (1..=60).map(|n| format!("word-{n}")).collect();
    Step {
        chunks: Some(60),
        delay_ms: Some(250),
        ..Step::text(words.join(" "))
    }
}

fn failure(status: u16, message: &str) -> Step {
    Step {
        message: Some(message.to_owned()),
        ..Step::status(status)
    }
}

/// An answer that reports exactly this fill of the context window, with nothing cached.
fn filled(input_tokens: u64) -> Step {
    Step {
        usage: Some(StepUsage {
            input_tokens: Some(input_tokens),
            cache_read_input_tokens: Some(0),
            cache_creation_input_tokens: Some(0),
        }),
        ..Step::text(format!("The context holds {input_tokens} tokens."))
    }
}

fn ask() -> Step {
    let questions = json!({"questions": [
        {"question": "Which colour?", "header": "Colour", "multiSelect": false, "options": [
            {"label": "Red", "description": "a warm one"},
            {"label": "Blue", "description": "a cold one"}]},
        {"question": "Which sizes?", "header": "Sizes", "multiSelect": true, "options": [
            {"label": "S", "description": "small"},
            {"label": "M", "description": "medium"},
            {"label": "L", "description": "large"}]}]});
    Step {
        tools: vec![ToolCall::new("AskUserQuestion", questions)],
        ..Step::text("I need to ask.")
    }
}

/// Starts a sub-agent, explicitly in the foreground: 2.1.325 runs sub-agents in the background by
/// default, which gives a run a second turn and a second result.
fn agent() -> Step {
    let job = json!({
        "description": "sub job",
        "prompt": "#s:subjob do the sub job",
        "subagent_type": "general-purpose",
        "run_in_background": false,
    });
    Step {
        tools: vec![ToolCall::new("Agent", job)],
        ..Step::text("Delegating.")
    }
}

fn background_sleep() -> Step {
    let job =
        json!({"command": "sleep 53", "description": "background", "run_in_background": true});
    calls(vec![ToolCall::new("Bash", job)])
}
