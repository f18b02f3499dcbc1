//! The packages of `./scripts/package`: installed from the built files into empty folders, used, upgraded while a turn
//! runs, and removed.

use std::path::Path;
use std::process::Command;

use rejoin_testkit::{World, wait_for};

use super::terminal::world;

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

/// Builds a package of the binary under test. Returns its file.
fn built(world: &World, kind: &str, version: &str) -> String {
    let out = world.root().join(format!("packages-{version}"));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/package");
    let done = Command::new(script)
        .args(["--quick", "--only", kind, "--version", version])
        .args(["--binary", REJOIN, "--out"])
        .arg(&out)
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
    let said = String::from_utf8(done.stdout).unwrap();
    let runs_on = said.lines().last().unwrap();
    assert!(
        runs_on.starts_with("static") || runs_on.starts_with("needs glibc 2."),
        "{said}"
    );
    let files = files(&out);
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].clone()
}

/// Files and links below a folder, without folders.
fn files(folder: &Path) -> Vec<String> {
    let mut found = vec![];
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            } else {
                found.push(path.to_str().unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

#[track_caller]
fn run(world: &World, program: &str, args: &[&str]) -> String {
    let done = Command::new(program)
        .args(args)
        .env("HOME", world.home())
        .current_dir(world.root())
        .output()
        .unwrap();
    assert!(done.status.success(), "{program} {args:?}: {done:?}");
    String::from_utf8(done.stdout).unwrap()
}

/// The installed command: its demo, and a conversation.
#[track_caller]
fn works(world: &World, rejoin: &Path, key: &str) {
    let run = |args: &[&str]| {
        let mut command = Command::new(rejoin);
        command.args(args).env_clear().envs(&world.env);
        let done = command.current_dir(world.work()).output().unwrap();
        assert!(done.status.success(), "{args:?}: {done:?}");
        String::from_utf8(done.stdout).unwrap() + &String::from_utf8(done.stderr).unwrap()
    };
    let demo = run(&["demo"]);
    for verdict in ["started", "resumed", "restored", "reseeded"] {
        assert!(demo.contains(verdict), "{verdict} in {demo}");
    }
    run(&["send", "-k", key, "-a", "demo", "UWORD1"]);
    let second = run(&["send", "-k", key, "UWORD2"]);
    assert_eq!(second.matches("UWORD1").count(), 1, "{second}");
}

#[test]
fn a_debian_package_is_installed_upgraded_and_removed() {
    let world = world();
    let root = world.root().join("root");
    for folder in ["updates", "info"] {
        std::fs::create_dir_all(root.join("var/lib/dpkg").join(folder)).unwrap();
    }
    std::fs::write(root.join("var/lib/dpkg/status"), "").unwrap();
    let root_flag = format!("--root={}", root.display());
    // The root is empty: the C library is that of the machine.
    let dpkg = |args: &[&str]| {
        let flags = [root_flag.as_str(), "--force-depends", "--force-not-root"];
        run(&world, "dpkg", &[&flags, args].concat())
    };
    dpkg(&["--install", &built(&world, "deb", "0.1.0")]);
    let rejoin = root.join("usr/bin/rejoin");
    works(&world, &rejoin, "deb");
    for path in [
        "usr/share/man/man1/rejoin-send.1.gz",
        "usr/share/bash-completion/completions/rejoin",
        "usr/share/zsh/vendor-completions/_rejoin",
        "usr/share/fish/vendor_completions.d/rejoin.fish",
    ] {
        assert!(
            std::fs::metadata(root.join(path)).unwrap().len() > 100,
            "{path}"
        );
    }
    let unit = root.join("usr/lib/systemd/user/rejoin.service");
    let unit = std::fs::read_to_string(unit).unwrap();
    assert!(
        unit.contains("\nExecStart=/usr/bin/rejoin serve\n"),
        "{unit}"
    );

    // Upgraded while a turn runs: the turn ends as if nothing had happened.
    let mut turn = Command::new(&rejoin);
    turn.args(["send", "-k", "k", "-a", "demo", "wait 4s UWORD1"]);
    turn.env_clear().envs(&world.env).current_dir(world.work());
    let mut turn = turn.stdout(std::process::Stdio::null()).spawn().unwrap();
    wait_for("the turn to run", 60, || {
        let shown = world.run(&["show", "k", "--json"]);
        (shown.code == 0 && shown.json()["turns"][0]["status"] == "running").then_some(())
    });
    dpkg(&["--install", &built(&world, "deb", "0.1.1")]);
    assert!(dpkg(&["--status", "rejoin"]).contains("Version: 0.1.1"));
    assert!(turn.wait().unwrap().success());
    assert_eq!(world.last_turn()["status"], "succeeded");
    works(&world, &rejoin, "upgraded");

    dpkg(&["--purge", "rejoin"]);
    let left: Vec<_> = files(&root)
        .into_iter()
        .filter(|f| !f.contains("/var/lib/dpkg/"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(!root.join("usr").exists());
}

#[test]
fn an_npm_package_is_installed_and_removed() {
    let world = world();
    let prefix = world.root().join("npm");
    std::fs::create_dir(&prefix).unwrap();
    let npm = |args: &[&str]| {
        let flags = [
            "--global",
            "--offline",
            "--no-audit",
            "--no-fund",
            "--no-update-notifier",
        ];
        let prefix = ["--prefix", prefix.to_str().unwrap()];
        run(&world, "npm", &[args, &flags, &prefix].concat())
    };
    npm(&["install", &built(&world, "npm", "0.1.0")]);
    works(&world, &prefix.join("bin/rejoin"), "npm");
    assert!(prefix.join("share/man/man1/rejoin-send.1").exists());
    npm(&["uninstall", "rejoin"]);
    assert_eq!(files(&prefix), Vec::<String>::new());
}

#[test]
fn a_wheel_is_installed_and_removed() {
    let world = world();
    let venv = world.root().join("venv");
    let venv_path = venv.to_str().unwrap();
    run(
        &world,
        "python3",
        &["-m", "venv", "--without-pip", venv_path],
    );
    let before = files(&venv);
    let python = format!("{venv_path}/bin/python");
    let pip = |args: &[&str]| {
        let flags = [
            "-m",
            "pip",
            "--disable-pip-version-check",
            "--python",
            &python,
        ];
        run(&world, "python3", &[&flags, args].concat())
    };
    let wheel = built(&world, "wheel", "0.1.0");
    pip(&["install", "--no-index", "--no-deps", &wheel]);
    works(&world, &venv.join("bin/rejoin"), "wheel");
    pip(&["uninstall", "--yes", "rejoin"]);
    assert_eq!(files(&venv), before);
}
