//! The demo agent's process: reads one prompt, keeps a real session file, answers by recalling what
//! it has been told. Everything a coding CLI does that matters to rejoin, without a model.

mod asking;
mod calling;
mod climbing;
mod slow;

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use rejoin_core::{MARK_CLOSE, MARK_OPEN, SessionId, tokens_of, unescape};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// How much of each thing it recalls.
const QUOTE: usize = 60;
/// How many of the last things it lists: all, unless somebody goes on for very long.
const RECALLED: usize = 200;

#[derive(Deserialize)]
struct PromptLine {
    id: String,
    context: Option<String>,
    message: String,
}

#[derive(Serialize, Deserialize)]
struct Said {
    id: String,
    after: Option<String>,
    role: String,
    text: String,
}

pub(crate) fn run(args: &[String]) -> ExitCode {
    let outcome = match args {
        [flag] if flag == "--version" => {
            emit(&format!("rejoin demo agent {}", env!("CARGO_PKG_VERSION")));
            return ExitCode::SUCCESS;
        }
        [flag, id] if flag == "--session-id" || flag == "--resume" => SessionId::new(id.as_str())
            .map_err(|e| e.to_string())
            .and_then(|id| turn(&id, flag == "--resume")),
        _ => Err("usage: demo-agent --session-id ID | --resume ID, a prompt on stdin".to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let unknown_session = error.starts_with("no session");
            emit(
                &json!({"type": "error", "error": error, "unknown_session": unknown_session})
                    .to_string(),
            );
            ExitCode::FAILURE
        }
    }
}

fn turn(session: &SessionId, resume: bool) -> Result<(), String> {
    let home = std::env::var("HOME").map_err(|_| "HOME is not set".to_owned())?;
    let path = PathBuf::from(home)
        .join(".rejoin-demo/sessions")
        .join(format!("{session}.jsonl"));
    let known = match (fs_err::read_to_string(&path), resume) {
        (Ok(text), true) => text
            .lines()
            .filter_map(|l| serde_json::from_str(l).ok())
            .collect(),
        (Err(_), true) => return Err(format!("no session {session}")),
        (Ok(_), false) => return Err(format!("session {session} exists already")),
        (Err(_), false) => Vec::<Said>::new(),
    };
    let mut stdin = std::io::stdin().lock();
    let mut input = String::new();
    stdin.read_line(&mut input).map_err(|e| e.to_string())?;
    let prompt: PromptLine =
        serde_json::from_str(&input).map_err(|e| format!("not a prompt: {e}"))?;
    emit(&json!({"type": "start", "session": session, "model": "demo", "version": env!("CARGO_PKG_VERSION")}).to_string());

    std::thread::sleep(slow::thinks(&prompt.message));
    let climb = climbing::request(&prompt.message);
    let calls = calling::call(&prompt.message, &prompt.id);
    let heard = asking::ask(&prompt.message, &prompt.id, &mut stdin)?;
    let text = match &prompt.context {
        Some(context) => format!("{context}\n\n{}", prompt.message),
        None => prompt.message,
    };
    let mut told: Vec<String> = known
        .iter()
        .filter(|s| s.role == "user")
        .flat_map(|s| words_of(&s.text))
        .collect();
    told.extend(words_of(&text));
    let mut answer = calls + &heard.unwrap_or_default() + &recall(&told);
    if let Some(block) = climb {
        answer = format!("{answer}\n\n{block}");
    }

    let user = Said {
        after: known.last().map(|s| s.id.clone()),
        role: "user".into(),
        id: prompt.id,
        text,
    };
    let reply = Said {
        id: format!("{}-answer", user.id),
        after: Some(user.id.clone()),
        role: "agent".into(),
        text: answer.clone(),
    };
    let used: u64 = known.iter().map(|s| tokens_of(&s.text)).sum::<u64>() + tokens_of(&user.text);
    keep(&path, &[user, reply])?;
    emit(&json!({"type": "text", "text": answer}).to_string());
    emit(
        &json!({"type": "done", "input": used, "output": tokens_of(&answer), "context": used})
            .to_string(),
    );
    Ok(())
}

fn keep(path: &std::path::Path, lines: &[Said]) -> Result<(), String> {
    let text: String = lines
        .iter()
        .filter_map(|l| serde_json::to_string(l).ok())
        .map(|l| l + "\n")
        .collect();
    let folder = path.parent().unwrap_or(path);
    fs_err::create_dir_all(folder)
        .and_then(|()| {
            fs_err::OpenOptions::new()
                .create(true)
                .append(true)
                .open(path)
        })
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|e| e.to_string())
}

/// The user's messages in a prompt: those of the transcript, then the message itself.
fn words_of(prompt: &str) -> Vec<String> {
    let (context, message) = match prompt
        .strip_prefix(MARK_OPEN)
        .and_then(|rest| rest.split_once(MARK_CLOSE))
    {
        Some((context, message)) => (context, message.trim_start()),
        None => ("", prompt),
    };
    let mut words: Vec<String> = context
        .split("<said ")
        .skip(1)
        .filter(|said| said.contains("by=\"user\""))
        .filter_map(|said| {
            said.split_once(">\n")?
                .1
                .split_once("\n</said>")
                .map(|(text, _)| unescape(text))
        })
        .collect();
    words.push(unescape(message));
    words
}

fn recall(told: &[String]) -> String {
    let Some((now, before)) = told.split_last() else {
        return "You said nothing.".into();
    };
    let quote = |text: &String| {
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let short: String = line.chars().take(QUOTE).collect();
        if short.len() < line.len() {
            format!("“{short}…”")
        } else {
            format!("“{short}”")
        }
    };
    if before.is_empty() {
        return format!("You said {}. Nothing came before it.", quote(now));
    }
    let shown = before.len().saturating_sub(RECALLED);
    let list: Vec<String> = before[shown..].iter().map(quote).collect();
    let more = if shown > 0 {
        format!("{shown} more, ")
    } else {
        String::new()
    };
    format!(
        "You said {}. Before that you told me: {more}{}.",
        quote(now),
        list.join(", ")
    )
}

/// Foreign readers may be gone; a CLI does not mind.
fn emit(line: &str) {
    let mut out = std::io::stdout().lock();
    let _written = writeln!(out, "{line}").and_then(|()| out.flush());
}
