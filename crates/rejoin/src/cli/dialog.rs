//! A person at a terminal is asked what an agent wants to know.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};

use rejoin_core::{AnswerRequest, Choice, QuestionKind};
use rejoin_hub::{QuestionView, TurnView};

use super::progress_view::View;
use super::question::{CHANGED_LINES, chosen, item_lines, lines};
use super::typed_lines::{self, TypedLines};
use crate::output::Output;

/// Explanation of the keys of an approval.
const HELP: &str = "a: allow this once; A: allow the like for the rest of this process; d: deny, with a reason if you like (d not on a Friday)";

/// Asks one thing after the other; what others answer meanwhile is not asked any more.
#[derive(Default)]
pub(super) struct Dialog {
    asking: Option<Asking>,
    typed: Option<TypedLines>,
    /// Nothing can be typed any more.
    left: bool,
}

struct Asking {
    question: QuestionView,
    answers: BTreeMap<String, Vec<String>>,
}

impl Dialog {
    /// Returns true if a person sees the questions and can type.
    pub(super) fn possible(out: Output) -> bool {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        !out.json
            && !out.quiet
            && !dumb
            && std::io::stderr().is_terminal()
            && typed_lines::possible()
    }

    pub(super) fn is_asking(&self) -> bool {
        self.asking.is_some()
    }

    /// Returns true if stdin has ended.
    pub(super) fn is_left(&self) -> bool {
        self.left
    }

    /// The turn waits for nobody any more.
    pub(super) fn rest(&mut self, out: Output, live: &mut View) {
        if self.asking.take().is_some() {
            out.note("");
        }
        self.typed = None;
        live.hold(false);
    }

    /// Asks what a turn that waits wants to know.
    pub(super) fn ask(&mut self, out: Output, view: TurnView, live: &mut View) {
        let pending = |asking: &Asking| view.questions.iter().any(|q| q.id == asking.question.id);
        if self.asking.as_ref().is_some_and(pending) {
            return;
        }
        let Some(question) = view.questions.into_iter().next() else {
            return;
        };
        live.hold(true);
        if question.kind == QuestionKind::Approval {
            out.say(&lines(&view.agent, &question, out.width(), CHANGED_LINES));
        }
        self.asking = Some(Asking {
            question,
            answers: BTreeMap::new(),
        });
        self.typed.get_or_insert_with(TypedLines::begin);
        self.prompt(out);
    }

    /// The next line that was typed.
    pub(super) async fn line(&mut self) -> Option<String> {
        match &mut self.typed {
            Some(typed) => typed.next().await,
            None => std::future::pending().await,
        }
    }

    /// Returns the answer once the typed lines complete one.
    pub(super) fn answer(&mut self, out: Output, line: Option<String>) -> Option<AnswerRequest> {
        let Some(line) = line else {
            self.typed = None;
            self.left = true;
            return None;
        };
        let Some(asking) = &mut self.asking else {
            typed_lines::keep_unused(line);
            return None;
        };
        let wish = match asking.hear(line.trim()) {
            Ok(wish) => wish,
            Err(why) => {
                out.note(&format!("  {why}"));
                None
            }
        };
        let Some(wish) = wish else {
            self.prompt(out);
            return None;
        };
        self.asking = None;
        Some(AnswerRequest { by: me(), ..wish })
    }

    fn prompt(&self, out: Output) {
        let Some(asking) = &self.asking else { return };
        let Some(item) = asking.next() else {
            part("  [a]llow [A]lways [d]eny [?] ");
            return;
        };
        out.say(&item_lines(item, out.width()));
        part(match (item.options.is_empty(), item.multi) {
            (true, _) => "  your answer: ",
            (false, true) => "  numbers, other words, or deny: ",
            (false, false) => "  a number, other words, or deny: ",
        });
    }
}

impl Asking {
    fn next(&self) -> Option<&rejoin_core::QuestionItem> {
        let open = |item: &&rejoin_core::QuestionItem| !self.answers.contains_key(&item.id);
        self.question.questions.iter().find(open)
    }

    /// Takes a line. Returns none while more input is needed, and an error for a number that is no
    /// option.
    fn hear(&mut self, line: &str) -> Result<Option<AnswerRequest>, String> {
        let question_id = Some(self.question.id);
        let decided = |decision, message: &str| AnswerRequest {
            question_id,
            decision: Some(decision),
            message: Some(message.to_owned()).filter(|m| !m.is_empty()),
            ..AnswerRequest::default()
        };
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        if self.question.kind == QuestionKind::Approval {
            let choice = match word {
                "A" => Choice::Always,
                _ => match word.to_lowercase().as_str() {
                    "allow" | "a" | "yes" | "y" => Choice::Allow,
                    "always" => Choice::Always,
                    "deny" | "d" | "no" | "n" => Choice::Deny,
                    "" => return Ok(None),
                    _ => return Err(HELP.to_owned()),
                },
            };
            return Ok(Some(decided(choice, rest.trim())));
        }
        if line == "deny" {
            return Ok(Some(decided(Choice::Deny, "")));
        }
        let Some(item) = self.next().filter(|_| !line.is_empty()) else {
            return Ok(None);
        };
        let numbers = line
            .chars()
            .all(|c| c.is_ascii_digit() || c == ',' || c == ' ');
        let said = match chosen(item, line) {
            Ok(labels) if labels.len() == 1 || (item.multi && !labels.is_empty()) => labels,
            Ok(_) if numbers => return Err("it takes one number only".into()),
            Err(why) if numbers && !item.options.is_empty() => return Err(why),
            Ok(_) | Err(_) => vec![line.to_owned()],
        };
        let id = item.id.clone();
        self.answers.insert(id, said);
        Ok(self.next().is_none().then(|| AnswerRequest {
            question_id,
            answers: Some(self.answers.clone()),
            ..AnswerRequest::default()
        }))
    }
}

/// The name that an answer is stored under.
pub(super) fn me() -> String {
    let named = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    named("USER")
        .or_else(|| named("LOGNAME"))
        .unwrap_or_else(|| format!("user {}", nix::unistd::getuid()))
}

/// Our own words, on the line in which the answer is typed.
fn part(text: &str) {
    let mut err = std::io::stderr().lock();
    let _gone = write!(err, "{text}").and_then(|()| err.flush());
}
