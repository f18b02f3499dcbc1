//! Tries every capability that rejoin relies on with one binary; no key, no tokens, no network.

use rejoin_agents::{ProofRow, ProofState, RepositoryIsolation};
use rejoin_core::{Class, Outcome, PermissionMode, TotalsScope, TurnId};
use rejoin_model::{ModelServer, Options, Step, ToolCall};

use super::CANARY;
use super::sandbox::{Sandbox, SendOptions, SentTurn, Stopped, Subject};
use super::single_run::{UnusualRuns, unusual_runs};
use crate::stray_processes;

/// Rows of the proof, in the order in which they are tried. If a row of the kind `Resume` is
/// broken, the binary is not used to resume sessions.
pub const ROWS: &[(&str, Weight)] = &[
    ("start", Weight::Resume),
    ("text is data", Weight::Alone),
    ("repository not obeyed", Weight::Alone),
    ("resume", Weight::Resume),
    ("scope of its totals", Weight::Alone),
    ("cut back after a failed turn", Weight::Resume),
    ("tool list obeyed on resume", Weight::Resume),
    ("history as the API takes it", Weight::Alone),
    ("whole tree killed", Weight::Alone),
    ("refusal detected", Weight::Resume),
    ("no silent fresh start", Weight::Resume),
    ("fork", Weight::Alone),
    ("restore in an empty home", Weight::Alone),
    ("restore in another folder", Weight::Alone),
];

/// Consequence of a broken row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// No session is resumed with this binary.
    Resume,
    /// Only this capability is unavailable.
    Alone,
}

/// Returns the reason why a binary with these rows must not resume, if there is one.
pub(crate) fn no_resume(rows: &[ProofRow]) -> Option<String> {
    let weighs = |row: &&ProofRow| {
        row.state == ProofState::Broken
            && ROWS
                .iter()
                .any(|(what, weight)| *what == row.what && *weight == Weight::Resume)
    };
    let broken = rows.iter().find(weighs)?;
    Some(format!("{}: {}", broken.what, broken.evidence))
}

/// Tries everything. Calls `seen` with each row as soon as it is known.
pub(crate) async fn matrix(subject: Subject<'_>, seen: &mut dyn FnMut(&ProofRow)) -> Vec<ProofRow> {
    let mut rows = Rows { rows: vec![], seen };
    let why = match try_all(subject, &mut rows).await {
        Ok(()) => "something before it is broken",
        Err(Stopped::Late) => "a turn took too long: try again when the machine has less to do",
        Err(Stopped::Impossible) => {
            if rows.rows.is_empty() {
                rows.broken("start", "no turn could be run at all");
            }
            "no further turn could be run"
        }
    };
    for (what, _) in ROWS {
        if !rows.rows.iter().any(|row| row.what == *what) {
            rows.add(what, ProofState::NotTried, why);
        }
    }
    rows.rows
}

struct Rows<'a> {
    rows: Vec<ProofRow>,
    seen: &'a mut dyn FnMut(&ProofRow),
}

impl Rows<'_> {
    fn add(&mut self, what: &str, state: ProofState, evidence: &str) {
        let row = ProofRow {
            what: what.to_owned(),
            state,
            evidence: evidence.to_owned(),
        };
        (self.seen)(&row);
        self.rows.push(row);
    }

    fn broken(&mut self, what: &str, evidence: &str) {
        self.add(what, ProofState::Broken, evidence);
    }

    /// Adds a row: broken with this reason, or proven with this evidence. Returns true if it is
    /// proven.
    fn judge(&mut self, what: &str, broken: Option<String>, evidence: &str) -> bool {
        let Some(why) = broken else {
            self.add(what, ProofState::Proven, evidence);
            return true;
        };
        self.broken(what, &why);
        false
    }
}

/// Returns the word of message N; `answer` returns that of its answer.
fn word(n: usize) -> String {
    format!("proof-message-{n}-word")
}

fn answer(n: usize) -> String {
    format!("proof-answer-{n}-word")
}

fn runs(command: &str) -> Step {
    let input = serde_json::json!({"command": command, "description": "proof"});
    Step {
        tools: vec![ToolCall::new("Bash", input)],
        ..Step::default()
    }
}

/// Four processes that would run for ever. (Claude 2.1.325 does not let a command begin with
/// `sleep`.)
const BACKGROUND: &str = "tail -f /dev/null & setsid tail -f /dev/null & (setsid tail -f /dev/null &) ; tail -f /dev/null";

async fn try_all(subject: Subject<'_>, rows: &mut Rows<'_>) -> Result<(), Stopped> {
    let mut scripts: Vec<(String, Vec<Step>)> = (1..=9)
        .map(|n| (format!("proof-{n}"), vec![Step::text(answer(n))]))
        .collect();
    let tool = |n: usize, command: &str| {
        let steps = vec![runs(command), Step::text(answer(n))];
        (format!("proof-tool-{n}"), steps)
    };
    scripts.push(("proof-400".into(), vec![Step::status(400)]));
    scripts.push(tool(5, "echo x > allowed.txt"));
    scripts.push(tool(6, "echo x > denied.txt"));
    scripts.push(tool(7, BACKGROUND));
    let server = ModelServer::start(Options {
        scripts: scripts.into_iter().collect(),
        ..Options::default()
    })
    .await
    .map_err(|_| Stopped::Impossible)?;
    let stage = Sandbox::set(subject, &server)
        .await
        .ok_or(Stopped::Impossible)?;
    let play = Play {
        subject,
        server: &server,
        stage: &stage,
    };
    if play.begin(rows).await? {
        play.fail(rows).await?;
        play.permissions(rows).await?;
        play.kill(rows).await?;
        play.refusal(rows).await;
        play.restore(rows).await?;
    }
    server.stop().await;
    Ok(())
}

struct Play<'a> {
    subject: Subject<'a>,
    server: &'a ModelServer,
    stage: &'a Sandbox<'a>,
}

impl Play<'_> {
    async fn say(&self, text: &str, mode: PermissionMode) -> Result<SentTurn, Stopped> {
        let manner = SendOptions {
            mode,
            ..SendOptions::default()
        };
        self.stage.say(self.server, text, manner, None).await
    }

    /// Runs the first two turns. Returns false if nothing else needs to be tried.
    async fn begin(&self, rows: &mut Rows<'_>) -> Result<bool, Stopped> {
        let canary = self.stage.folder().join("canary.txt");
        fs_err::write(&canary, CANARY).map_err(|_| Stopped::Impossible)?;
        let first = format!("/clear {} @{} #s:proof-1", word(1), canary.display());
        let said = self.say(&first, PermissionMode::Edit).await?;
        let started = said.is("succeeded", "started");
        let broken = (!started || said.not_once(&[word(1)]).is_some()).then(|| said.what());
        if !rows.judge("start", broken, "a first turn, answered and recorded") {
            return Ok(false);
        }
        let read = said.shown().contains(CANARY);
        let broken = read.then(|| "a file that a message named was read".to_owned());
        rows.judge(
            "text is data",
            broken,
            "`/clear` and `@file` reached the model as text",
        );
        let (state, evidence) = contained(self.subject.facts.contained);
        rows.add("repository not obeyed", state, evidence);
        let text = format!("{} #s:proof-2", word(2));
        let said = self.say(&text, PermissionMode::Edit).await?;
        let words = [word(1), answer(1), word(2)];
        let broken = if said.is("succeeded", "resumed") {
            said.not_once(&words)
        } else {
            Some(said.what())
        };
        let resumed = rows.judge("resume", broken, "every message of before shown once");
        let (state, evidence) = match (
            self.subject.facts.totals,
            self.subject.facts.usage.unwrap_or(TotalsScope::Unproven),
        ) {
            (_, TotalsScope::Unproven) => (
                ProofState::Broken,
                "not proven: tokens of resumed turns are unknown",
            ),
            (TotalsScope::Cumulative, _) => (ProofState::Proven, "money adds up over a session"),
            (TotalsScope::PerRun, _) => (ProofState::Proven, "money is that of one run"),
            (TotalsScope::Unproven, TotalsScope::Cumulative) => (
                ProofState::Proven,
                "tokens add up over a session; no money is reported",
            ),
            (TotalsScope::Unproven, TotalsScope::PerRun) => (
                ProofState::Proven,
                "tokens are those of one run; no money is reported",
            ),
        };
        rows.add("scope of its totals", state, evidence);
        Ok(resumed)
    }

    async fn fail(&self, rows: &mut Rows<'_>) -> Result<(), Stopped> {
        let text = format!("{} #s:proof-400", word(3));
        let failed = self.say(&text, PermissionMode::Edit).await?;
        let text = format!("{} #s:proof-4", word(4));
        let said = self.say(&text, PermissionMode::Edit).await?;
        let words = [word(1), answer(1), word(2), answer(2), word(3), word(4)];
        let broken = if failed.turn.status != "failed" {
            Some(format!("a refused request ended {}", failed.what()))
        } else if said.is("succeeded", "resumed") {
            said.not_once(&words)
        } else {
            Some(said.what())
        };
        let evidence = "the failed turn left no trace, and the next resumed";
        rows.judge("cut back after a failed turn", broken, evidence);
        Ok(())
    }

    /// Tries the allowed tool first, so that a tool that never runs is not taken for a denied one.
    async fn permissions(&self, rows: &mut Rows<'_>) -> Result<(), Stopped> {
        let text = format!("{} #s:proof-tool-5", word(5));
        let allowed = self.say(&text, PermissionMode::Full).await?;
        let ran = self.stage.folder().join("allowed.txt").exists();
        let text = format!("{} #s:proof-tool-6", word(6));
        let denied = self.say(&text, PermissionMode::ReadOnly).await?;
        let leaked = self.stage.folder().join("denied.txt").exists();
        let what = "tool list obeyed on resume";
        // A CLI that offers excluded tools is stopped before it can write.
        let excluded = Class::Permissions.as_str();
        if leaked {
            rows.broken(what, "a read-only turn on a resumed session wrote a file");
        } else if let Some(error) = denied.turn.error.as_ref().filter(|it| it.class == excluded) {
            rows.broken(what, &error.message);
        } else if !ran {
            // Perhaps no command can run here at all; then nothing is proven.
            let why = format!("a command did not run under full: {}", allowed.what());
            rows.add(what, ProofState::NotTried, &why);
        } else {
            let resumed = denied.turn.verdict.as_deref() == Some("resumed");
            let broken = (!resumed).then(|| denied.what());
            let evidence = "a command ran under full, and did not when read-only";
            rows.judge(what, broken, evidence);
        }
        let asked = [&allowed, &denied];
        let odd = asked
            .iter()
            .flat_map(|said| &said.asked)
            .find_map(|r| r.irregular.clone());
        let evidence = "calls and results in pairs, also after a resume";
        rows.judge("history as the API takes it", odd, evidence);
        Ok(())
    }

    async fn kill(&self, rows: &mut Rows<'_>) -> Result<(), Stopped> {
        let text = format!("{} #s:proof-tool-7", word(7));
        let manner = SendOptions {
            mode: PermissionMode::Full,
            ..SendOptions::default()
        };
        let under_way = |turn: TurnId| {
            let turn = turn.to_string();
            let ours = |m: &&stray_processes::Marked| m.command.trim() == "tail -f /dev/null";
            stray_processes::marked(&turn).iter().filter(ours).count() == 4
        };
        let said = self
            .stage
            .say(self.server, &text, manner, Some(under_way))
            .await?;
        let left = live_on(&said.turn.turn_id.to_string()).await;
        let what = "whole tree killed";
        if said.turn.status != "cancelled" && left == 0 {
            let why = format!("a command did not run under full: {}", said.what());
            rows.add(what, ProofState::NotTried, &why);
            return Ok(());
        }
        let broken = (left > 0).then(|| format!("{left} processes live on"));
        let evidence = "a cancelled turn with four background processes left none";
        rows.judge(what, broken, evidence);
        Ok(())
    }

    /// Tries a session that the CLI cannot know: the CLI must refuse it and must not silently start
    /// another one. Also tries a fork.
    async fn refusal(&self, rows: &mut Rows<'_>) {
        self.server.clear();
        let Some(UnusualRuns {
            unknown: (ran, unknown),
            went_on,
            fork,
        }) = unusual_runs(self.subject, self.server).await
        else {
            return;
        };
        let said = match &ran.outcome {
            Outcome::Succeeded => "succeeded".to_owned(),
            Outcome::Failed(failure) | Outcome::Lost(failure) => failure.message.clone(),
            Outcome::Cancelled => "cancelled".to_owned(),
        };
        let refused = (!ran.refused).then(|| format!("not recognised as a refusal: {said}"));
        let evidence = "an unknown session is refused, and said to be";
        rows.judge("refusal detected", refused, evidence);
        let other = ran.session.as_ref().is_some_and(|s| *s != unknown);
        let fresh = if went_on || ran.outcome == Outcome::Succeeded {
            Some("it went on without the session it was told to resume".to_owned())
        } else {
            other.then(|| "it began another session".to_owned())
        };
        let evidence = "an unknown session is not replaced by a new one";
        rows.judge("no silent fresh start", fresh, evidence);
        match fork {
            None => rows.add("fork", ProofState::NotTried, "it has no fork of its own"),
            Some(wrong) => {
                rows.judge(
                    "fork",
                    wrong.err(),
                    "a copy knows what its parent knew, under its own id",
                );
            }
        }
    }

    async fn restore(&self, rows: &mut Rows<'_>) -> Result<(), Stopped> {
        for (what, n, elsewhere, evidence) in [
            (
                "restore in an empty home",
                8,
                false,
                "the session's file alone is enough",
            ),
            (
                "restore in another folder",
                9,
                true,
                "also where the folder is another",
            ),
        ] {
            let Some(stage) = self.stage.moved(self.server).await else {
                rows.broken(what, "the session's file could not be copied");
                continue;
            };
            let manner = SendOptions {
                elsewhere,
                ..SendOptions::default()
            };
            let text = format!("{} #s:proof-{n}", word(n));
            let said = stage.say(self.server, &text, manner, None).await;
            let broken = match said {
                Err(Stopped::Late) => return Err(Stopped::Late),
                Err(Stopped::Impossible) => Some("no turn could be run".to_owned()),
                Ok(said) if said.is("succeeded", "resumed") => {
                    said.not_once(&[word(1), answer(1), word(2), answer(2), word(4), word(n)])
                }
                Ok(said) => Some(said.what()),
            };
            rows.judge(what, broken, evidence);
        }
        Ok(())
    }
}

/// Returns the row for the proof that was made when the binary was first seen.
fn contained(proof: Option<RepositoryIsolation>) -> (ProofState, &'static str) {
    match proof {
        Some(RepositoryIsolation::Proven) => (
            ProofState::Proven,
            "hooks, servers, helpers and tasks of a hostile repository did not run",
        ),
        Some(RepositoryIsolation::Broken) => (
            ProofState::Broken,
            "a hostile repository ran a program or sent a prompt; such repositories are refused",
        ),
        Some(RepositoryIsolation::NoFlags) => (
            ProofState::NotTried,
            "no flag for it: such repositories are refused",
        ),
        Some(RepositoryIsolation::Untested) | None => (
            ProofState::NotTried,
            "no turn showed it: such repositories are refused",
        ),
    }
}

/// Counts the live processes of a turn. Killed processes may take a moment to disappear.
async fn live_on(turn: &str) -> usize {
    let count = || {
        let left = stray_processes::marked(turn);
        left.iter()
            .filter(|m| !m.command.contains(" shim "))
            .count()
    };
    let mut left = count();
    for _ in 0..MOMENTS {
        if left == 0 {
            break;
        }
        tokio::time::sleep(MOMENT).await;
        left = count();
    }
    left
}

const MOMENT: std::time::Duration = std::time::Duration::from_millis(50);
const MOMENTS: usize = 40;
