//! The CLIs' terminal interfaces, driven by keys. Their first questions (theme, trust, key) are
//! answered by private configuration of the world.

use std::io::Write;
use std::time::{Duration, Instant};

use rejoin_testkit::{World, answer, user};
use serde_json::json;

use crate::suite::terminal::Terminal;

/// What is on the screen when it takes a message, and what ends it.
struct Known {
    ready: &'static str,
    leave: &'static str,
    /// What the screen shows of `leave` once the CLI knows it as a command.
    offered: &'static str,
}

fn known(agent: &str) -> Known {
    let (ready, leave, offered) = match agent {
        "claude" => ("accept edits on", "/exit", ""),
        "codex" => ("Ask Codex", "/quit", ""),
        // It loads its commands after its session: until then `/quit` goes to the model.
        "gemini" => ("Type your message", "/quit", "Exit the cli"),
        "opencode" => ("Rejoin-Open", "/exit", ""),
        other => panic!("{other} has no terminal interface"),
    };
    Known {
        ready,
        leave,
        offered,
    }
}

pub(super) fn set_up(world: &World) {
    match world.cli.agent() {
        "claude" => {
            let work = world.work().canonicalize().unwrap();
            let mut projects = serde_json::Map::new();
            projects.insert(
                work.to_str().unwrap().into(),
                json!({"hasTrustDialogAccepted": true}),
            );
            let answered = json!({
                "hasCompletedOnboarding": true,
                "theme": "dark",
                "customApiKeyResponses": {"approved": ["sk-ant-dummy"], "rejected": []},
                "projects": projects,
            });
            let file = world.home().join(".claude.json");
            std::fs::write(file, answered.to_string()).unwrap();
        }
        "codex" => {
            let file = world.home().join(".codex/config.toml");
            let mut file = std::fs::OpenOptions::new().append(true).open(file).unwrap();
            let model = world.cli.models()[0];
            write!(
                file,
                "\n[tui]\nscreen_reader_detection_done = true\n\n[notice.model_migrations]\n\"{model}\" = \"gpt-6-sol\"\n"
            )
            .unwrap();
        }
        _ => {}
    }
}

/// Is this in a session, or in the log of its database?
pub(super) fn wrote(world: &World, text: &str) -> bool {
    let files = world.sessions().into_iter();
    let logs = files
        .clone()
        .map(|file| format!("{}-wal", file.display()).into());
    files.chain(logs).any(|file: std::path::PathBuf| {
        let bytes = std::fs::read(file).unwrap_or_default();
        bytes.windows(text.len()).any(|w| w == text.as_bytes())
    })
}

/// A terminal in which the conversation `k` is opened.
pub(super) struct Interface<'a> {
    world: &'a World,
    pub(super) terminal: Terminal,
    known: Known,
}

impl<'a> Interface<'a> {
    pub(super) fn of(world: &'a World, terminal: Terminal) -> Self {
        let known = known(world.cli.agent());
        Self {
            world,
            terminal,
            known,
        }
    }

    pub(super) fn open(&self) {
        self.open_with("rejoin open k");
    }

    pub(super) fn open_with(&self, command: &str) {
        self.terminal.keys("clear");
        self.terminal.wait_until(|screen| screen.trim() == "$");
        self.terminal.keys(command);
        // Gemini CLI takes a line before it has loaded its session.
        let loads = self.world.cli.agent() == "gemini";
        let loaded = |screen: &str| screen.contains('✦') && !screen.contains("Resuming session");
        self.terminal
            .wait_until(|screen| screen.contains(self.known.ready) && (!loads || loaded(screen)));
    }

    /// Message N, and its answer.
    pub(super) fn say(&self, n: usize) {
        self.type_line(&format!("{} #s:a{n}", user(n)));
        self.enter_until(|screen| screen.contains(&answer(n)));
    }

    /// Sent as a message: what was typed fast may be taken for something pasted, and the key after it
    /// for a part of that, so the key is pressed again.
    pub(super) fn type_line(&self, line: &str) {
        let word = line.split(' ').next().unwrap();
        self.terminal.type_in(line);
        self.terminal.wait_until(|screen| screen.contains(word));
        self.terminal.press(&["Enter"]);
    }

    pub(super) fn leave(&self) -> String {
        self.leave_for("rejoin: back")
    }

    /// A CLI that is still busy with the line before takes the word for one more message: typed again.
    pub(super) fn leave_for(&self, back: &str) -> String {
        self.terminal.type_in(self.known.leave);
        self.terminal.wait_until(|screen| {
            screen.contains(self.known.leave) && screen.contains(self.known.offered)
        });
        self.terminal.press(&["Enter"]);
        let mut typed = Instant::now();
        let left = |screen: &str| {
            let left = at_the_prompt(screen, back);
            if !left && typed.elapsed() > Duration::from_secs(40) {
                self.terminal.type_in(self.known.leave);
                typed = Instant::now();
            }
            left
        };
        words(&self.enter_until(left))
    }

    /// What it says when the CLI has gone.
    pub(super) fn back(&self) -> String {
        let back = |screen: &str| at_the_prompt(screen, "rejoin: back");
        words(&self.terminal.wait_until(back))
    }

    pub(super) fn enter_until(&self, mut done: impl FnMut(&str) -> bool) -> String {
        let mut pressed = Instant::now();
        self.terminal.wait_until(|screen| {
            let done = done(screen);
            if !done && pressed.elapsed() > Duration::from_secs(2) {
                self.terminal.press(&["Enter"]);
                pressed = Instant::now();
            }
            done
        })
    }

    /// The process that holds the lease.
    pub(super) fn rejoin(&self) -> i32 {
        let open = |command: &str| command.starts_with("rejoin open ");
        self.world.pid_of(open).unwrap()
    }
}

fn at_the_prompt(screen: &str, back: &str) -> bool {
    words(screen).contains(back) && screen.trim_end().ends_with("\n$")
}

/// A line that was broken between words stands in two.
fn words(screen: &str) -> String {
    screen.split_whitespace().collect::<Vec<_>>().join(" ")
}
