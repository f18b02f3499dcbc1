//! The demo agent asks: `ask: Which colour? Red | Blue`, several questions in several lines, `+ ` before
//! one that takes several answers; `approve: rm -r x`, one after the other in several lines.

use std::io::BufRead;

use rejoin_core::{Asked, Choice, Given, QuestionItem, QuestionKind, QuestionOption};
use serde_json::json;

use super::emit;

/// Asks and returns the answer in a sentence; none: the prompt requests no question.
pub(super) fn ask(
    message: &str,
    id: &str,
    stdin: &mut impl BufRead,
) -> Result<Option<String>, String> {
    let mut told = None;
    for asked in asked(message, id) {
        let mut line = serde_json::to_value(&asked).map_err(|e| e.to_string())?;
        line["type"] = json!("ask");
        emit(&line.to_string());
        let mut answer = String::new();
        stdin.read_line(&mut answer).map_err(|e| e.to_string())?;
        if answer.is_empty() {
            return Err("it asked, and nobody said anything".into());
        }
        let given: Given =
            serde_json::from_str(&answer).map_err(|e| format!("not an answer: {e}"))?;
        *told.get_or_insert_with(String::new) += &heard(&asked, &given);
    }
    Ok(told)
}

fn asked(message: &str, id: &str) -> Vec<Asked> {
    if let Some(questions) = message.strip_prefix("ask:") {
        return vec![Asked {
            call_id: format!("{id}-asks"),
            kind: QuestionKind::Question,
            tool: "Ask".into(),
            input: json!({}),
            questions: questions.trim().lines().enumerate().map(item).collect(),
        }];
    }
    let commands = message.lines().map_while(|l| l.strip_prefix("approve:"));
    let approval = |(at, command): (usize, &str)| Asked {
        call_id: format!("{id}-asks-{at}"),
        kind: QuestionKind::Approval,
        tool: "Shell".into(),
        input: json!({"command": command.trim()}),
        questions: vec![],
    };
    commands.enumerate().map(approval).collect()
}

fn item((at, line): (usize, &str)) -> QuestionItem {
    let (multi, line) = match line.trim().strip_prefix("+ ") {
        Some(rest) => (true, rest),
        None => (false, line.trim()),
    };
    let (text, options) = match line.split_once('?') {
        Some((text, options)) => (format!("{text}?"), options),
        None => (line.to_owned(), ""),
    };
    let options = options.split('|').map(str::trim).filter(|o| !o.is_empty());
    QuestionItem {
        id: (at + 1).to_string(),
        text,
        options: options
            .map(|label| QuestionOption {
                label: label.to_owned(),
                description: String::new(),
            })
            .collect(),
        multi,
    }
}

fn heard(asked: &Asked, given: &Given) -> String {
    let why = given.message.as_deref().unwrap_or("no reason given");
    match (asked.kind, given.decision) {
        (_, Choice::Deny) => format!("You said no ({why}). "),
        (QuestionKind::Approval, Choice::Allow) => "You allowed it. ".into(),
        (QuestionKind::Approval, Choice::Always) => "You allowed it for good. ".into(),
        (QuestionKind::Question, Choice::Allow | Choice::Always) => {
            format!("You answered {}. ", given.told())
        }
    }
}
