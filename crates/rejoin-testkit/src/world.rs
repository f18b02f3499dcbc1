//! The world of one test: home, folder, model, and the real `rejoin`.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::clis::{CLAUDE_197, Cli, claude_of, installed};
use crate::model::Model;
use crate::pg::{Database, database};
use crate::sql::{add_binaries, binaries};
use crate::words::user;

/// Not a `REJOIN_…` variable: these are removed for the CLIs, whose processes must be found too.
const MARK: &str = "WORLD_OF_TEST";

/// A private environment for one test. The marker in its variables finds every process that it
/// caused.
pub struct World {
    dir: tempfile::TempDir,
    /// Folder that contains home, working folder and data of the current machine.
    at: PathBuf,
    rejoin: PathBuf,
    pub model: Model,
    pub env: BTreeMap<String, String>,
    /// Agent of this world.
    pub cli: &'static dyn Cli,
    /// Store of this world, if it is on a server.
    pub database: Option<Database>,
}

/// Result of a command.
#[derive(Debug)]
pub struct Done {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Done {
    /// Waits for the end of a command.
    pub fn of(child: Child) -> Self {
        let output = child.wait_with_output().unwrap();
        Self {
            code: output
                .status
                .code()
                .unwrap_or_else(|| -output.status.signal().unwrap_or(0)),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    #[track_caller]
    pub fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }
}

impl World {
    pub fn new(rejoin: &str) -> Self {
        Self::with_model(rejoin, Model::start())
    }

    pub fn with_model(rejoin: &str, model: Model) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["home", "work", "data"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        let env = [
            ("PATH", std::env::var("PATH").unwrap()),
            ("HOME", at("home")),
            ("REJOIN_HOME", at("data")),
            (MARK, at("")),
        ];
        let env = env.into_iter().map(|(n, v)| (n.to_owned(), v)).collect();
        let mut world = Self {
            at: dir.path().to_owned(),
            dir,
            rejoin: rejoin.into(),
            model,
            env,
            cli: &CLAUDE_197,
            database: None,
        };
        CLAUDE_197.set_up(&mut world);
        world
    }

    /// Creates a world with this version of Claude Code. Never returns `None`: a test without it
    /// fails.
    pub fn claude(rejoin: &str, version: &str) -> Option<Self> {
        Self::claude_with(rejoin, version, Model::start)
    }

    /// Creates a world with this version of Claude Code and a model with scripts of the test.
    pub fn claude_with(rejoin: &str, version: &str, model: impl FnOnce() -> Model) -> Option<Self> {
        Self::with(rejoin, claude_of(version), model)
    }

    /// Creates a world with this CLI. Never returns `None`: a test without it fails.
    pub fn of(rejoin: &str, cli: &'static dyn Cli) -> Option<Self> {
        Self::with(rejoin, cli, Model::start)
    }

    /// Creates a world with this CLI and a model with scripts of the test.
    pub fn with(
        rejoin: &str,
        cli: &'static dyn Cli,
        model: impl FnOnce() -> Model,
    ) -> Option<Self> {
        let bin = installed(cli);
        let mut world = Self::with_model(rejoin, model());
        world.become_one_of(cli, &bin);
        copy_store(&known_binary(rejoin, cli, &bin), &world.data());
        Some(world)
    }

    /// Creates a world with all of these CLIs, the first as the default. Never returns `None`: a
    /// test without one of them fails.
    pub fn of_all(rejoin: &str, clis: &[&'static dyn Cli], model: Model) -> Option<Self> {
        let bins: Vec<PathBuf> = clis.iter().map(|cli| installed(*cli)).collect();
        let mut world = Self::with_model(rejoin, model);
        let _made = world.run(&["list"]).ok();
        let store = world.data().join("rejoin.db");
        for (cli, bin) in clis.iter().zip(bins).rev() {
            world.become_one_of(*cli, &bin);
            let known = known_binary(rejoin, *cli, &bin);
            add_binaries(&store, &binaries(&known.join("rejoin.db")));
        }
        Some(world)
    }

    /// Moves the store to a PostgreSQL server and keeps the facts about binaries. Never returns
    /// `None`: a test without PostgreSQL fails.
    pub fn on_server(mut self) -> Option<Self> {
        let database = database()?;
        let known = binaries(&self.data().join("rejoin.db"));
        self.set("REJOIN_DATABASE_URL", &database.url);
        let _made = self.run(&["list"]).ok();
        for row in known {
            let quoted = row.map(|value| format!("$rj${value}$rj$")).join(", ");
            database.psql(&format!("insert into binaries values ({quoted}, 1)"));
        }
        self.database = Some(database);
        Some(self)
    }

    /// Returns the server of its store, if there is one.
    pub fn database(&self) -> Option<crate::populate::Server> {
        let database = self.database.as_ref()?;
        Some(crate::populate::Server {
            url: database.server().url(),
            schema: database.schema().to_owned(),
        })
    }

    fn become_one_of(&mut self, cli: &'static dyn Cli, bin: &Path) {
        self.cli = cli;
        self.set("REJOIN_DEFAULT_AGENT", cli.agent());
        cli.set_up(self);
        self.use_bin(bin);
    }

    /// Selects another program for the agent.
    pub fn use_bin(&mut self, bin: &Path) {
        let name = self.bin_variable();
        self.env.insert(name, bin.to_str().unwrap().into());
    }

    /// Returns the program of the agent.
    pub fn bin(&self) -> PathBuf {
        self.env[&self.bin_variable()].clone().into()
    }

    fn bin_variable(&self) -> String {
        let agent = self.cli.agent().to_uppercase();
        format!("REJOIN_AGENTS_{agent}_BIN")
    }

    pub fn use_claude(&mut self, bin: &Path) {
        self.use_bin(bin);
    }

    pub fn root(&self) -> &Path {
        self.dir.path()
    }

    pub fn home(&self) -> PathBuf {
        self.at.join("home")
    }

    pub fn work(&self) -> PathBuf {
        self.at.join("work")
    }

    pub fn data(&self) -> PathBuf {
        self.at.join("data")
    }

    /// Moves to another machine: another home, folder and data, the same store. Empty: the first
    /// machine.
    pub fn go_to(&mut self, machine: &str) {
        if !self.env.contains_key("REJOIN_DATABASE_URL") {
            let file = self.data().join("rejoin.db");
            let url = format!("sqlite:{}", file.to_str().unwrap());
            self.set("REJOIN_DATABASE_URL", &url);
        }
        self.at = match machine {
            "" => self.dir.path().to_owned(),
            name => self.dir.path().join(name),
        };
        for folder in [self.home(), self.work(), self.data()] {
            std::fs::create_dir_all(folder).unwrap();
        }
        let text = |path: PathBuf| path.to_str().unwrap().to_owned();
        let (home, data) = (text(self.home()), text(self.data()));
        self.set("HOME", &home);
        self.set("REJOIN_HOME", &data);
        self.cli.set_up(self);
    }

    /// Deletes the home of the agents and the folder; only the store is left.
    pub fn lose_the_machine(&mut self) {
        for folder in [self.home(), self.work()] {
            std::fs::remove_dir_all(&folder).unwrap();
            std::fs::create_dir(&folder).unwrap();
        }
        self.cli.set_up(self);
    }

    pub fn set(&mut self, name: &str, value: &str) {
        self.env.insert(name.into(), value.into());
    }

    pub fn unset(&mut self, name: &str) {
        self.env.remove(name);
    }

    /// Disables snapshots from now on.
    pub fn without_snapshots(&mut self) {
        self.set("REJOIN_SNAPSHOTS_ENABLED", "false");
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.rejoin);
        command
            .args(args)
            .current_dir(self.work())
            .env_clear()
            .envs(&self.env);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs `rejoin` to its end.
    pub fn run(&self, args: &[&str]) -> Done {
        Done::of(self.command(args).spawn().unwrap())
    }

    pub fn run_with_stdin(&self, args: &[&str], input: &[u8]) -> Done {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        Done::of(child)
    }

    pub fn spawn(&self, args: &[&str]) -> Child {
        self.command(args).spawn().unwrap()
    }

    /// Sends message `n` to the conversation `k`, whose agent answers with its word. Returns the
    /// turn as JSON.
    #[track_caller]
    pub fn say(&self, n: usize, more: &[&str]) -> Value {
        self.send(n, &format!("#s:a{n}"), more).ok().json()
    }

    /// Sends message `n` with its own script.
    pub fn send(&self, n: usize, script: &str, more: &[&str]) -> Done {
        Done::of(self.start(n, script, more))
    }

    /// Sends message `n` without waiting for the end.
    pub fn start(&self, n: usize, script: &str, more: &[&str]) -> Child {
        let text = format!("{} {script}", user(n));
        let mut args = vec!["send", "--json", "-k", "k"];
        args.extend(more);
        args.push(&text);
        self.spawn(&args)
    }

    /// Returns the session files of the agent below the private home, newest last.
    pub fn sessions(&self) -> Vec<PathBuf> {
        let mut found = self.cli.sessions(self);
        found.sort_by_key(|f| std::fs::metadata(f).unwrap().modified().unwrap());
        found
    }

    /// Continues a session with the CLI itself, as a user would, and waits for the end.
    pub fn by_hand(&self, session: &str, text: &str) -> std::process::Output {
        self.by_hand_command(session, text).output().unwrap()
    }

    pub fn by_hand_command(&self, session: &str, text: &str) -> Command {
        self.by_hand_with(self.cli, session, text)
    }

    /// Returns that command for one of several CLIs.
    pub fn by_hand_with(&self, cli: &dyn Cli, session: &str, text: &str) -> Command {
        let bin = format!("REJOIN_AGENTS_{}_BIN", cli.agent().to_uppercase());
        let mut command = Command::new(&self.env[&bin]);
        command
            .args(cli.by_hand(session, text))
            .current_dir(self.work())
            .env_clear()
            .envs(&self.env)
            .envs(cli.by_hand_env(self, session))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Makes another CLI usable in this world.
    pub fn also(&mut self, cli: &'static dyn Cli) {
        let bin = installed(cli);
        cli.set_up(self);
        let agent = cli.agent().to_uppercase();
        self.set(&format!("REJOIN_AGENTS_{agent}_BIN"), bin.to_str().unwrap());
    }

    /// Uses a CLI without rejoin, to the end of its answer.
    #[track_caller]
    pub fn alone(&self, cli: &dyn Cli, session: Option<&str>, text: &str) {
        let done = Command::new(installed(cli))
            .args(cli.alone(session, text))
            .current_dir(self.work())
            .env_clear()
            .envs(&self.env)
            .envs(cli.alone_env())
            .env("PWD", self.work())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
    }

    /// Returns all processes that this world's commands started and that still run, without
    /// zombies. A shim that has written the end of its run gets a moment to exit.
    pub fn leftovers(&self) -> Vec<(i32, String)> {
        let mark = format!("{MARK}={}", self.env[MARK]);
        let deadline = Instant::now() + Duration::from_secs(1);
        loop {
            let mut found = crate::procs::marked(&mark);
            found.retain(|(_, command)| !command.is_empty());
            let only_shims = found.iter().all(|(_, command)| command.contains(" shim "));
            if found.is_empty() || !only_shims || Instant::now() > deadline {
                return found;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for World {
    /// Kills the processes that the test left behind: only those with this world's marker.
    fn drop(&mut self) {
        for (pid, _) in self.leftovers() {
            let _gone = Command::new("kill").args(["-9", &pid.to_string()]).status();
        }
    }
}

/// Returns a store that knows this binary already: proving it takes a second, and once per test run
/// is enough.
fn known_binary(rejoin: &str, cli: &'static dyn Cli, bin: &Path) -> PathBuf {
    static KNOWN: OnceLock<Mutex<BTreeMap<PathBuf, tempfile::TempDir>>> = OnceLock::new();
    let mut known = KNOWN.get_or_init(Mutex::default).lock().unwrap();
    let dir = known.entry(bin.to_owned()).or_insert_with(|| {
        let mut world = World::new(rejoin);
        world.become_one_of(cli, bin);
        // A permission that no agent can enforce: the binary is examined, but nothing runs or is
        // kept.
        let refused = world.run(&["send", "--tools=-x", "hello"]);
        assert_eq!(refused.code, 5, "{refused:?}");
        let keep = tempfile::tempdir().unwrap();
        copy_store(&world.data(), keep.path());
        keep
    });
    dir.path().to_owned()
}

/// Copies a store with its log, where a command leaves its newest writes.
fn copy_store(from: &Path, to: &Path) {
    for name in ["rejoin.db", "rejoin.db-wal"] {
        if from.join(name).exists() {
            std::fs::copy(from.join(name), to.join(name)).unwrap();
        }
    }
}
