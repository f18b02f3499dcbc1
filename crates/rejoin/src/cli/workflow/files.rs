//! Files of workflows: reading, checking, and the texts that help to write one.

use std::path::{Path, PathBuf};

use rejoin_errors::{CommandError, Result};
use rejoin_runner::foreign_file;
use rejoin_runner::workflow::WorkflowFile;
use rejoin_workflow::Workflow;
use serde_json::{Map, Value, json};

use crate::app::Invocation;

/// Largest file, in bytes.
const LARGEST: u64 = 1 << 20;

/// Reports the mistakes of a file.
#[expect(clippy::ptr_arg, reason = "the arguments of a command are owned")]
pub(super) async fn check(on: &Invocation, path: &PathBuf) -> Result<u8> {
    let text = read(path)?;
    let mistakes = match WorkflowFile::check(&text, Some(folder_of(path))) {
        Ok(file) => {
            let steps = file.workflow.steps.len();
            if on.out.json {
                on.out
                    .json(&json!({"name": file.workflow.name, "steps": steps, "mistakes": []}));
            } else {
                let count = crate::output::format::count(steps as u64, "step");
                on.out
                    .text(&format!("{}: {count}, no mistakes", file.workflow.name));
            }
            return Ok(0);
        }
        Err(mistakes) => mistakes,
    };
    if on.out.json {
        let all: Vec<Value> = (mistakes.iter())
            .map(|it| {
                json!({"line": it.line, "column": it.column, "text": it.text,
                    "suggestion": it.suggestion})
            })
            .collect();
        on.out.json(&json!({"mistakes": all}));
        return Ok(2);
    }
    Err(refused(path, &mistakes))
}

/// Returns the error for a file with mistakes: a line for each.
fn refused(path: &Path, mistakes: &[rejoin_workflow::Mistake]) -> CommandError {
    let name = path.display();
    let lines: Vec<String> = (mistakes.iter())
        .map(|it| {
            let more = it
                .suggestion
                .as_ref()
                .map(|s| format!(" ({s})"))
                .unwrap_or_default();
            format!("{name}:{}:{}: {}{more}", it.line, it.column, it.text)
        })
        .collect();
    CommandError::usage(lines.join("\n")).try_this("rejoin workflow schema, or docs/workflows.md")
}

/// Prints the commented example.
pub(super) async fn example(on: &Invocation, _args: &()) -> Result<u8> {
    on.out.text(rejoin_workflow::EXAMPLE.trim_end());
    Ok(0)
}

/// Prints the JSON Schema.
pub(super) async fn schema(on: &Invocation, _args: &()) -> Result<u8> {
    on.out
        .text(&format!("{:#}", rejoin_workflow::json_schema()));
    Ok(0)
}

/// Reads a file and checks it.
pub(super) fn load(path: &Path) -> Result<WorkflowFile> {
    let text = read(path)?;
    WorkflowFile::check(&text, Some(folder_of(path))).map_err(|mistakes| refused(path, &mistakes))
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        None => Path::new("."),
    }
}

fn read(path: &Path) -> Result<String> {
    let name = path.display();
    if !path.exists() {
        let text = format!("there is no file {name}");
        return Err(CommandError::usage(text).try_this("rejoin workflow new > FILE"));
    }
    let bytes = foreign_file::read_regular(path, LARGEST)
        .map_err(|e| CommandError::usage(format!("{name} cannot be read: {e}")))?;
    String::from_utf8(bytes).map_err(|e| {
        let text = format!(
            "{name} is not UTF-8: byte {}",
            e.utf8_error().valid_up_to() + 1
        );
        CommandError::usage(text)
    })
}

/// Returns the values of the inputs from `NAME=VALUE` words.
pub(super) fn inputs(workflow: &Workflow, words: &[String]) -> Result<Map<String, Value>> {
    let mut given = Map::new();
    for word in words {
        let (name, text) = word.split_once('=').ok_or_else(|| {
            CommandError::usage(format!("`{word}` is no input: write -i NAME=VALUE"))
        })?;
        let value = workflow
            .input_from_text(name, text)
            .map_err(CommandError::usage)?;
        given.insert(name.to_owned(), value);
    }
    workflow
        .bind(&given)
        .map_err(|mistakes| CommandError::usage(mistakes.join("\n")).try_this(usage_of(workflow)))
}

/// Returns a command line with all inputs of a workflow.
fn usage_of(workflow: &Workflow) -> String {
    let names: Vec<String> = (workflow.inputs.iter())
        .map(|input| format!("-i {}=…", input.name))
        .collect();
    format!("rejoin workflow run FILE {}", names.join(" "))
}
