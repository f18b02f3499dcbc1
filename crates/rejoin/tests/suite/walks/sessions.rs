//! Steps in which something happens to an agent's own session.

use std::fs;
use std::path::PathBuf;

use rejoin_testkit::{Cli, answer, user};

use super::steps::{Fate, Walk};

impl Walk {
    /// The file of a confirmed session, with its agent and id.
    fn some_session(&mut self, at: usize) -> Option<(&'static dyn Cli, String, PathBuf)> {
        let shown = self.shown(at);
        let mut found = vec![];
        for session in shown["sessions"].as_array().unwrap() {
            let own = |cli: &&&dyn Cli| session["agent"] == cli.agent();
            let cli = self.clis.iter().find(own);
            if let Some(cli) = cli.filter(|_| session["state"] == "confirmed") {
                let id = session["session_id"].as_str().unwrap().to_owned();
                let mut files = cli.sessions(&self.world).into_iter();
                found.extend(files.find(|f| cli.is_of(f, &id)).map(|f| (*cli, id, f)));
            }
        }
        if found.is_empty() || !self.talks[at].pending.is_empty() {
            return None;
        }
        let i = self.dice.roll(found.len());
        Some(found.swap_remove(i))
    }

    pub(super) fn lose(&mut self, at: usize) {
        let Some((cli, id, file)) = self.some_session(at) else {
            return self.turn(at, Fate::Good);
        };
        self.note(format!(
            "talk {at}: session {id} of {} is deleted",
            cli.agent()
        ));
        fs::remove_file(file).unwrap();
    }

    pub(super) fn make_stale(&mut self, at: usize) {
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

    pub(super) fn by_hand(&mut self, at: usize) {
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
}
