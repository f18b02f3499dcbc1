//! One step: chosen by dice, done with the real program, held against the oracle.

use std::collections::BTreeMap;
use std::path::PathBuf;

use rejoin_testkit::{Cli, Done, Model, World, answer, kill, slowly, user, wait_for, words_in};
use serde_json::Value;

use super::oracle::{Dice, Talk, Told};

const DEMO: &str = "demo";
/// Conversations at a time.
pub(super) const TALKS: usize = 4;

pub(super) struct Walk {
    pub(super) world: World,
    pub(super) clis: [&'static dyn Cli; 4],
    pub(super) scope: &'static str,
    pub(super) dice: Dice,
    seed: u64,
    pub(super) talks: Vec<Talk>,
    /// The last word that was used, and the last root.
    word: usize,
    roots: usize,
    /// Older bytes of sessions.
    pub(super) older: BTreeMap<PathBuf, Vec<u8>>,
    log: Vec<String>,
}

/// How a turn is to go.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Fate {
    Good,
    Fresh,
    Refused400,
    /// kill -9 of the agent's CLI while it waits for the model.
    CliKilled,
    /// kill -9 of everything.
    AllKilled,
    /// kill -9 of `rejoin send`; the turn ends by itself.
    SenderKilled,
    /// `rejoin send` dies before anything is started; the message is run before the next one.
    DiedEarly,
}

impl Walk {
    pub(super) fn new(
        seed: u64,
        clis: [&'static dyn Cli; 4],
        scope: &str,
        steps: usize,
        on_server: bool,
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
        if on_server {
            world = world.on_server()?;
        }
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
        self.answer_queued(at);
        let long = self.talks[at].told.len() >= 3;
        match self.dice.roll(30) {
            11 => self.turn(at, Fate::Fresh),
            12 => self.turn(at, Fate::Refused400),
            13 => self.turn(at, Fate::CliKilled),
            14 => self.turn(at, Fate::AllKilled),
            15 => self.turn(at, Fate::SenderKilled),
            10 => self.turn(at, Fate::DiedEarly),
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

    pub(super) fn note(&mut self, text: String) {
        self.log.push(text);
    }

    pub(super) fn living(&self) -> Vec<usize> {
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

    pub(super) fn some_agent(&mut self) -> String {
        // The slower ones less often.
        let all = [
            "claude", "claude", "claude", "claude", "codex", "codex", "codex", DEMO, DEMO,
            "opencode", "gemini",
        ];
        all[self.dice.roll(all.len())].to_owned()
    }

    pub(super) fn some_message(&mut self, at: usize) -> usize {
        let n = self.talks[at].told.len();
        n - 1 - self.dice.roll(n.min(5))
    }

    pub(super) fn told(&mut self, agent: Option<&str>, text: &str) -> Told {
        self.roots += 1;
        Told {
            agent: agent.map(str::to_owned),
            text: text.to_owned(),
            root: self.roots,
        }
    }

    pub(super) fn next_word(&mut self) -> usize {
        self.word += 1;
        self.word
    }

    #[track_caller]
    pub(super) fn fail(&self, what: &str) -> ! {
        panic!(
            "{what}\nREJOIN_WALK_SEED={} replays it; steps:\n{}",
            self.seed % 1000,
            self.log.join("\n")
        );
    }

    #[track_caller]
    pub(super) fn must(&self, done: Done) -> Done {
        if done.code != 0 {
            self.fail(&format!("{done:?}"));
        }
        done
    }

    pub(super) fn begin(&mut self) {
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

    pub(super) fn turn(&mut self, at: usize, fate: Fate) {
        let mut agent = self.some_agent();
        if agent == DEMO && !matches!(fate, Fate::Good | Fate::Fresh) {
            agent = "claude".into();
        }
        let n = self.next_word();
        let script = match fate {
            Fate::Good | Fate::Fresh | Fate::DiedEarly => format!("a{n}"),
            Fate::Refused400 => "e400".into(),
            Fate::CliKilled | Fate::AllKilled => "hang".into(),
            Fate::SenderKilled => format!("z{n}"),
        };
        let text = format!("{} #s:{script}", user(n));
        let id = self.talks[at].id.clone();
        self.note(format!("talk {at}: {fate:?} {agent} {}", user(n)));
        self.answer_queued(at);
        // What was said by hand is taken in by the question what comes next, or by the turn itself.
        let mut next = None;
        if self.dice.roll(2) == 0 {
            let ask = ["explain", &id, "--next", "--json", "-a", &agent];
            next = Some(self.must(self.world.run(&ask)).json());
            self.talks[at].take_in();
            self.check();
        }
        let mut args = vec!["send", "--json", "-c", &id, "-a", &agent];
        if fate == Fate::Fresh {
            args.push("--fresh-session");
        }
        args.extend(["--", &text]);
        if fate == Fate::DiedEarly {
            let point = ["after_claim", "after_look", "before_begin"][self.dice.roll(3)];
            let mut dying = self.world.command(&args);
            let done = dying.env("REJOIN_FAIL", point).output().unwrap();
            assert!(!done.status.success(), "{done:?}");
            if point != "after_claim" {
                self.talks[at].take_in();
            }
            let queued = (self.told(None, &text), agent, n);
            self.talks[at].queued = Some(queued);
            return;
        }
        self.talks[at].take_in();
        let child = self.world.spawn(&args);
        let pid = child.id() as i32;
        match fate {
            Fate::Good | Fate::Fresh | Fate::Refused400 | Fate::DiedEarly => {}
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
                if let Some(next) = next.filter(|_| fate == Fate::Good)
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
            Fate::DiedEarly => {}
            Fate::AllKilled | Fate::SenderKilled => {
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

    /// A message whose sender died runs before the next one; here, before anything else is done with
    /// the conversation: by a message to the demo agent, which is told all of it.
    pub(super) fn answer_queued(&mut self, at: usize) {
        let Some((told, agent, n)) = self.talks[at].queued.take() else {
            return;
        };
        let m = self.next_word();
        let text = format!("{} #s:a{m}", user(m));
        let id = self.talks[at].id.clone();
        self.note(format!("talk {at}: {} waits; demo {}", user(n), user(m)));
        let args = ["send", "--json", "-c", &id, "-a", DEMO, "--", &text];
        let turn = self.must(self.world.run(&args)).json();
        self.talks[at].take_in();
        self.talks[at].told.push(told);
        let waited = self.shown(at);
        let waited = waited["turns"]
            .as_array()
            .unwrap()
            .iter()
            .rev()
            .nth(1)
            .unwrap()
            .clone();
        self.answered(at, &agent, n, &waited);
        let new = self.told(None, &text);
        self.talks[at].told.push(new);
        self.answered(at, DEMO, m, &turn);
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

    pub(super) fn answered(&mut self, at: usize, agent: &str, n: usize, turn: &Value) {
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

    pub(super) fn shown(&self, at: usize) -> Value {
        let done = self.world.run(&["show", &self.talks[at].id, "--json"]);
        self.must(done).json()
    }

    pub(super) fn message_id(&self, at: usize, i: usize) -> String {
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
                .filter(|m| m["state"] != "queued")
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
