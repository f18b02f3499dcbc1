//! A person at a terminal is asked what an agent wants to know.

use std::collections::BTreeMap;
use std::io::{BufRead, IsTerminal, Write};

use rejoin_core::{AnswerWish, Choice, QuestionKind, TurnId};
use rejoin_hub::{Error, QuestionView, TurnView};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::live::View;
use super::question::{chosen, item_lines, lines};
use crate::app::App;
use crate::failure::Result;
use crate::output::Output;

/// Asks one thing after the other; what others answer meanwhile is not asked any more.
#[derive(Default)]
pub(super) struct Dialog {
    asking: Option<Asking>,
    typed: Option<UnboundedReceiver<String>>,
    /// Nothing can be typed any more.
    left: bool,
}

struct Asking {
    question: QuestionView,
    answers: BTreeMap<String, Vec<String>>,
}

impl Dialog {
    /// Is there somebody who sees what is asked, and can type?
    pub(super) fn possible(out: Output) -> bool {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        !out.json
            && !out.quiet
            && !dumb
            && std::io::stdin().is_terminal()
            && std::io::stderr().is_terminal()
    }

    pub(super) fn is_asking(&self) -> bool {
        self.asking.is_some()
    }

    /// Whoever was there has left.
    pub(super) fn is_left(&self) -> bool {
        self.left
    }

    /// Looks at what the turn waits for, and asks it.
    pub(super) async fn look(&mut self, app: &App, turn: TurnId, live: &mut View) -> Result<()> {
        let waits = app.hub().store.read().await?.is_waiting(turn).await?;
        if waits {
            self.ask(app.out, app.hub().turn_view(turn).await?, live);
        } else {
            self.rest(app.out, live);
        }
        Ok(())
    }

    /// The turn waits for nobody any more.
    pub(super) fn rest(&mut self, out: Output, live: &mut View) {
        if self.asking.take().is_some() {
            out.note("");
        }
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
            out.say(&lines(&view.agent, &question, out.width()));
        }
        self.asking = Some(Asking {
            question,
            answers: BTreeMap::new(),
        });
        self.typed.get_or_insert_with(typed);
        self.prompt(out);
    }

    /// The next line that was typed.
    pub(super) async fn line(&mut self) -> Option<String> {
        match &mut self.typed {
            Some(typed) => typed.recv().await,
            None => std::future::pending().await,
        }
    }

    /// None: no more lines will come.
    pub(super) async fn hear(
        &mut self,
        app: &App,
        turn: TurnId,
        line: Option<String>,
    ) -> Result<()> {
        let Some(wish) = self.answer(app.out, line) else {
            return Ok(());
        };
        match app.hub().answer(turn, &wish).await {
            Ok(_) => app.runner.wake.send_modify(|n| *n += 1),
            // Somebody was faster, it has ended, or that was no answer and it is asked again.
            Err(error @ (Error::Conflict(_) | Error::QuestionGone { .. } | Error::Usage(_))) => {
                app.out.note(&error.to_string());
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// What was typed, once it answers what was asked.
    pub(super) fn answer(&mut self, out: Output, line: Option<String>) -> Option<AnswerWish> {
        let Some(line) = line else {
            self.typed = None;
            self.left = true;
            return None;
        };
        let wish = self.asking.as_mut()?.hear(line.trim());
        let Some(wish) = wish else {
            self.prompt(out);
            return None;
        };
        self.asking = None;
        Some(AnswerWish { by: me(), ..wish })
    }

    fn prompt(&self, out: Output) {
        let Some(asking) = &self.asking else { return };
        let Some(item) = asking.next() else {
            part("  allow, always or deny? ");
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

    /// None: more is to be said.
    fn hear(&mut self, line: &str) -> Option<AnswerWish> {
        let question_id = Some(self.question.id);
        let decided = |decision, message: &str| AnswerWish {
            question_id,
            decision: Some(decision),
            message: Some(message.to_owned()).filter(|m| !m.is_empty()),
            ..AnswerWish::default()
        };
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        if self.question.kind == QuestionKind::Approval {
            let choice = match word.to_lowercase().as_str() {
                "allow" | "a" | "yes" | "y" => Choice::Allow,
                "always" => Choice::Always,
                "deny" | "d" | "no" | "n" => Choice::Deny,
                _ => return None,
            };
            return Some(decided(choice, rest.trim()));
        }
        if line == "deny" {
            return Some(decided(Choice::Deny, ""));
        }
        let item = self.next()?;
        if line.is_empty() {
            return None;
        }
        let said = match chosen(item, line) {
            Ok(labels) if !labels.is_empty() && (item.multi || labels.len() == 1) => labels,
            Ok(_) | Err(_) => vec![line.to_owned()],
        };
        let id = item.id.clone();
        self.answers.insert(id, said);
        self.next().is_none().then(|| AnswerWish {
            question_id,
            answers: Some(self.answers.clone()),
            ..AnswerWish::default()
        })
    }
}

/// Lines as they are typed. Reading them cannot be given up, so it has a thread of its own.
fn typed() -> UnboundedReceiver<String> {
    let (send, receive) = unbounded_channel();
    std::thread::spawn(move || {
        let mut lines = std::io::stdin().lock().lines();
        while let Some(Ok(line)) = lines.next() {
            if send.send(line).is_err() {
                return;
            }
        }
    });
    receive
}

/// Who says so, for those who come second.
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
