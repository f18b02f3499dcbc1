//! A real terminal of 80 columns and 24 lines (tmux), and masks for what differs from run to run.

use std::process::Command;
use std::time::{Duration, Instant};

use rejoin_testkit::World;
use serde_json::Value;

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");
/// How long a command may take to come back to the prompt.
const PATIENCE: Duration = Duration::from_mins(3);
const DAY: u64 = 86_400;

/// A world whose days do not change under it and whose clock is UTC.
pub(super) fn world() -> World {
    steady(World::new(REJOIN))
}

pub(super) fn steady(mut world: World) -> World {
    world.set("TZ", "UTC");
    world.set("COLUMNS", "80");
    // Which wall there is differs from machine to machine.
    world.set("REJOIN_WALL_MODE", "off");
    world.set("REJOIN_FAKE_MACHINE", "ada");
    // A pager would wait for a key.
    world.set("REJOIN_PAGER", "");
    let now = std::time::SystemTime::UNIX_EPOCH
        .elapsed()
        .unwrap()
        .as_secs();
    if DAY - now % DAY < 120 {
        std::thread::sleep(Duration::from_secs(DAY - now % DAY));
    }
    world
}

/// One terminal, gone when it is dropped.
pub(super) struct Terminal {
    socket: String,
}

impl Terminal {
    /// Never none: a test without tmux fails.
    #[expect(clippy::unnecessary_wraps, reason = "as every need of a test")]
    pub(super) fn open(world: &World) -> Option<Self> {
        assert!(
            Command::new("tmux").arg("-V").output().is_ok(),
            "tmux is not installed; run ./scripts/test, which installs it"
        );
        let socket = world.root().join("tmux").to_str().unwrap().to_owned();
        let terminal = Self { socket };
        let bin = std::path::Path::new(REJOIN)
            .parent()
            .unwrap()
            .to_str()
            .unwrap();
        let mut command = terminal.tmux(&[
            "-u",
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-s",
            "t",
            "-x",
            "80",
            "-y",
            "24",
        ]);
        command
            .arg("sh")
            .env_clear()
            .envs(&world.env)
            .env_remove("COLUMNS")
            .current_dir(world.work());
        command.env("PATH", format!("{bin}:{}", world.env["PATH"]));
        command
            .env("LANG", "C.UTF-8")
            .env("TERM", "xterm-256color")
            .env("PS1", "$ ");
        assert!(command.status().unwrap().success());
        terminal.keys("PS1='$ '; clear");
        terminal.wait_until(|screen| screen.trim() == "$");
        Some(terminal)
    }

    /// The screen after a command, without the empty lines below.
    pub(super) fn run(&self, command: &str) -> String {
        if self.screen().trim() != "$" {
            self.clear();
        }
        self.keys(command);
        // Not the prompt at which it was typed.
        self.wait_until(|screen| screen.trim_end().ends_with("\n$"))
    }

    pub(super) fn clear(&self) {
        self.keys("clear");
        self.wait_until(|screen| screen.trim() == "$");
    }

    pub(super) fn keys(&self, line: &str) {
        self.type_in(line);
        self.press(&["Enter"]);
    }

    pub(super) fn type_in(&self, text: &str) {
        let typed = self.tmux(&["send-keys", "-t", "t", "-l", text]).status();
        assert!(typed.unwrap().success());
    }

    /// Single keys, as tmux names them; other text is typed.
    pub(super) fn press(&self, keys: &[&str]) {
        for key in keys {
            let sent = self.tmux(&["send-keys", "-t", "t", key]).status();
            assert!(sent.unwrap().success());
        }
    }

    pub(super) fn wait_until(&self, mut done: impl FnMut(&str) -> bool) -> String {
        let since = Instant::now();
        loop {
            let screen = self.screen();
            if done(&screen) {
                return screen.trim_end().to_owned();
            }
            assert!(since.elapsed() < PATIENCE, "{screen}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(super) fn screen(&self) -> String {
        let seen = self
            .tmux(&["capture-pane", "-p", "-t", "t"])
            .output()
            .unwrap();
        String::from_utf8(seen.stdout).unwrap()
    }

    fn tmux(&self, args: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(&self.socket).args(args);
        command
    }
}

impl Drop for Terminal {
    /// Only the server of this socket, which is ours.
    fn drop(&mut self) {
        let _gone = self.tmux(&["kill-server"]).output();
    }
}

/// Handles, ids, times, folders and the version as they are in every run, of the same length where
/// things are aligned.
pub(super) fn masked(world: &World, text: &str) -> String {
    let mut text = text.replace(world.root().to_str().unwrap(), "/world");
    text = text.replace(env!("CARGO_PKG_VERSION"), "0.1.0");
    for (n, handle) in handles(world, &text).iter().enumerate() {
        let name = ["tmqx", "wnly", "vkrs", "ptzo"][n.min(3)];
        text = replaced(&text, handle, name);
    }
    text = each(&text, 36, |word| {
        is_uuid(word).then(|| "5e551043-0000-4000-8000-000000000000".to_owned())
    });
    text = each(&text, 11, |word| {
        clock(word, "today ").then(|| "today 14:31".to_owned())
    });
    text = each(&text, 14, |word| {
        clock(word, "snapshot ").then(|| "snapshot 14:31".to_owned())
    });
    text = each(&text, 16, |word| {
        clock(word, "begun ").then(|| "begun 2026-11-15".to_owned())
    });
    each(&text, 4, |word| seconds(word).then(|| "0.1s".to_owned()))
}

/// The same for JSON, printed with one field in a line.
pub(super) fn masked_json(world: &World, value: &Value) -> String {
    fn walk(key: &str, value: &mut Value) {
        match value {
            Value::String(text) if is_uuid(text) => *text = "[id]".into(),
            Value::String(text) if key.ends_with("_at") => *text = "[time]".into(),
            Value::String(text) if key == "machine" => *text = "[machine]".into(),
            Value::Number(n) if key == "duration_ms" => *n = 100.into(),
            Value::Array(all) => all.iter_mut().for_each(|v| walk(key, v)),
            Value::Object(all) => all.iter_mut().for_each(|(k, v)| walk(k, v)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut value = value.clone();
    walk("", &mut value);
    masked(world, &format!("{value:#}"))
}

/// Handles of this world, oldest first, and those that only stand in the text (of a demo).
fn handles(world: &World, text: &str) -> Vec<String> {
    let list = world.run(&["list", "--json", "-n", "100"]).ok().json();
    let mut found: Vec<String> = list["conversations"]
        .as_array()
        .unwrap()
        .iter()
        .rev()
        .map(|c| c["handle"].as_str().unwrap().to_owned())
        .collect();
    for (at, _) in text.match_indices(':') {
        let before: String = text[..at]
            .chars()
            .rev()
            .take_while(char::is_ascii_lowercase)
            .collect();
        let handle: String = before.chars().rev().collect();
        let numbered = text[at + 1..].starts_with(|c: char| c.is_ascii_digit());
        if numbered
            && handle.len() >= 4
            && handle.bytes().all(|b| b >= b'k')
            && !found.contains(&handle)
        {
            found.push(handle);
        }
    }
    found
}

/// Only where it stands alone: a handle may be part of a word, as `nown` is.
fn replaced(text: &str, handle: &str, name: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(handle) {
        let (before, after) = (&rest[..at], &rest[at + handle.len()..]);
        let goes_on = after.starts_with(|c: char| c.is_ascii_lowercase());
        let alone = !before.ends_with(|c: char| c.is_ascii_lowercase()) && !goes_on;
        out.push_str(before);
        out.push_str(if alone { name } else { handle });
        rest = after;
    }
    out + rest
}

#[test]
fn a_handle_is_masked_where_it_stands_alone() {
    assert_eq!(
        replaced("nown:2 is unknown, nown", "nown", "tmqx"),
        "tmqx:2 is unknown, tmqx"
    );
}

/// Puts another text for every window of so many bytes that `mask` knows.
fn each(text: &str, length: usize, mask: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::new();
    let mut at = 0;
    while at < text.len() {
        match text.get(at..at + length).and_then(&mask) {
            Some(other) => {
                out.push_str(&other);
                at += length;
            }
            None => {
                let c = text[at..].chars().next().unwrap();
                out.push(c);
                at += c.len_utf8();
            }
        }
    }
    out
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.char_indices().all(|(n, c)| match n {
            8 | 13 | 18 | 23 => c == '-',
            _ => c.is_ascii_hexdigit(),
        })
}

fn clock(text: &str, before: &str) -> bool {
    text.strip_prefix(before)
        .is_some_and(|t| t.bytes().all(|b| b.is_ascii_digit() || b":-".contains(&b)))
}

fn seconds(text: &str) -> bool {
    let b = text.as_bytes();
    b[0].is_ascii_digit() && b[1] == b'.' && b[2].is_ascii_digit() && b[3] == b's'
}
