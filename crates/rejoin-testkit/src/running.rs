//! A turn seen from outside: its processes while it runs, and its stored state.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::procs::wait_for;
use crate::world::World;

/// Sends a signal to a process that this test started.
#[track_caller]
pub fn kill(pid: i32, signal: &str) {
    let sent = Command::new("kill")
        .args([&format!("-{signal}"), &pid.to_string()])
        .status();
    assert!(sent.unwrap().success(), "kill -{signal} {pid}");
}

/// Stops a process that this test started, and waits until it is stopped. A signal that ends the process
/// would still reach it before.
#[track_caller]
pub fn stop(pid: i32) {
    kill(pid, "STOP");
    wait_for("the process to stop", 30, || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, after_name) = stat.rsplit_once(") ")?;
        after_name.starts_with('T').then_some(())
    });
}

impl World {
    /// Returns the conversation `k` as `show --json` prints it.
    #[track_caller]
    pub fn show(&self) -> Value {
        self.run(&["show", "--json", "k"]).ok().json()
    }

    /// Returns the newest turn of `k`.
    #[track_caller]
    pub fn last_turn(&self) -> Value {
        let shown = self.show();
        shown["turns"].as_array().unwrap().last().unwrap().clone()
    }

    /// Returns role, state and text of each message of `k`, in order.
    #[track_caller]
    pub fn messages(&self) -> Vec<(String, String, String)> {
        let text = |m: &Value, name: &str| m[name].as_str().unwrap_or_default().to_owned();
        self.show()["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|m| (text(m, "role"), text(m, "state"), text(m, "text")))
            .collect()
    }

    /// Returns the shim of the only running turn.
    pub fn shim(&self) -> Option<i32> {
        self.pid_of(|command| command.starts_with("rejoin shim "))
    }

    /// Returns the agent's CLI in the only running turn.
    pub fn cli(&self) -> Option<i32> {
        self.clis().first().copied()
    }

    /// Returns every process of the agent's CLI.
    pub fn clis(&self) -> Vec<i32> {
        let bin = format!("{} ", self.bin().display());
        let script = format!("node {bin}");
        let is_it = |command: &str| command.starts_with(&bin) || command.starts_with(&script);
        let found = self.leftovers().into_iter();
        let found = found.filter(|(_, command)| is_it(command));
        found.map(|(pid, _)| pid).collect()
    }

    /// Returns a process whose command line matches.
    pub fn pid_of(&self, is_it: impl Fn(&str) -> bool) -> Option<i32> {
        self.leftovers()
            .into_iter()
            .find(|(_, command)| is_it(command))
            .map(|(pid, _)| pid)
    }

    /// Asserts that no process of this world runs any more and no turn's folder is left. A shim
    /// that has reported the end of its turn may need a moment to exit.
    #[track_caller]
    pub fn assert_quiet(&self) {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(3);
        while self.shim().is_some() && std::time::Instant::now() < deadline {
            std::thread::yield_now();
        }
        assert_eq!(self.leftovers(), []);
        assert_eq!(self.turn_folders(), Vec::<PathBuf>::new());
    }

    /// Returns the folders of turns that are not cleaned up.
    pub fn turn_folders(&self) -> Vec<PathBuf> {
        let folders = std::fs::read_dir(self.data().join("turns"));
        folders
            .into_iter()
            .flatten()
            .flatten()
            .map(|f| f.path())
            .collect()
    }

    /// Returns the stored events of a turn that was sent with this idempotency key and has ended.
    #[track_caller]
    pub fn events(&self, n: usize, script: &str, key: &str) -> Vec<Value> {
        let replayed = self.send(n, script, &["--stream", "--idempotency-key", key]);
        replayed
            .stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Waits until the model has received a request that contains this word.
    #[track_caller]
    pub fn wait_until_asked(&self, word: &str) {
        wait_for("the model to be asked", 20, || {
            let asked = |r: &rejoin_model::Request| r.history().to_string().contains(word);
            self.model.requests().iter().any(asked).then_some(())
        });
    }

    /// Writes an executable script.
    pub fn script(&self, path: &Path, text: &str) {
        std::fs::write(path, text).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(path, mode).unwrap();
    }

    /// Returns true if the running CLI has printed this word.
    pub fn printed(&self, word: &str) -> bool {
        let attempts = self
            .turn_folders()
            .into_iter()
            .filter_map(|turn| turn.read_dir().ok());
        let mut outs = attempts.flatten().flatten().map(|a| a.path().join("out"));
        outs.any(|out| std::fs::read(out).is_ok_and(|o| contains(&o, word.as_bytes())))
    }
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|w| w == word)
}
