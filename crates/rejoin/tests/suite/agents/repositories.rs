//! A cloned repository brings along files that a CLI would obey: programs, servers, permissions. None of
//! them counts before the user trusts it (promise 7); a file that the CLI cannot be kept from refuses
//! the turn before the CLI runs.

mod provoked;
mod table;
mod trusted;

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use rejoin_testkit::{
    CLAUDE_20, CLAUDE_197, CLAUDE_325, CODEX_166, Cli, GEMINI_061, OPENCODE, World,
};
use serde_json::Value;

use self::table::{Fate, ROWS, Row};

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

/// A hostile checkout with a subfolder, and traces of everything that its files did.
struct Hostile {
    world: World,
    root: PathBuf,
    traces: PathBuf,
    server: TcpListener,
}

impl Hostile {
    fn of(cli: &'static dyn Cli) -> Option<Self> {
        let world = World::of(REJOIN, cli)?;
        let root = fs::canonicalize(world.work()).unwrap();
        let traces = world.root().join("traces");
        fs::create_dir(&traces).unwrap();
        fs::create_dir(root.join("sub")).unwrap();
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        server.set_nonblocking(true).unwrap();
        Some(Self {
            world,
            root,
            traces,
            server,
        })
    }

    fn git_init(&self) {
        let done = Command::new("git")
            .args(["init", "-q"])
            .arg(&self.root)
            .status();
        assert!(done.unwrap().success());
    }

    fn sub(&self) -> PathBuf {
        self.root.join("sub")
    }

    /// Writes the file of a row into a folder.
    fn put(&self, row: &Row, folder: &Path) {
        let n = ROWS.iter().position(|r| std::ptr::eq(r, row)).unwrap();
        let place = if folder == self.root { "root" } else { "sub" };
        let trace = self.traces.join(format!("{n}-{place}"));
        let url = format!("http://{}", self.server.local_addr().unwrap());
        let text = row
            .text
            .replace("{run}", &format!("touch {}", trace.display()))
            .replace("{trace}", trace.to_str().unwrap())
            .replace("{root}", folder.to_str().unwrap())
            .replace("{url}", &url)
            .replace("{offer}", OFFER);
        write(&folder.join(row.path), &text);
        let plugin = format!(
            "require('fs').writeFileSync('{}', ''); export const P = async () => ({{}})",
            trace.display()
        );
        if row.text.contains("{root}") {
            write(&folder.join(".opencode/evil.js"), &plugin);
        }
    }

    /// Which rows left a trace, by file and folder.
    fn ran(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.traces).unwrap().flatten();
        let names = entries.map(|entry| entry.file_name().into_string().unwrap());
        let mut ran: Vec<String> = names
            .map(|name| {
                let (n, place) = name.split_once('-').unwrap();
                let row = &ROWS[n.parse::<usize>().unwrap()];
                format!("{place}: {} ({})", row.path, row.what)
            })
            .collect();
        ran.sort();
        ran
    }

    #[track_caller]
    fn assert_nothing_ran(&self) {
        assert_eq!(self.ran(), Vec::<String>::new());
        let called = self.server.accept().map(|(_, from)| from);
        assert!(
            called.is_err(),
            "the repository's server was called: {called:?}"
        );
    }

    fn rows(&self, fate: Fate) -> impl Iterator<Item = &'static Row> {
        let agent = self.world.cli.agent();
        ROWS.iter()
            .filter(move |row| row.agent == agent && row.fate == fate)
    }

    fn flags<'a>(&'a self, folder: &'a str, mode: &'a str) -> [&'a str; 6] {
        let model = self.world.cli.models()[0];
        ["-w", folder, "--permission", mode, "-m", model]
    }
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Several rows may name the same file: as many repositories as that takes.
fn layers(rows: Vec<&'static Row>) -> Vec<Vec<&'static Row>> {
    let mut layers: Vec<Vec<&'static Row>> = vec![];
    for row in rows {
        let free = layers
            .iter_mut()
            .find(|layer| layer.iter().all(|other| other.path != row.path));
        match free {
            Some(layer) => layer.push(row),
            None => layers.push(vec![row]),
        }
    }
    layers
}

/// Stands in the description of every skill, command and agent of the repository.
const OFFER: &str = "offered-by-the-repository";

const MODES: [&str; 3] = ["edit", "read-only", "ask"];

/// Turns in a subfolder of the checkout, in each mode, in a new session and in a resumed one: nothing of
/// the repository runs, and its memory still reaches the model.
fn ignored_rows_run_nothing(cli: &'static dyn Cli, memory: &str) {
    let Some(hostile) = Hostile::of(cli) else {
        return;
    };
    hostile.git_init();
    let sub = hostile.sub();
    write(&sub.join(memory), "memory-of-the-folder\n");
    write(&hostile.root.join(memory), "memory-of-the-root\n");
    let mut n = 0;
    for (layer, rows) in layers(hostile.rows(Fate::Ignored).collect())
        .iter()
        .enumerate()
    {
        for row in rows {
            hostile.put(row, &hostile.root);
            hostile.put(row, &sub);
        }
        // Each mode once, and every layer at least once: the flags are the same in each.
        let modes = if layer == 0 { &MODES[..] } else { &MODES[..1] };
        for mode in modes {
            n += 1;
            let flags = hostile.flags(sub.to_str().unwrap(), mode);
            let turn = hostile.world.say(n, &flags);
            let verdict = if n == 1 { "started" } else { "resumed" };
            assert_eq!(turn["verdict"], verdict, "{turn:#}");
            hostile.assert_nothing_ran();
            // A CLI may ask the model on its own account, too.
            let requests = hostile.world.model.requests();
            let of_the_turn = requests.iter().rfind(|request| request.script.is_some());
            let shown = of_the_turn.unwrap().body.to_string();
            assert!(!shown.contains(OFFER), "a definition is offered: {shown}");
            for word in ["memory-of-the-folder", "memory-of-the-root"] {
                assert_eq!(shown.matches(word).count(), 1, "{word} in {mode}");
            }
        }
    }
}

#[test]
fn claude_2_1_20_ignores_the_configuration_of_a_repository() {
    ignored_rows_run_nothing(&CLAUDE_20, "CLAUDE.md");
}

#[test]
fn claude_2_1_197_ignores_the_configuration_of_a_repository() {
    ignored_rows_run_nothing(&CLAUDE_197, "CLAUDE.md");
}

#[test]
fn claude_2_1_325_ignores_the_configuration_of_a_repository() {
    ignored_rows_run_nothing(&CLAUDE_325, "CLAUDE.md");
}

#[test]
fn codex_ignores_the_configuration_of_a_repository() {
    ignored_rows_run_nothing(&CODEX_166, "AGENTS.md");
}

#[test]
fn opencode_ignores_the_configuration_of_a_repository() {
    ignored_rows_run_nothing(&OPENCODE, "AGENTS.md");
}

/// A turn is refused before the CLI runs, wherever the CLI would find the file.
fn refused_rows_refuse(cli: &'static dyn Cli) {
    let Some(hostile) = Hostile::of(cli) else {
        return;
    };
    let sub = hostile.sub();
    let check = |row: &Row, folder: &Path| {
        hostile.put(row, folder);
        for mode in MODES {
            let flags = hostile.flags(sub.to_str().unwrap(), mode);
            let done = hostile.world.send(1, "#s:a1", &flags);
            assert_eq!(done.code, 5, "{} in {mode}: {done:?}", row.path);
            let error = &done.json()["error"];
            let message = error["message"].as_str().unwrap();
            let path = folder.join(row.path);
            assert!(message.contains(path.to_str().unwrap()), "{message}");
            assert_eq!(error["try"], "rejoin trust --dry-run");
            assert!(hostile.world.model.requests().is_empty(), "the CLI was run");
        }
        fs::remove_file(folder.join(row.path)).unwrap();
    };
    // Outside of a checkout the CLIs look upward to the root of the file system.
    for row in hostile.rows(Fate::Refused) {
        check(row, &sub);
        if !row.workdir_only {
            check(row, &hostile.root);
        }
    }
    // An empty `.git` on the way stops git, and so the CLIs, as little as it stops us.
    hostile.git_init();
    fs::create_dir(sub.join(".git")).unwrap();
    for row in hostile.rows(Fate::Refused).filter(|row| !row.workdir_only) {
        check(row, &hostile.root);
    }
    let list = hostile.world.run(&["list", "--json"]).ok().json();
    assert_eq!(list["conversations"], Value::Array(vec![]));
    hostile.assert_nothing_ran();
}

#[test]
fn gemini_is_not_started_beside_files_that_it_would_obey() {
    refused_rows_refuse(&GEMINI_061);
}

#[test]
fn opencode_is_not_started_beside_plugins_of_a_repository() {
    refused_rows_refuse(&OPENCODE);
}

/// A file that is no regular file neither blocks the command nor is taken for absent.
/// A folder of a clone can itself be a bare repository, with a configuration that names programs: git takes
/// it for the repository when a CLI works there.
#[test]
fn a_bare_repository_in_a_clone_runs_nothing() {
    for cli in [&CLAUDE_197 as &'static dyn Cli, &CLAUDE_325] {
        let Some(hostile) = Hostile::of(cli) else {
            return;
        };
        hostile.git_init();
        let sub = hostile.sub();
        let trace = hostile.traces.join("0-sub");
        for folder in ["objects", "refs"] {
            write(&sub.join(folder).join("keep"), "");
        }
        // A commit that is missing: git asks the remote for it.
        write(
            &sub.join("HEAD"),
            "1234567890123456789012345678901234567890\n",
        );
        let run = format!("touch {}; false", trace.display());
        write(
            &sub.join("config"),
            &format!(
                "[core]\nrepositoryformatversion = 1\nbare = false\nworktree = .\n\
                 fsmonitor = \"{run}\"\nsshCommand = \"{run}\"\n\
                 [extensions]\npartialClone = origin\n\
                 [remote \"origin\"]\nurl = ssh://example.invalid/x\npromisor = true\n"
            ),
        );
        let flags = hostile.flags(sub.to_str().unwrap(), "read-only");
        let turn = hostile.world.say(1, &flags);
        assert_eq!(turn["verdict"], "started", "{turn:#}");
        assert!(!trace.exists(), "{} ran it", cli.agent());
    }
}

#[test]
fn a_pipe_in_the_place_of_a_settings_file_does_not_block() {
    let Some(hostile) = Hostile::of(&GEMINI_061) else {
        return;
    };
    let sub = hostile.sub();
    fs::create_dir(sub.join(".gemini")).unwrap();
    let made = Command::new("mkfifo")
        .arg(sub.join(".gemini/settings.json"))
        .status();
    assert!(made.unwrap().success());
    let flags = hostile.flags(sub.to_str().unwrap(), "edit");
    let done = hostile.world.send(1, "#s:a1", &flags);
    assert_eq!(done.code, 5, "{done:?}");
    assert!(done.stdout.contains("not a regular file"), "{done:?}");
}

#[test]
fn the_page_about_repositories_shows_every_row() {
    let page = fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/repositories.md"
    ))
    .unwrap();
    let table = table::markdown();
    assert!(
        page.contains(&table),
        "docs/repositories.md should hold:\n{table}"
    );
}
