//! Process of a workflow step that is not for a model: runs the command of the step, or prints its
//! question. Reads one line of JSON, prints events as the demo agent does.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io::{BufRead, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, Stdio};

use rejoin_core::{CommandStep, unescape};
use rejoin_runner::process::command;
use serde_json::{Value, json};

/// Output of a command that is kept from its beginning, and from its end.
const HEAD: usize = 256 * 1024;
const TAIL: usize = 768 * 1024;
const BLOCK: usize = 16 * 1024;
/// Id of the only tool call of a turn.
const CALL: &str = "command";
/// Exit code of a shell for a command that cannot be started.
const NOT_STARTED: i64 = 127;

pub(crate) fn run(args: &[String]) -> ExitCode {
    let outcome = match args {
        [flag] if flag == "--version" => {
            let version = env!("CARGO_PKG_VERSION");
            return print(&format!("rejoin workflow agent {version}"));
        }
        [session] => step(session),
        _ => Err("usage: workflow-process SESSION, a step on stdin".to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            emit(&json!({"type": "error", "error": error, "unknown_session": false}));
            ExitCode::FAILURE
        }
    }
}

fn step(session: &str) -> Result<(), String> {
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    read.map_err(|e| format!("the step cannot be read: {e}"))?;
    let step: CommandStep =
        serde_json::from_str(&unescape(&line)).map_err(|e| format!("this is not a step: {e}"))?;
    let version = env!("CARGO_PKG_VERSION");
    emit(&json!({"type": "start", "session": session, "model": "command", "version": version}));
    match &step {
        CommandStep::Approve { approve } => emit(&json!({"type": "text", "text": approve})),
        CommandStep::Run { run, env } => {
            let (program, args) = run.split_first().ok_or("the step has no program")?;
            let mut command = command(OsStr::new(program));
            command.args(args).envs(env);
            execute(command, &json!({"command": run}));
        }
        CommandStep::Shell { shell, env } => {
            let mut command = command(OsStr::new("/bin/sh"));
            command.args(["-c", shell, "sh"]).envs(env);
            execute(command, &json!({"command": shell}));
        }
    }
    emit(&json!({"type": "done", "input": 0, "output": 0, "context": 0}));
    Ok(())
}

/// Runs a command, and prints its output as the answer.
fn execute(mut command: Command, input: &Value) {
    emit(&json!({"type": "call", "id": CALL, "tool": "command", "input": input}));
    let (code, last) = match output_of(&mut command) {
        Ok((code, last)) => (code, last),
        Err(error) => {
            let program = command.get_program().to_string_lossy().into_owned();
            let text = format!("{program} cannot be started: {error}\n");
            emit(&json!({"type": "text", "text": text}));
            (NOT_STARTED, text)
        }
    };
    emit(&json!({
        "type": "result", "id": CALL, "is_error": code != 0, "text": last, "exit_code": code
    }));
}

/// Returns the exit code of a command and the end of its output. Standard output and standard error
/// are one stream, in the order in which they were written.
fn output_of(command: &mut Command) -> std::io::Result<(i64, String)> {
    let (mut reader, writer) = std::io::pipe()?;
    command.stdin(Stdio::null());
    command.stdout(writer.try_clone()?).stderr(writer);
    let mut child = command.spawn()?;
    // The command holds the other ends of the pipe.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut output = Output::default();
    let mut block = vec![0; BLOCK];
    loop {
        match reader.read(&mut block) {
            Ok(0) => break,
            Ok(count) => output.add(block.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let last = output.finish();
    let status = child.wait()?;
    let code = match (status.code(), status.signal()) {
        (Some(code), _) => i64::from(code),
        (None, signal) => 128 + i64::from(signal.unwrap_or(0)),
    };
    Ok((code, last))
}

/// Output of a command: printed at once up to [`HEAD`], then only its end.
#[derive(Default)]
struct Output {
    printed: usize,
    /// Bytes of a character that is not complete yet.
    partial: Vec<u8>,
    tail: VecDeque<u8>,
    left_out: usize,
    last: String,
}

impl Output {
    fn add(&mut self, bytes: &[u8]) {
        if self.printed >= HEAD {
            self.tail.extend(bytes);
            let over = self.tail.len().saturating_sub(TAIL);
            self.tail.drain(..over);
            self.left_out += over;
            return;
        }
        self.partial.extend(bytes);
        let whole = match std::str::from_utf8(&self.partial) {
            // A character that began at the end of the block.
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Ok(_) | Err(_) => self.partial.len(),
        };
        let bytes: Vec<u8> = self.partial.drain(..whole).collect();
        self.print(&bytes);
    }

    fn print(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.printed += bytes.len();
        let text = String::from_utf8_lossy(bytes).into_owned();
        emit(&json!({"type": "text", "text": text}));
        self.last = text;
    }

    /// Prints the rest, and returns the last part.
    fn finish(mut self) -> String {
        let partial = std::mem::take(&mut self.partial);
        self.print(&partial);
        if self.left_out > 0 {
            let note = format!("\n[{} bytes left out]\n", self.left_out);
            self.print(note.as_bytes());
        }
        let tail: Vec<u8> = std::mem::take(&mut self.tail).into();
        self.print(&tail);
        let from = self.last.len().saturating_sub(2000);
        let from = (from..=self.last.len()).find(|at| self.last.is_char_boundary(*at));
        self.last.split_off(from.unwrap_or(0))
    }
}

fn emit(line: &Value) {
    print(&line.to_string());
}

fn print(line: &str) -> ExitCode {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{line}").and_then(|()| out.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
