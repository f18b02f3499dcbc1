//! The wall around turns that root runs: folders hidden by a mount namespace, which cannot be undone.

use std::path::Path;

use rejoin_model::Step;
use rejoin_testkit::{CODEX_166, CODEX_TOOLS, Model, World, runs, wait_for};

use super::{
    REJOIN, attacks, left_out_without, mechanism, printed, script, shell, tried, turn, wall_check,
};

/// None: the tests are not run by root, and may be left out.
#[track_caller]
pub(super) fn walled() -> Option<World> {
    let world = shell();
    if mechanism(&world).as_deref() == Some("namespace") {
        return Some(world);
    }
    left_out_without("a wall of mount namespaces needs root with CAP_SYS_ADMIN");
    None
}

#[test]
fn data_and_configuration_are_hidden() {
    let Some(world) = walled() else { return };
    let config = world.home().join(".config/rejoin/config.toml");
    let before = std::fs::read(&config).unwrap();
    let mut commands = attacks(&world);
    // An empty folder remains to be seen.
    commands.push(format!("ls -A {} | grep .", world.data().display()));
    let turn = turn(&world, &script(&commands), &[]);
    for tried in tried(&commands, turn["text"].as_str().unwrap()) {
        assert_ne!(tried.code, 0, "{tried:?}");
        assert!(!tried.printed.contains("SQLite format"), "{tried:?}");
    }
    assert_eq!(wall_check(&turn)["ok"], true, "{turn:#}");
    assert_eq!(std::fs::read(&config).unwrap(), before);
    assert!(!world.data().join("planted").exists());
    let list = world.run(&["list", "--json"]).ok().json();
    assert_eq!(list["conversations"].as_array().unwrap().len(), 1);
}

/// Root among the agent's processes can neither unmount nor leave through another process.
#[test]
fn the_wall_cannot_be_undone() {
    let Some(world) = walled() else { return };
    let daemon = world.serve(&[]);
    let (data, pid) = (world.data(), daemon.pid());
    let data = data.display();
    let shim = "$(awk '{print $4}' /proc/$PPID/stat)";
    let commands = [
        format!("umount {data}"),
        format!("umount -l {data}"),
        format!("mount -o remount,rw {data}"),
        format!("mount --bind / /mnt && cat /mnt{data}/rejoin.db"),
        format!("nsenter -t {pid} -m cat {data}/rejoin.db"),
        format!("nsenter -t 1 -m cat {data}/rejoin.db"),
        format!("unshare -m umount {data}"),
        format!("unshare -Urm umount {data}"),
        format!("cat /proc/{pid}/root{data}/rejoin.db"),
        format!("cat /proc/{pid}/environ"),
        format!("cat /proc/{pid}/fd/* | grep -a SQLite"),
        format!("readlink /proc/{pid}/fd/* | grep ."),
        format!("cat /proc/{pid}/cwd/../data/rejoin.db"),
        format!("cat /proc/{pid}/mem"),
        format!("ls /proc/{shim}/cwd/"),
        format!("cat /proc/{shim}/environ"),
    ]
    .to_vec();
    let said = printed(&world, &script(&commands));
    for tried in tried(&commands, &said) {
        assert_ne!(tried.code, 0, "{tried:?}");
        assert!(!tried.printed.contains("SQLite format"), "{tried:?}");
        assert!(!tried.printed.contains("REJOIN_HOME"), "{tried:?}");
    }
}

/// Nothing else on the machine is different.
#[test]
fn everything_else_stays_usable() {
    let Some(world) = walled() else { return };
    let (root, home) = (world.root().display(), world.home());
    let home = home.display();
    let outside = tempfile::tempdir().unwrap();
    let outside = outside.path().display();
    let commands = [
        "echo x > new && mkdir -p a/b && mv new a/b/new".to_owned(),
        format!("echo x > {root}/beside && mv {root}/beside {outside}/moved"),
        format!("echo x > {home}/.new && ln {home}/.new {home}/.linked"),
        // Folders above a protected one are like filesystems of their own.
        format!("mv {home}/.new {home}/.config/moved && rm {home}/.config/moved"),
        format!("mkdir {home}/.config/other && rmdir {home}/.config/other"),
        "echo x | tee /dev/stderr > /dev/stdout".to_owned(),
        "ls / /proc/1 && test -w /dev/null && ps -e".to_owned(),
        "su -s /bin/sh nobody -c 'id -un'".to_owned(),
    ]
    .to_vec();
    let said = printed(&world, &script(&commands));
    for tried in tried(&commands, &said) {
        assert_eq!(tried.code, 0, "{tried:?}");
    }
}

/// A process that leaves its turn takes the wall along.
#[test]
fn what_outlives_its_turn_stays_behind_the_wall() {
    let Some(world) = walled() else { return };
    let (data, seen) = (world.data(), world.work().join("seen"));
    let (data, at) = (data.display(), seen.display());
    let later = format!(
        "setsid -f sh -c 'sleep 1; cat {data}/rejoin.db > {at}.tmp 2>&1; mv {at}.tmp {at}' >/dev/null 2>&1; echo started"
    );
    turn(&world, &later, &["--keep-background"]);
    let text = wait_for("the process to look", 20, || std::fs::read(&seen).ok());
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(text.contains("No such file"), "{text}");
}

/// The folder of the configuration cannot be made by an agent either.
#[test]
fn a_missing_configuration_cannot_be_planted() {
    let Some(mut world) = walled() else { return };
    let config = world.home().join(".config/rejoin");
    let moved = world.root().join("config.toml");
    std::fs::rename(config.join("config.toml"), &moved).unwrap();
    std::fs::remove_dir_all(world.home().join(".config")).unwrap();
    world.set("REJOIN_CONFIG", moved.to_str().unwrap());
    let commands = [
        format!("mkdir -p {0} && echo x > {0}/config.toml", config.display()),
        format!("mv {0} {0}.moved", config.display()),
    ]
    .to_vec();
    let args = ["--config", moved.to_str().unwrap()];
    let turn = turn(&world, &script(&commands), &args);
    for tried in tried(&commands, turn["text"].as_str().unwrap()) {
        assert_ne!(tried.code, 0, "{tried:?}");
    }
    assert!(!config.join("config.toml").exists());
}

/// A folder above a protected one cannot be moved aside to put another one in its place: the next daemon
/// would run what a planted configuration names, outside of every wall.
#[test]
fn folders_above_cannot_be_moved_aside() {
    let Some(world) = walled() else { return };
    let config = world.home().join(".config");
    let mut above: Vec<_> = world
        .data()
        .ancestors()
        .skip(1)
        .map(Path::to_owned)
        .collect();
    above.extend(config.ancestors().map(Path::to_owned));
    above.retain(|folder| folder.starts_with(world.root()));
    let mut commands = vec![];
    for folder in &above {
        let shown = folder.display();
        commands.push(format!("mv {shown} {shown}.moved"));
        commands.push(format!("mv {shown} aside"));
        // By a path that is relative to a folder which was open before.
        let name = folder.file_name().unwrap().to_str().unwrap();
        commands.push(format!("cd {shown}/.. && mv {name} {name}.moved"));
        commands.push(format!("rm -r {shown}.none || rmdir {shown}"));
    }
    commands.push(format!("cat {}/rejoin/config.toml", config.display()));
    commands.push("cat ../data/rejoin.db".to_owned());
    let turn = turn(&world, &script(&commands), &[]);
    for tried in tried(&commands, turn["text"].as_str().unwrap()) {
        assert_ne!(tried.code, 0, "{tried:?}");
    }
    assert_eq!(wall_check(&turn)["ok"], true, "{turn:#}");
    assert!(config.join("rejoin/config.toml").is_file());
    world.run(&["list"]).ok();
}

/// A link on the way to a protected folder can be replaced: a turn that requires a wall is refused.
#[test]
fn a_link_on_the_way_is_not_enough_where_a_wall_is_required() {
    let Some(mut world) = walled() else { return };
    let config = world.home().join(".config");
    let moved = world.root().join("elsewhere");
    std::fs::rename(&config, &moved).unwrap();
    std::os::unix::fs::symlink(&moved, &config).unwrap();
    assert_eq!(wall_check(&turn(&world, "echo hi", &[]))["ok"], true);
    world.set("REJOIN_WALL_MODE", "required");
    let refused = world.run(&["send", "echo hi"]);
    assert_eq!(refused.code, 5, "{refused:?}");
    assert!(refused.stderr.contains("is a link"), "{refused:?}");
}

/// A folder in which no wall can be built: said, or refused before anything is sent.
#[test]
fn a_turn_inside_the_data_folder_has_no_wall() {
    let Some(mut world) = walled() else { return };
    let inside = world.data().join("work");
    std::fs::create_dir(&inside).unwrap();
    let there = ["--workdir", inside.to_str().unwrap()];
    let checked = wall_check(&turn(&world, "echo hi", &there));
    assert_eq!(checked["ok"], serde_json::Value::Null, "{checked}");
    let evidence = checked["evidence"].as_str().unwrap();
    assert!(
        evidence.starts_with("none: the working folder"),
        "{evidence}"
    );
    world.set("REJOIN_WALL_MODE", "required");
    let refused = world.run(&["send", "--workdir", inside.to_str().unwrap(), "echo hi"]);
    assert_eq!(refused.code, 5, "{refused:?}");
    assert!(
        refused.stderr.contains("no wall can be built"),
        "{refused:?}"
    );
    assert!(refused.stderr.contains("try: rejoin doctor"), "{refused:?}");
    turn(&world, "echo hi", &[]);
}

/// An agent that killed its shim would leave the process tree by which it is found, one that stopped it would
/// have no limits any more.
#[test]
fn shims_and_other_processes_outside_take_no_signals() {
    let Some(world) = walled() else { return };
    // The shell that runs the prompt is a child of the agent, whose parent is the shim.
    let shim = "shim=$(cut -d' ' -f4 /proc/$PPID/stat); tr '\\0' ' ' < /proc/$shim/cmdline; echo; \
        kill -9 $shim; echo killed $?; kill -STOP $shim; echo stopped $?";
    let said = printed(&world, shim);
    assert!(said.contains("rejoin shim"), "{said}");
    assert!(
        !said.contains("killed 0") && !said.contains("stopped 0"),
        "{said}"
    );
    // Within its own tree it may.
    let said = printed(&world, "sleep 60 & kill $!; echo own $?");
    assert!(said.contains("own 0"), "{said}");
}

/// Behind the wall the environment of the shim cannot be read.
#[test]
fn a_detached_command_is_still_one_of_a_turn() {
    let Some(world) = walled() else { return };
    let out = world.work().join("out");
    let elsewhere = world.root().join("elsewhere");
    let line = format!(
        "env -i PATH=\"$PATH\" HOME=/ REJOIN_HOME={} setsid -f sh -c '{REJOIN} token create evil --scope admin; echo exit $?' > {} 2>&1; \
         while ! grep -q exit {}; do sleep 0.1; done; echo waited",
        elsewhere.display(),
        out.display(),
        out.display()
    );
    turn(&world, &line, &[]);
    let said = std::fs::read_to_string(&out).unwrap();
    assert!(said.contains("this is a process of a turn"), "{said}");
    assert!(said.trim_end().ends_with("exit 5"), "{said}");
}

/// A script beside the configuration is started, and the turn says that it has no wall.
#[test]
fn an_agent_inside_the_configuration_folder_has_no_wall() {
    let Some(world) = walled() else { return };
    let config = world.home().join(".config/rejoin");
    std::fs::rename(world.root().join("shellcli"), config.join("shellcli")).unwrap();
    let text = std::fs::read_to_string(config.join("config.toml")).unwrap();
    let bin = world.root().join("shellcli").to_str().unwrap().to_owned();
    let text = text.replace(&bin, config.join("shellcli").to_str().unwrap());
    std::fs::write(config.join("config.toml"), text).unwrap();
    let turn = turn(&world, "echo started", &[]);
    assert!(
        turn["text"].as_str().unwrap().contains("started"),
        "{turn:#}"
    );
    assert!(wall_check(&turn)["ok"].is_null(), "{turn:#}");
}

#[test]
fn a_repository_cannot_switch_it_off() {
    let Some(mut world) = walled() else { return };
    let file = world.work().join("rejoin.toml");
    std::fs::write(&file, "[wall]\nmode = \"off\"\n").unwrap();
    let refused = world.run(&["send", "echo hi"]);
    assert_eq!(refused.code, 5, "{refused:?}");
    assert!(refused.stderr.contains("wall.mode"), "{refused:?}");
    std::fs::write(&file, "[wall]\nmode = \"required\"\n").unwrap();
    turn(&world, "echo hi", &[]);
    std::fs::remove_file(&file).unwrap();
    world.set("REJOIN_WALL_MODE", "off");
    let off = wall_check(&turn(&world, "echo hi", &[]));
    assert_eq!(off["evidence"], "none: [wall] mode is `off`");
}

/// Codex mounts folders to build its sandbox: its commands still run, and still do not see the store.
#[test]
fn the_sandbox_of_codex_works_behind_it() {
    if walled().is_none() {
        return;
    }
    let look = "ls ../data ../home/.config/rejoin | wc -l; cat ../data/rejoin.db; umount ../data; echo looked";
    let script = vec![runs(look), Step::text("Done.")];
    let model = || Model::scripted([("look", script)]);
    let Some(world) = World::with(REJOIN, &CODEX_166, model) else {
        return;
    };
    let turn = turn(&world, "#s:look", &["-m", CODEX_TOOLS]);
    let said = world.model.last().body.to_string();
    assert!(said.contains("looked"), "{said}");
    assert!(!said.contains("SQLite format"), "{said}");
    assert!(said.contains("rejoin.db: No such file"), "{said}");
    let check = wall_check(&turn);
    assert_eq!(check["ok"], true, "{check}");
    let evidence = check["evidence"].as_str().unwrap();
    assert!(evidence.contains("the agent's own sandbox"), "{evidence}");
}
