//! Steps that change a history. Each takes in first what was said by hand.

use rejoin_testkit::{Done, answer, user, words_in};

use super::oracle::{Talk, Told, Undo};
use super::steps::{Fate, TALKS, Walk};

impl Walk {
    pub(super) fn edit(&mut self, at: usize) {
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
        self.talks[at].take_in();
        let old = std::mem::replace(&mut self.talks[at].told[i].text, text);
        self.talks[at].undo.push(Undo::Edit { at: i, text: old });
    }

    pub(super) fn truncate(&mut self, at: usize) {
        let i = self.some_message(at).max(1);
        let id = self.message_id(at, i);
        self.note(format!("talk {at}: truncate from {}", i + 1));
        self.must(self.world.run(&["truncate", &id]));
        self.talks[at].take_in();
        let removed = self.talks[at].cut(i);
        self.talks[at].undo.push(Undo::Cut { from: i, removed });
    }

    pub(super) fn retry(&mut self, at: usize) {
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
        // What was said by hand goes with what follows the message.
        self.talks[at].take_in();
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

    pub(super) fn fork(&mut self, at: usize) {
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
        self.talks[at].take_in();
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

    pub(super) fn merge(&mut self, at: usize) {
        let others: Vec<usize> = self.living().into_iter().filter(|o| *o != at).collect();
        if others.is_empty() {
            return self.begin();
        }
        let into = others[self.dice.roll(others.len())];
        self.answer_queued(into);
        let (from_id, into_id) = (self.talks[at].id.clone(), self.talks[into].id.clone());
        self.note(format!("merge talk {at} into talk {into}"));
        let done = self.world.run(&["merge", &from_id, &into_id, "--json"]);
        self.talks[at].take_in();
        self.talks[into].take_in();
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
        self.talks[at].gone = true;
        self.talks[into].undo.push(Undo::Merge {
            from: at,
            of_from,
            of_into,
        });
    }

    pub(super) fn undo(&mut self, at: usize) {
        let c = self.talks[at].id.clone();
        self.note(format!("talk {at}: undo"));
        let done = self.world.run(&["undo", &c, "--json"]);
        self.talks[at].take_in();
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
}
