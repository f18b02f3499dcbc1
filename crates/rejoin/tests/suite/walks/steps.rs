//! One step: chosen by dice, done with the real program, held against the oracle.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use rejoin_testkit::{Cli, Done, Model, World, answer, kill, slowly, user, wait_for, words_in};
use serde_json::Value;

use super::oracle::{Dice, Talk, Told, Undo};

const DEMO: &str = "demo";
/// Conversations at a time.
const TALKS: usize = 4;

pub(super) struct Walk {
    world: World,
    clis: [&'static dyn Cli; 4],
    scope: &'static str,
    dice: Dice,
    seed: u64,
    talks: Vec<Talk>,
    /// The last word that was used, and the last root.
    word: usize,
    roots: usize,
    /// Older bytes of sessions.
    older: BTreeMap<PathBuf, Vec<u8>>,
    log: Vec<String>,
}

/// How a turn is to go.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    Good,
    Fresh,
    Refused400,
    /// kill -9 of the agent's CLI while it waits for the model.
    CliKilled,
    /// kill -9 of everything.
    AllKilled,
    /// kill -9 of `rejoin send`; the turn ends by itself.
    SenderKilled,
}

impl Walk {
    pub(super) fn new(
        seed: u64,
        clis: [&'static dyn Cli; 4],
        scope: &str,
        steps: usize,
    ) -> Option<Self> {
        let most = steps * 2 + 9;
        let scripts = (1..=most).flat_map(|n| {
            [
                (format!("a{n}"), vec![rejoin_model::Step::text(answer(n))]),
                (format!("z{n}"), vec![slowly(&answer(n), 8)]),
            ]
        });
        let model = Model::with(scripts.collect());
        let mut world = World::of_all(env!("CARGO_BIN_EXE_rejoin"), &clis, model)?;
        world.set("REJOIN_RESUME_SCOPE", scope);
        let mut walk = Self {
            world,
            clis,
            scope: if scope == "agent" { "agent" } else { "full" },
            dice: Dice(seed),
            seed,
            talks: vec![],
            word: 0,
            roots: 0,
            older: BTreeMap::new(),
            log: vec![],
        };
        walk.begin();
        Some(walk)
    }

    pub(super) fn step(&mut self) {
        let at = self.some_talk();
        let long = self.talks[at].told.len() >= 3;
        match self.dice.roll(30) {
            0..=10 => self.turn(at, Fate::Good),
            11 => self.turn(at, Fate::Fresh),
            12 => self.turn(at, Fate::Refused400),
            13 => self.turn(at, Fate::CliKilled),
            14 => self.turn(at, Fate::AllKilled),
            15 => self.turn(at, Fate::SenderKilled),
            16 | 17 if long => self.edit(at),
            18 if long => self.truncate(at),
            19 | 20 => self.retry(at),
            21 => self.fork(at),
            22 => self.merge(at),
            23 | 24 => self.undo(at),
            25 => self.lose(at),
            26 => self.make_stale(at),
            27 | 28 => self.by_hand(at),
            29 if self.living().len() < TALKS => self.begin(),
            _ => self.turn(at, Fate::Good),
        }
        self.check();
    }

    /// Every agent once more, and nothing is left running.
    pub(super) fn end(&mut self) {
        for at in self.living() {
            self.turn(at, Fate::Good);
            self.check();
        }
        self.world.assert_quiet();
    }

    fn note(&mut self, text: String) {
        eprintln!("seed {}: {text}", self.seed);
        self.log.push(text);
    }

    fn living(&self) -> Vec<usize> {
        let all = 0..self.talks.len();
        all.filter(|at| !self.talks[*at].gone).collect()
    }

    fn some_talk(&mut self) -> usize {
        let living = self.living();
        // The newest more often: long conversations are where things go wrong.
        match self.dice.roll(3) {
            0 => living[self.dice.roll(living.len())],
            _ => living[0],
        }
    }

    fn some_agent(&mut self) -> String {
        // The slower ones less often.
        let all = [
            "claude", "claude", "codex", "codex", "opencode", "gemini", DEMO,
        ];
        all[self.dice.roll(all.len())].to_owned()
    }

    fn some_message(&mut self, at: usize) -> usize {
        let n = self.talks[at].told.len();
        n - 1 - self.dice.roll(n.min(5))
    }

    fn told(&mut self, agent: Option<&str>, text: &str) -> Told {
        self.roots += 1;
        Told {
            agent: agent.map(str::to_owned),
            text: text.to_owned(),
            root: self.roots,
        }
    }

    fn next_word(&mut self) -> usize {
        self.word += 1;
        self.word
    }

    #[track_caller]
    fn fail(&self, what: &str) -> ! {
        panic!(
            "{what}\nREJOIN_WALK_SEED={} replays it; steps:\n{}",
            self.seed % 1000,
            self.log.join("\n")
        );
    }

    #[track_caller]
    fn must(&self, done: Done) -> Done {
        if done.code != 0 {
            self.fail(&format!("{done:?}"));
        }
        done
    }

    fn begin(&mut self) {
        let agent = self.some_agent();
        let n = self.next_word();
        let text = format!("{} #s:a{n}", user(n));
        self.note(format!("begin with {agent}"));
        let args = ["send", "--json", "-a", &agent, "--", &text];
        let turn = self.must(self.world.run(&args)).json();
        let mut talk = Talk {
            id: turn["conversation_id"].as_str().unwrap().to_owned(),
            ..Talk::default()
        };
        talk.told = vec![
            self.told(None, &text),
            self.told(Some(&agent), turn["text"].as_str().unwrap()),
        ];
        self.talks.push(talk);
        self.check();
    }

    fn turn(&mut self, at: usize, fate: Fate) {
        let mut agent = self.some_agent();
        if agent == DEMO && !matches!(fate, Fate::Good | Fate::Fresh) {
            agent = "claude".into();
        }
        let n = self.next_word();
        let script = match fate {
            Fate::Good | Fate::Fresh => format!("a{n}"),
            Fate::Refused400 => "e400".into(),
            Fate::CliKilled | Fate::AllKilled => "hang".into(),
            Fate::SenderKilled => format!("z{n}"),
        };
        let text = format!("{} #s:{script}", user(n));
        let id = self.talks[at].id.clone();
        self.note(format!("talk {at}: {fate:?} {agent} {}", user(n)));
        let next = ["explain", &id, "--next", "--json", "-a", &agent];
        let next = self.must(self.world.run(&next)).json();
        self.talks[at].take_in();
        self.check();
        let mut args = vec!["send", "--json", "-c", &id, "-a", &agent];
        if fate == Fate::Fresh {
            args.push("--fresh-session");
        }
        args.extend(["--", &text]);
        let child = self.world.spawn(&args);
        let pid = child.id() as i32;
        match fate {
            Fate::Good | Fate::Fresh | Fate::Refused400 => {}
            Fate::CliKilled => kill(self.running(&agent, n), "KILL"),
            Fate::AllKilled => {
                self.running(&agent, n);
                kill(pid, "KILL");
                for (pid, _) in self.world.leftovers() {
                    let _gone = std::process::Command::new("kill")
                        .args(["-9", &pid.to_string()])
                        .stderr(std::process::Stdio::null())
                        .status();
                }
            }
            Fate::SenderKilled => {
                self.running(&agent, n);
                kill(pid, "KILL");
            }
        }
        let done = Done::of(child);
        let new = self.told(None, &text);
        self.talks[at].told.push(new);
        match fate {
            Fate::Good | Fate::Fresh => {
                let turn = self.must(done).json();
                if fate == Fate::Good
                    && (&turn["verdict"], &turn["reason"]) != (&next["verdict"], &next["reason"])
                    && turn["reason"] != "rejected"
                {
                    self.fail(&format!("foreseen {next:#}\nbut it went {turn:#}"));
                }
                self.answered(at, &agent, n, &turn);
            }
            Fate::Refused400 | Fate::CliKilled => {
                if done.code == 0 {
                    self.fail(&format!("it answered: {done:?}"));
                }
            }
            Fate::AllKilled => {}
            Fate::SenderKilled => {
                wait_for("the turn to end by itself", 60, || {
                    let shown = self.shown(at);
                    (shown["conversation"]["state"] == "idle").then_some(())
                });
                let turn = self.world.run(&["explain", &id, "--json"]).json();
                if turn["status"] == "succeeded" {
                    self.answered(at, &agent, n, &turn);
                }
            }
        }
    }

    /// The process of the agent's CLI, once the model was asked.
    fn running(&self, agent: &str, n: usize) -> i32 {
        self.world.wait_until_asked(&user(n));
        let bin = &self.world.env[&format!("REJOIN_AGENTS_{}_BIN", agent.to_uppercase())];
        let found = self
            .world
            .pid_of(|command| command.contains(bin) && !command.starts_with("rejoin"));
        found.unwrap_or_else(|| self.fail("its CLI is not running"))
    }

    fn answered(&mut self, at: usize, agent: &str, n: usize, turn: &Value) {
        let text = turn["text"].as_str().unwrap_or_default().to_owned();
        let shown = self.talks[at].seen_by(self.scope, agent);
        if agent == DEMO {
            // It tells what it was told by the user: the newest first, then all before.
            let mut by_user: Vec<String> = self.by_user(at, agent);
            by_user.rotate_right(1);
            if words_in(&text) != by_user {
                self.fail(&format!("demo was told {text}\nnot {by_user:?}"));
            }
        } else {
            if text != answer(n) {
                self.fail(&format!("it answered {text:?}: {turn:#}"));
            }
            let last = self.world.model.last().history().to_string();
            if words_in(&last) != shown {
                self.fail(&format!(
                    "{agent} was shown {:?}\nnot           {shown:?}\n{turn:#}\n{last}",
                    words_in(&last)
                ));
            }
        }
        let new = self.told(Some(agent), &text);
        self.talks[at].told.push(new);
    }

    fn by_user(&self, at: usize, agent: &str) -> Vec<String> {
        let mut talk = self.talks[at].clone();
        let foreign = |told: &Told| told.agent.as_ref().is_some_and(|by| by != agent);
        if self.scope == "agent"
            && let Some(cut) = talk.told.iter().rposition(foreign)
        {
            talk.told.drain(..=cut);
        }
        talk.told.retain(|told| told.agent.is_none());
        talk.seen_by("full", agent)
    }

    fn edit(&mut self, at: usize) {
        let i = self.some_message(at);
        let n = self.next_word();
        let agent = self.talks[at].told[i].agent.clone();
        let text = match agent {
            None => format!("{} #s:a{n}", user(n)),
            Some(_) => answer(n),
        };
        let id = self.message_id(at, i);
        self.note(format!("talk {at}: edit message {} to {}", i + 1, text));
        self.must(self.world.run(&["edit", &id, "--", &text]));
        let old = std::mem::replace(&mut self.talks[at].told[i].text, text);
        self.talks[at].undo.push(Undo::Edit { at: i, text: old });
    }

    fn truncate(&mut self, at: usize) {
        let i = self.some_message(at).max(1);
        let id = self.message_id(at, i);
        self.note(format!("talk {at}: truncate from {}", i + 1));
        self.must(self.world.run(&["truncate", &id]));
        let removed = self.talks[at].cut(i);
        self.talks[at].undo.push(Undo::Cut { from: i, removed });
    }

    fn retry(&mut self, at: usize) {
        let users = |told: &Told| told.agent.is_none() && told.text.contains("#s:a");
        let all: Vec<usize> = (0..self.talks[at].told.len())
            .filter(|i| users(&self.talks[at].told[*i]))
            .collect();
        let Some(newest) = all.len().checked_sub(1) else {
            return;
        };
        let i = all[newest - self.dice.roll(all.len().min(3))];
        let agent = self.some_agent();
        let id = self.message_id(at, i);
        self.note(format!("talk {at}: retry {} with {agent}", i + 1));
        if !self.talks[at].pending.is_empty() {
            // What was said by hand would come before the message that is run again.
            let c = self.talks[at].id.clone();
            self.must(self.world.run(&["explain", &c, "--next", "--json"]));
            self.talks[at].take_in();
        }
        let done = self.world.run(&["retry", "--json", "-a", &agent, &id]);
        let turn = self.must(done).json();
        let removed = self.talks[at].cut(i + 1);
        self.talks[at].undo.push(Undo::Cut {
            from: i + 1,
            removed,
        });
        let n = words_in(&self.talks[at].told[i].text)[0]
            .trim_start_matches("userword-")
            .trim_end_matches("-end")
            .parse()
            .unwrap();
        self.answered(at, &agent, n, &turn);
    }

    fn fork(&mut self, at: usize) {
        if self.living().len() >= TALKS {
            return self.turn(at, Fate::Good);
        }
        let i = self.some_message(at);
        let c = self.talks[at].id.clone();
        self.note(format!(
            "talk {at}: fork at {} as talk {}",
            i + 1,
            self.talks.len()
        ));
        let place = (i + 1).to_string();
        let fork = self.must(self.world.run(&["fork", &c, "--at", &place, "--json"]));
        self.talks.push(Talk {
            id: fork.json()["conversation_id"].as_str().unwrap().to_owned(),
            told: self.talks[at].told[..=i].to_vec(),
            ..Talk::default()
        });
        let child = self.talks.len() - 1;
        // Both go on at once, sometimes.
        if self.dice.roll(2) == 0 {
            self.both(at, child);
        }
    }

    /// Two turns at the same time, with the same agent.
    fn both(&mut self, one: usize, other: usize) {
        let agent = ["claude", "codex"][self.dice.roll(2)].to_owned();
        let (n, m) = (self.next_word(), self.next_word());
        self.note(format!(
            "talks {one} and {other}: both {agent} {} {}",
            user(n),
            user(m)
        ));
        let start = |at: usize, n: usize| {
            let text = format!("{} #s:a{n}", user(n));
            let args = [
                "send",
                "--json",
                "-c",
                &self.talks[at].id,
                "-a",
                &agent,
                "--",
                &text,
            ];
            (text.clone(), self.world.spawn(&args))
        };
        let first = start(one, n);
        let second = start(other, m);
        for (at, n, (text, child)) in [(one, n, first), (other, m, second)] {
            let turn = self.must(Done::of(child)).json();
            self.talks[at].take_in();
            let new = self.told(None, &text);
            self.talks[at].told.push(new);
            let shown = self.talks[at].seen_by(self.scope, &agent);
            let asked = self.world.model.requests();
            let asked = asked.iter().map(|r| words_in(&r.history().to_string()));
            if !asked.into_iter().any(|words| words == shown) {
                self.fail(&format!("nobody was shown {shown:?}: {turn:#}"));
            }
            let new = self.told(Some(&agent), &answer(n));
            self.talks[at].told.push(new);
        }
    }

    fn merge(&mut self, at: usize) {
        let others: Vec<usize> = self.living().into_iter().filter(|o| *o != at).collect();
        if others.is_empty() {
            return self.begin();
        }
        let into = others[self.dice.roll(others.len())];
        let (from_id, into_id) = (self.talks[at].id.clone(), self.talks[into].id.clone());
        self.note(format!("merge talk {at} into talk {into}"));
        let done = self.world.run(&["merge", &from_id, &into_id, "--json"]);
        if self.talks[at].shares_with(&self.talks[into]) {
            if done.code != 4 {
                self.fail(&format!("forks were merged: {done:?}"));
            }
            return;
        }
        self.must(done);
        let (of_from, of_into) = (self.talks[at].told.clone(), self.talks[into].told.clone());
        // Conversations are numbered as they began.
        self.talks[into].told = if at < into {
            [of_from.clone(), of_into.clone()].concat()
        } else {
            [of_into.clone(), of_from.clone()].concat()
        };
        let mut pending = std::mem::take(&mut self.talks[at].pending);
        self.talks[into].pending.append(&mut pending);
        self.talks[at].gone = true;
        self.talks[into].undo.push(Undo::Merge {
            from: at,
            of_from,
            of_into,
        });
    }

    fn undo(&mut self, at: usize) {
        let c = self.talks[at].id.clone();
        self.note(format!("talk {at}: undo"));
        // A pin that went back with its conversation brings what was said in it along.
        if !self.talks[at].pending.is_empty() {
            self.must(self.world.run(&["explain", &c, "--next", "--json"]));
            self.talks[at].take_in();
        }
        let done = self.world.run(&["undo", &c, "--json"]);
        let Some(undo) = self.talks[at].undo.pop() else {
            if done.code != 4 {
                self.fail(&format!("there was nothing to undo: {done:?}"));
            }
            return;
        };
        self.must(done);
        match undo {
            Undo::Edit { at: i, text } => self.talks[at].told[i].text = text,
            Undo::Cut { from, removed } => {
                self.talks[at].told.truncate(from);
                self.talks[at].told.extend(removed);
            }
            Undo::Merge {
                from,
                of_from,
                of_into,
            } => {
                self.talks[at].told = of_into;
                self.talks[from].told = of_from;
                self.talks[from].gone = false;
            }
        }
    }

    /// The file of a confirmed session, with its agent and id.
    fn some_session(&mut self, at: usize) -> Option<(&'static dyn Cli, String, PathBuf)> {
        let shown = self.shown(at);
        let confirmed = |agent: &str| {
            let all = shown["sessions"].as_array().unwrap();
            let mine = all
                .iter()
                .find(|s| s["agent"] == agent && s["state"] == "confirmed")?;
            Some(mine["session_id"].as_str().unwrap().to_owned())
        };
        let mut found = vec![];
        for cli in self.clis {
            if let Some(id) = confirmed(cli.agent()) {
                let mut files = cli.sessions(&self.world).into_iter();
                found.extend(files.find(|f| cli.is_of(f, &id)).map(|f| (cli, id, f)));
            }
        }
        if found.is_empty() || !self.talks[at].pending.is_empty() {
            return None;
        }
        let i = self.dice.roll(found.len());
        Some(found.swap_remove(i))
    }

    fn lose(&mut self, at: usize) {
        let Some((cli, id, file)) = self.some_session(at) else {
            return self.turn(at, Fate::Good);
        };
        self.note(format!(
            "talk {at}: session {id} of {} is deleted",
            cli.agent()
        ));
        fs::remove_file(file).unwrap();
    }

    fn make_stale(&mut self, at: usize) {
        let Some((cli, id, file)) = self.some_session(at) else {
            return self.turn(at, Fate::Good);
        };
        let now = fs::read(&file).unwrap();
        match self.older.remove(&file) {
            Some(old) if old != now => {
                self.note(format!(
                    "talk {at}: session {id} of {} is an older copy",
                    cli.agent()
                ));
                fs::write(file, old).unwrap();
            }
            _ => {
                self.older.insert(file, now);
                self.turn(at, Fate::Good);
            }
        }
    }

    fn by_hand(&mut self, at: usize) {
        let Some((cli, id, _)) = self.some_session(at) else {
            return self.turn(at, Fate::Good);
        };
        let n = self.next_word();
        let text = format!("{} #s:a{n}", user(n));
        self.note(format!(
            "talk {at}: by hand in {}, {}",
            cli.agent(),
            user(n)
        ));
        let mut command = self.world.by_hand_with(cli, &id, &text);
        let done = command.output().unwrap();
        if !done.status.success() {
            self.fail(&format!("by hand: {done:?}"));
        }
        let said = [
            self.told(None, &text),
            self.told(Some(cli.agent()), &answer(n)),
        ];
        self.talks[at].pending.extend(said);
    }

    fn shown(&self, at: usize) -> Value {
        let done = self.world.run(&["show", &self.talks[at].id, "--json"]);
        self.must(done).json()
    }

    fn message_id(&self, at: usize, i: usize) -> String {
        let shown = self.shown(at);
        shown["messages"][i]["id"].as_str().unwrap().to_owned()
    }

    /// The store holds what was said.
    fn check(&self) {
        for at in self.living() {
            let shown = self.shown(at);
            // By their words: a CLI may put quotes around what it is given on its command line.
            let told: Vec<(Option<&str>, Vec<String>)> = shown["messages"]
                .as_array()
                .unwrap()
                .iter()
                .map(|m| (m["agent"].as_str(), words_in(m["text"].as_str().unwrap())))
                .collect();
            let wanted: Vec<(Option<&str>, Vec<String>)> = (self.talks[at].told.iter())
                .map(|told| (told.agent.as_deref(), words_in(&told.text)))
                .collect();
            if told != wanted {
                self.fail(&format!("talk {at} is {told:#?}\nnot {wanted:#?}"));
            }
        }
    }
}
