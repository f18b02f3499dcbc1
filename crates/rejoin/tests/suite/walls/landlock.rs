//! The wall around turns of a user without privileges: Landlock.

use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::Path;
use std::process::{Command, Stdio};

use rejoin_testkit::{CLAUDE_197, CODEX_166, Cli, Done, World, wait_for};
use serde_json::Value;

use super::{REJOIN, attacks, left_out_without, script, shell, tried, wall_check};

/// The user `nobody`.
const NOBODY: u32 = 65534;

/// Gives a world to `nobody`, with a temporary folder of its own. None: the tests are not run by root,
/// or this kernel has no Landlock, and they may be left out.
#[track_caller]
pub(super) fn given_away(mut world: World) -> Option<World> {
    if world.root().metadata().unwrap().uid() != 0 {
        left_out_without("only root can run rejoin as another user");
        return None;
    }
    let temporary = world.root().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    world.set("TMPDIR", temporary.to_str().unwrap());
    world.set("USER", "nobody");
    give(world.root());
    let report = run(&world, &["doctor", "--json"]).json();
    let wall = &report["machine"]["wall"];
    if wall["text"]
        .as_str()
        .unwrap()
        .contains("kernel has no Landlock")
    {
        left_out_without("this kernel has no Landlock");
        return None;
    }
    assert_eq!(wall["mechanism"], "landlock", "{wall}");
    Some(world)
}

fn give(path: &Path) {
    chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    if path.is_dir() && !path.is_symlink() {
        for entry in std::fs::read_dir(path).unwrap() {
            give(&entry.unwrap().path());
        }
    }
}

/// A program as that user, without privileges.
fn as_nobody(program: &str) -> Command {
    let user = format!("--reuid={NOBODY}");
    let group = format!("--regid={NOBODY}");
    let mut command = Command::new("setpriv");
    command.args([&user, &group, "--clear-groups", "--", program]);
    command
}

/// Runs `rejoin` as that user.
fn run(world: &World, args: &[&str]) -> Done {
    let child = as_nobody(REJOIN)
        .args(args)
        .current_dir(world.work())
        .env_clear()
        .envs(&world.env)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    Done::of(child.unwrap())
}

#[track_caller]
pub(super) fn turn(world: &World, args: &[&str]) -> Value {
    let done = run(world, &[&["send", "--json"], args].concat());
    let turn = done.json();
    assert_eq!(turn["status"], "succeeded", "{turn:#} {done:?}");
    turn
}

/// What a command of an agent printed.
#[track_caller]
pub(super) fn printed(world: &World, command: &str) -> String {
    turn(world, &[command])["text"].as_str().unwrap().to_owned()
}

#[test]
fn data_and_configuration_are_closed() {
    let Some(world) = given_away(shell()) else {
        return;
    };
    let (data, home) = (world.data(), world.home());
    let (data, home) = (data.display(), home.display());
    let mut denied = attacks(&world);
    let shim = "$(awk '{print $4}' /proc/$PPID/stat)";
    denied.extend([
        format!("cat /proc/{shim}/environ"),
        format!("ls /proc/{shim}/cwd/"),
        format!("unshare -Urm cat {data}/rejoin.db"),
        // The limit of the mechanism.
        format!("echo x > {home}/new"),
    ]);
    let turn_of = turn(&world, &[&script(&denied)]);
    for tried in tried(&denied, turn_of["text"].as_str().unwrap()) {
        assert_ne!(tried.code, 0, "{tried:?}");
        assert!(!tried.printed.contains("SQLite format"), "{tried:?}");
    }
    let allowed = [
        "echo x > new && mkdir -p a/b && mv new a/b/new".to_owned(),
        "echo x > $TMPDIR/x && mv $TMPDIR/x moved".to_owned(),
        format!("ls / {home} {data}"),
        format!("mkdir -p {home}/old/new && echo x > {home}/old/file"),
        "echo x | tee /dev/stderr > /dev/stdout".to_owned(),
    ]
    .to_vec();
    std::fs::create_dir(world.home().join("old")).unwrap();
    give(&world.home());
    let second = turn(&world, &[&script(&allowed)]);
    for tried in tried(&allowed, second["text"].as_str().unwrap()) {
        assert_eq!(tried.code, 0, "{tried:?}");
    }
    for turn in [turn_of, second] {
        let evidence = wall_check(&turn);
        assert_eq!(evidence["ok"], true, "{evidence}");
        assert!(
            evidence["evidence"].as_str().unwrap().contains("Landlock"),
            "{evidence}"
        );
    }
    assert_eq!(
        run(&world, &["list", "--json"]).ok().json()["conversations"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

/// Without privileges, too, neither the shim nor another process of the same user takes signals from an agent.
#[test]
fn processes_outside_take_no_signals() {
    let Some(world) = given_away(shell()) else {
        return;
    };
    if !signals_stay_inside() {
        left_out_without("signals stay inside with Linux 6.12 or newer");
        return;
    }
    let mut other = as_nobody("sleep").arg("600").spawn().unwrap();
    let pid = other.id();
    let uid = wait_for("the other process to change its user", 10, || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = status
            .lines()
            .find(|line| line.starts_with("Uid:"))?
            .to_owned();
        line.contains(&NOBODY.to_string()).then_some(line)
    });
    assert!(uid.matches(&NOBODY.to_string()).count() >= 3, "{uid}");
    let shim = "$(awk '{print $4}' /proc/$PPID/stat)";
    let denied = [
        format!("kill -9 {shim}"),
        format!("kill -STOP {shim}"),
        format!("kill -0 {shim}"),
        format!("kill -9 {pid}"),
        format!("kill -TERM {pid}"),
    ];
    let refused = turn(&world, &[&script(&denied)]);
    for tried in tried(&denied, refused["text"].as_str().unwrap()) {
        assert_ne!(tried.code, 0, "{tried:?}");
    }
    assert_eq!(wall_check(&refused)["ok"], true, "{refused:#}");
    assert_eq!(other.try_wait().unwrap(), None, "it was killed");
    // Processes of the turn itself take them.
    let own = ["sleep 60 & kill $!".to_owned()];
    let allowed = turn(&world, &[&script(&own)]);
    for tried in tried(&own, allowed["text"].as_str().unwrap()) {
        assert_eq!(tried.code, 0, "{tried:?}");
    }
    // The same user without a wall can: the kernel's own rules do not forbid it.
    let killed = as_nobody("kill").arg("-9").arg(pid.to_string()).status();
    assert!(killed.unwrap().success());
    other.wait().unwrap();
}

/// The kernel knows the scope of signals (Landlock 6).
pub(super) fn signals_stay_inside() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release
        .split(['.', '-'])
        .map(|part| part.trim().parse::<u32>());
    let mut next = || numbers.next().and_then(Result::ok).unwrap_or(0);
    (next(), next()) >= (6, 12)
}

/// There is no wall if nothing could be made in the working folder any more.
#[test]
fn a_working_folder_around_the_data_has_none() {
    let Some(world) = given_away(shell()) else {
        return;
    };
    let root = world.root().to_str().unwrap();
    let checked = wall_check(&turn(
        &world,
        &["--workdir", root, "echo x > new && cat new"],
    ));
    assert_eq!(checked["ok"], Value::Null, "{checked}");
    let evidence = checked["evidence"].as_str().unwrap();
    assert!(evidence.contains("Landlock would keep"), "{evidence}");
}

/// Two turns of a real CLI, the second one resumed.
fn resumes(cli: &'static dyn Cli, flags: &[&str]) -> Option<Value> {
    let world = given_away(World::of(REJOIN, cli)?)?;
    let mut last = Value::Null;
    for (n, verdict) in [(1, "started"), (2, "resumed")] {
        let text = format!("{} #s:a{n}", rejoin_testkit::user(n));
        last = turn(&world, &[&["-k", "k"], flags, &[text.as_str()]].concat());
        assert_eq!(last["verdict"], verdict, "{last:#}");
    }
    Some(wall_check(&last))
}

#[test]
fn claude_resumes_behind_it() {
    let Some(checked) = resumes(&CLAUDE_197, &[]) else {
        return;
    };
    assert_eq!(checked["ok"], true, "{checked}");
}

/// Codex builds a sandbox of its own with mounts, unless it may do everything.
#[test]
fn codex_resumes_behind_it_without_its_own_sandbox() {
    let Some(checked) = resumes(&CODEX_166, &["--permission", "full"]) else {
        return;
    };
    assert_eq!(checked["ok"], true, "{checked}");
    let Some(checked) = resumes(&CODEX_166, &[]) else {
        return;
    };
    assert_eq!(checked["ok"], Value::Null, "{checked}");
    assert!(
        checked["evidence"]
            .as_str()
            .unwrap()
            .contains("its own sandbox"),
        "{checked}"
    );
}

/// The hook of Claude Code reads and writes its files: without it the question would not be put off.
#[test]
fn a_question_is_put_off_behind_it() {
    let Some(mut world) = World::of(REJOIN, &CLAUDE_197) else {
        return;
    };
    world.set("REJOIN_QUESTIONS_ASK", "always");
    world.set("REJOIN_QUESTIONS_DEFER_AFTER", "1s");
    // There is no wall as long as Claude has to make its folder.
    std::fs::create_dir(world.home().join(".claude")).unwrap();
    let Some(world) = given_away(world) else {
        return;
    };
    let asks = ["send", "--json", "-k", "k", "-m", "sonnet", "#s:ask please"];
    let asked = run(&world, &asks);
    assert_eq!(asked.code, 7, "{asked:?}");
    let put_off = wait_for("the question to be put off", 30, || {
        let shown = run(&world, &["show", "k", "--json"]).json();
        let turn = shown["turns"].as_array()?.last()?.clone();
        (turn["attempts"][0]["status"] == "deferred").then_some(turn)
    });
    assert_eq!(wall_check(&put_off)["ok"], true, "{put_off:#}");
}
