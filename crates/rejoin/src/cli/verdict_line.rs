//! Last line of a turn. In a pipe it is the summary of the contract; on a terminal it is a shorter
//! one, with the facts in the order of their worth, or an error with its next step.

use std::io::IsTerminal as _;

use rejoin_core::{Reason, TurnStatus};
use rejoin_hub::TurnView;

use crate::output::format::duration;
use crate::output::{Line, Output, suggestion};
use rejoin_errors::CommandError;

/// Prints the last line of a turn on stderr.
pub(super) fn print(out: Output, view: &TurnView) {
    if !std::io::stderr().is_terminal() {
        out.note(&view.summary);
        return;
    }
    match view.status.parse() {
        Ok(TurnStatus::Succeeded) => {
            let line = Line::faint(&succeeded(view, out.width()));
            out.say(&line.wrap(out.width()));
        }
        Ok(TurnStatus::Failed | TurnStatus::Lost) => out.failure(&failed(view)),
        _ => out.note(view.summary.trim_start_matches("rejoin: ")),
    }
}

/// Returns the failure of a turn: the message, what is kept, and the next step.
fn failed(view: &TurnView) -> CommandError {
    let error = view.error.as_ref();
    let message = error.map_or("the turn did not succeed", |error| error.message.as_str());
    let kept = view
        .summary
        .split(" · ")
        .find(|part| part.contains("kept, "));
    let kept = kept.map(|kept| format!(" ({kept})")).unwrap_or_default();
    CommandError {
        exit: 1,
        code: "failed",
        message: format!("{}{kept}", message.trim_end_matches('.')),
        next: error.and_then(|error| error.next.clone()),
    }
}

/// Formats `VERDICT · COST · TIME · AGENT MODEL · REF[ · NOTE]`. Leaves out the model, then the
/// command to explain, where the line would be wider than `width`.
fn succeeded(view: &TurnView, width: usize) -> String {
    let parts: Vec<&str> = view.summary.split(" · ").collect();
    let reference = parts.iter().position(|part| *part == view.handle);
    let cost = parts
        .iter()
        .rposition(|part| part.starts_with('$') || *part == "cost unknown");
    let price = cost.map_or("cost unknown", |at| parts[at]);
    let price = price.split(" (fresh").next().unwrap_or(price);
    let notes = cost.and_then(|at| parts.get(at + 2..)).unwrap_or_default();
    let notes: Vec<&str> = notes.to_vec();
    let joined = view.reason.as_deref() == Some(Reason::NoSession.as_str());
    let verdict = if joined {
        joins(view)
    } else {
        let words = parts.get(..reference.unwrap_or(1)).unwrap_or_default();
        words.join(", ").trim_start_matches("rejoin: ").to_owned()
    };
    let took = duration(view.duration_ms);
    let line = |agent: &str, notes: &[&str]| {
        let mut line = format!("{verdict} · {price} · {took} · {agent} · {}", view.handle);
        for note in notes.iter().filter(|note| !joined || !explains(note)) {
            line.push_str(" · ");
            line.push_str(&suggestion(note));
        }
        line
    };
    let model = view.model.as_deref().unwrap_or_default();
    let model = model
        .strip_prefix(&format!("{}-", view.agent))
        .unwrap_or(model);
    let model = if model == view.agent { "" } else { model };
    let fits = |line: &String| Line::plain(line).width() <= width;
    let whole = line(format!("{} {model}", view.agent).trim_end(), &notes);
    if fits(&whole) {
        return whole;
    }
    let short = line(&view.agent, &notes);
    // The command to explain is the least; every other note stays, on a second row if it must.
    let told: Vec<&str> = notes
        .iter()
        .copied()
        .filter(|note| !explains(note))
        .collect();
    let shorter = line(&view.agent, &told);
    if fits(&short) || !fits(&shorter) {
        short
    } else {
        shorter
    }
}

fn explains(note: &str) -> bool {
    note.starts_with("rejoin explain")
}

/// `joined: codex was told all 2 messages`
pub(super) fn joins(view: &TurnView) -> String {
    let (told, left_out) = (view.sent.transcribed, view.sent.left_out);
    let agent = &view.agent;
    let count = crate::output::format::count;
    match left_out {
        0 => format!("joined: {agent} was told all {}", count(told, "message")),
        _ => {
            let all = count(told + left_out, "message");
            format!("joined: {agent} was told {told} of {all}")
        }
    }
}
