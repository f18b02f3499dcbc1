//! What tools leave running is ended with the turn, however it was detached, or kept if asked for.

use rejoin_model::Step;
use rejoin_testkit::{
    CLAUDE_NEW, CLAUDE_OLD, Done, Model, Talk, World, answer, kill, runs, slowly, wait_for,
};
use serde_json::Value;

use super::REJOIN;

const DETACHED: &str = "setsid tail -f /etc/hostname >/dev/null 2>&1 & \
    (setsid sh -c 'tail -f /etc/passwd >/dev/null 2>&1 & exit 0' &) ; \
    nohup tail -f /etc/group >/dev/null 2>&1 & \
    env -i tail -f /etc/hosts >/dev/null 2>&1 & echo started";
const FILES: [&str; 4] = ["hostname", "passwd", "group", "hosts"];

fn world(version: &str) -> Option<World> {
    World::claude_with(REJOIN, version, || {
        let detached = vec![runs(DETACHED), Step::text(answer(1))];
        let detached_late = vec![runs(DETACHED), slowly(&answer(1), 8)];
        Model::scripted([("detached", detached), ("detached-late", detached_late)])
    })
}

/// Which of them the turn lists.
fn listed(turn: &Value) -> Vec<&str> {
    let left = turn["leftovers"].as_array().unwrap();
    let is_there = |file: &&str| {
        let command = format!("tail -f /etc/{file}");
        left.iter().any(|l| l.as_str().unwrap().ends_with(&command))
    };
    FILES.into_iter().filter(is_there).collect()
}

/// Which of them run; the one without an environment is found through what the turn lists.
fn running(turn: &Value) -> Vec<i32> {
    let pid = |l: &Value| {
        l.as_str()
            .unwrap()
            .split(' ')
            .next()
            .unwrap()
            .parse::<i32>()
    };
    let left = turn["leftovers"].as_array().unwrap().iter();
    left.map(|l| pid(l).unwrap())
        .filter(|pid| {
            std::fs::read_to_string(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|command| command.starts_with("tail\0-f\0/etc/"))
        })
        .collect()
}

#[test]
fn detached_tools_are_ended_and_listed() {
    for version in [CLAUDE_OLD, CLAUDE_NEW] {
        let Some(world) = world(version) else { return };
        let flags = ["-m", "sonnet", "--tools", "Bash"];
        let turn = world.send(1, "#s:detached", &flags).ok().json();
        assert_eq!(
            (&turn["status"], &turn["text"]),
            (&"succeeded".into(), &answer(1).into())
        );
        assert_eq!(listed(&turn), FILES, "{}", turn["leftovers"]);
        assert_eq!(running(&turn), Vec::<i32>::new());
        world.assert_quiet();
        let summary = turn["summary"].as_str().unwrap();
        assert!(
            summary.ends_with(" processes it left running were ended"),
            "{summary}"
        );
        let mut talk = Talk {
            words: vec![rejoin_testkit::user(1), answer(1)],
            n: 1,
            ..Talk::begin(world)
        };
        talk.good("resumed", &[]);
    }
}

#[test]
fn kept_if_asked_for() {
    let Some(world) = world(CLAUDE_OLD) else {
        return;
    };
    let flags = ["-m", "sonnet", "--tools", "Bash", "--keep-background"];
    let turn = world.send(1, "#s:detached", &flags).ok().json();
    assert_eq!(listed(&turn), FILES, "{}", turn["leftovers"]);
    // Nor does a later command end them.
    let _listed = world.run(&["list"]);
    assert_eq!(running(&turn).len(), FILES.len());
    let doctor = world.run(&["doctor"]).stdout;
    let id = turn["turn_id"].as_str().unwrap();
    let told = format!("tail -f /etc/hostname kept by --keep-background: rejoin cancel {id}");
    assert!(doctor.contains(&told), "{doctor}");
    // Until they are cancelled, the one without an environment too.
    let cancelled = world.run(&["cancel", "k"]).ok();
    assert_eq!(
        cancelled.stdout,
        "the processes that the turn had left running were ended\n"
    );
    assert_eq!(running(&turn), Vec::<i32>::new());
    world.assert_quiet();
    let again = world.run(&["cancel", "k"]);
    assert_eq!(again.code, 4, "{again:?}");
    let summary = turn["summary"].as_str().unwrap();
    assert!(
        summary.ends_with(" · 4 processes are left running"),
        "{summary}"
    );
}

/// The same when the turn is settled by another command than the one that sent it.
#[test]
fn kept_also_if_send_is_killed() {
    let Some(world) = world(CLAUDE_OLD) else {
        return;
    };
    let flags = ["-m", "sonnet", "--tools", "Bash", "--keep-background"];
    let send = world.start(1, "#s:detached-late", &flags);
    wait_for("the answer to begin", 20, || {
        world.printed("text_delta").then_some(())
    });
    kill(send.id() as i32, "KILL");
    assert_eq!(Done::of(send).code, -9);
    let turn = wait_for("the turn to be settled", 20, || {
        let turn = world.last_turn();
        (turn["status"] != "running").then_some(turn)
    });
    assert_eq!(turn["status"], "succeeded");
    assert_eq!(running(&turn).len(), FILES.len(), "{}", turn["leftovers"]);
    let daemon = world.serve(&[]);
    let cancel = format!("/api/turns/{}/cancel", turn["turn_id"].as_str().unwrap());
    let cancelled = daemon.post(&cancel, &Value::Null).ok();
    assert_eq!(cancelled["status"], "succeeded", "{cancelled}");
    assert_eq!(running(&turn), Vec::<i32>::new());
    assert_eq!(daemon.post(&cancel, &Value::Null).status, 409);
}
