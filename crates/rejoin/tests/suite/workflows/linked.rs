//! Steps that continue each other, with the real CLIs (US1 to US4).
#![expect(clippy::needless_pass_by_value, reason = "as every test on a world")]

use rejoin_testkit::{
    CLAUDE_325, CODEX_166, Model, World, answer, assert_shown, on_every_cli, said, user, words_in,
};

use super::{REJOIN, step, succeed, write};

fn prompt(n: usize) -> String {
    format!("prompt: \"{} #s:a{n}\"\n", user(n))
}

fn head(world: &World) -> String {
    format!(
        "defaults: {{ agent: {}, model: {} }}\n",
        world.cli.agent(),
        world.cli.models()[0]
    )
}

/// US1: three steps in one session. The model sees each message once, and the CLI is told to resume
/// the session of the first step.
fn steps_continue_one_session(world: World) {
    let steps = [
        ("one", prompt(1)),
        ("two", format!("continue_from: one\n{}", prompt(2))),
        ("three", format!("continue_from: two\n{}", prompt(3))),
    ];
    let steps: Vec<(&str, &str)> = steps
        .iter()
        .map(|(id, text)| (*id, text.as_str()))
        .collect();
    write(&world, &head(&world), &steps);
    let view = succeed(&world, &[]);
    let mut words = said(1..3);
    words.push(user(3));
    assert_shown(&world.model.last(), &words);
    let (first, last) = (step(&view, "one"), step(&view, "three"));
    assert_eq!(first["conversation_id"], last["conversation_id"]);
    assert_eq!(first["session_id"], last["session_id"]);
    assert_eq!(last["continued_from"], "two");
    for id in ["two", "three"] {
        let step = step(&view, id);
        assert_eq!(step["verdict"], "resumed", "{view:#}");
        let turn = step["turn_id"].as_str().unwrap();
        let explained = world.run(&["explain", turn, "--json"]).ok().json();
        let command: Vec<String> = serde_json::from_value(explained["command"].clone()).unwrap();
        let session = first["session_id"].as_str().unwrap();
        assert!(
            world.cli.resumed(&command).as_deref() == Some(session)
                || command.iter().any(|arg| arg.contains(session)),
            "{command:?}"
        );
    }
    assert_eq!(last["text"], answer(3));
    // The same command again runs nothing.
    let asked = world.model.requests().len();
    succeed(&world, &[]);
    assert_eq!(world.model.requests().len(), asked);
}

on_every_cli!(steps_continue_one_session);

/// US2: parallel steps of one agent, each continued: no session holds words of the other.
fn parallel_steps_never_mix(world: World) {
    let steps = [
        ("left", prompt(1)),
        ("right", prompt(2)),
        ("left2", format!("continue_from: left\n{}", prompt(3))),
        ("right2", format!("continue_from: right\n{}", prompt(4))),
    ];
    let steps: Vec<(&str, &str)> = steps
        .iter()
        .map(|(id, text)| (*id, text.as_str()))
        .collect();
    write(&world, &head(&world), &steps);
    let view = succeed(&world, &[]);
    for (id, first, second) in [("left2", 1, 3), ("right2", 2, 4)] {
        assert_eq!(step(&view, id)["verdict"], "resumed", "{view:#}");
        let shown: Vec<Vec<String>> = (world.model.requests().iter())
            .map(|request| words_in(&request.history().to_string()))
            .filter(|words| words.contains(&user(second)))
            .collect();
        let expected = vec![user(first), answer(first), user(second)];
        assert!(
            !shown.is_empty() && shown.iter().all(|words| *words == expected),
            "{shown:?}"
        );
    }
}

mod parallel {
    use super::parallel_steps_never_mix;
    rejoin_testkit::on_every_quick_cli!(parallel_steps_never_mix);
}

/// Two steps that continue one step: the first keeps the session, the other a copy of it.
#[test]
fn the_second_successor_forks() {
    let mut world = World::of(REJOIN, &CLAUDE_325).unwrap();
    world.set("REJOIN_SNAPSHOTS_ENABLED", "false");
    let steps = [
        ("one", prompt(1)),
        ("two", format!("continue_from: one\n{}", prompt(2))),
        (
            "three",
            format!("continue_from: one\nneeds: [two]\n{}", prompt(3)),
        ),
    ];
    let steps: Vec<(&str, &str)> = steps
        .iter()
        .map(|(id, text)| (*id, text.as_str()))
        .collect();
    write(&world, &head(&world), &steps);
    let plan = world
        .run(&["workflow", "plan", "t.yaml", "--json"])
        .ok()
        .json();
    assert_eq!(plan["steps"][1]["continues"], "one");
    assert_eq!(plan["steps"][2]["forks"], "one");
    let view = succeed(&world, &[]);
    let mut words = said(1..2);
    words.push(user(3));
    assert_shown(&world.model.last(), &words);
    let id = |name| &step(&view, name)["conversation_id"];
    assert_eq!(id("one"), id("two"));
    assert_ne!(id("one"), id("three"));
    assert_eq!(step(&view, "three")["verdict"], "resumed", "{view:#}");
    // Without a session to copy, a copy fails too.
    let gone = format!(
        "needs: [three]\nrun: [\"rm\", \"-rf\", \"{}\"]\n",
        world.home().join(".claude/projects").display()
    );
    let four = format!("fork_from: one\nneeds: [gone]\n{}", prompt(4));
    write(
        &world,
        &head(&world),
        &[
            ("one", &prompt(1)),
            ("three", &format!("continue_from: one\n{}", prompt(3))),
            ("gone", &gone),
            ("four", &four),
        ],
    );
    let lost = world
        .run(&["workflow", "run", "t.yaml", "-k", "lost", "--json"])
        .json();
    assert_eq!(
        step(&lost, "four")["error"]["class"],
        "would_reseed",
        "{lost:#}"
    );
}

/// US3: a chain of twelve steps.
#[test]
fn a_chain_of_twelve() {
    let world = World::of(REJOIN, &CLAUDE_325).unwrap();
    let texts: Vec<(String, String)> = (1..=12)
        .map(|n| match n {
            1 => (format!("s{n}"), prompt(n)),
            n => (
                format!("s{n}"),
                format!("continue_from: s{}\n{}", n - 1, prompt(n)),
            ),
        })
        .collect();
    let steps: Vec<(&str, &str)> = texts
        .iter()
        .map(|(a, b)| (a.as_str(), b.as_str()))
        .collect();
    write(&world, &head(&world), &steps);
    let view = succeed(&world, &[]);
    let mut words = said(1..12);
    words.push(user(12));
    assert_shown(&world.model.last(), &words);
    let resumed = view["steps"].as_array().unwrap().iter().skip(1);
    assert!(
        resumed.clone().all(|step| step["verdict"] == "resumed"),
        "{view:#}"
    );
}

/// US4: a step of another agent is told what the conversation holds, and the first agent hears of its
/// answer.
#[test]
fn another_agent_is_caught_up() {
    let world = World::of_all(REJOIN, &[&CLAUDE_325, &CODEX_166], Model::start()).unwrap();
    let codex = format!(
        "continue_from: one\nagent: codex\nmodel: {}\n{}",
        rejoin_testkit::CODEX_TOOLS,
        prompt(2)
    );
    let back = format!("continue_from: two\nagent: claude\n{}", prompt(3));
    let first = format!("agent: claude\n{}", prompt(1));
    write(
        &world,
        "",
        &[("one", &first), ("two", &codex), ("three", &back)],
    );
    let view = succeed(&world, &[]);
    let requests = world.model.requests();
    let of_two = |request: &&rejoin_model::Request| {
        words_in(&request.history().to_string()).last() == Some(&user(2))
    };
    let mut words = said(1..2);
    words.push(user(2));
    assert_shown(requests.iter().find(of_two).unwrap(), &words);
    let mut words = said(1..3);
    words.push(user(3));
    assert_shown(&world.model.last(), &words);
    assert_eq!(step(&view, "three")["verdict"], "resumed", "{view:#}");
}

/// Without session and snapshot a step fails with the reason, unless it accepts less.
#[test]
fn a_lost_session_is_never_replaced_silently() {
    for (continuity, status) in [("", "failed"), ("continuity: best\n", "succeeded")] {
        let mut world = World::of(REJOIN, &CLAUDE_325).unwrap();
        world.set("REJOIN_SNAPSHOTS_ENABLED", "false");
        let gone = format!(
            "needs: [one]\nrun: [\"rm\", \"-rf\", \"{}\"]\n",
            world.home().join(".claude/projects").display()
        );
        let two = format!(
            "continue_from: one\nneeds: [gone]\n{continuity}{}",
            prompt(2)
        );
        write(
            &world,
            &head(&world),
            &[("one", &prompt(1)), ("gone", &gone), ("two", &two)],
        );
        let (view, code) = super::run(&world, &[]);
        let two = step(&view, "two");
        assert_eq!(two["status"], status, "{view:#}");
        if status == "failed" {
            assert_eq!(code, 1);
            assert_eq!(two["error"]["class"], "would_reseed", "{two:#}");
            let message = two["error"]["message"].as_str().unwrap();
            assert!(message.contains("cannot be resumed"), "{message}");
            assert_eq!(step(&view, "one")["status"], "succeeded");
        } else {
            assert_eq!(two["verdict"], "reseeded", "{two:#}");
            let mut words = said(1..2);
            words.push(user(2));
            assert_shown(&world.model.last(), &words);
        }
    }
}
