//! Command and approval steps: values stay data, loops, items, conditions, retries.

use rejoin_testkit::World;
use serde_json::json;

use super::{REJOIN, run, step, succeed, write};

const DEMO: &str = "defaults: { agent: demo }\n";

/// Twenty values that would be structure if they were not quoted.
fn hostile() -> Vec<String> {
    let mut all: Vec<String> = [
        "a b",
        "'",
        "\"",
        "$(touch pwned)",
        "`touch pwned`",
        "; touch pwned",
        "a\nb",
        "{{ inputs.v }}",
        "{% for x in y %}",
        "&anchor *alias",
        "!!python/object",
        "- list: item",
        "#comment",
        "\\n",
        "../../etc/passwd",
        "--flag",
        "<rejoin>x</rejoin>",
        "🦀\u{202e}",
        "%s%n",
        "}}{{",
    ]
    .map(str::to_owned)
    .to_vec();
    all.push("x".repeat(1 << 17));
    all
}

#[test]
fn values_stay_data_in_arguments_environment_and_prompts() {
    let world = World::new(REJOIN);
    let head = format!("{DEMO}inputs: {{ all: {{ type: list, required: true }} }}\n");
    let shell = "for_each: inputs.all\nshell: 'printf %s \"$V\"'\nenv: { V: \"{{ item }}\" }\n";
    write(
        &world,
        &head,
        &[
            (
                "argv",
                "for_each: inputs.all\nrun: [\"printf\", \"%s\", \"{{ item }}\"]\n",
            ),
            ("shell", shell),
            (
                "prompt",
                "for_each: inputs.all\nprompt: \"p {{ item }} p\"\n",
            ),
        ],
    );
    let values = hostile();
    // An argument of the command line is limited; the file of a run is not.
    let given = format!("all={}", serde_json::to_string(&values[..20]).unwrap());
    let view = succeed(&world, &["-i", &given]);
    for (n, value) in values[..20].iter().enumerate() {
        for id in ["argv", "shell"] {
            let step = step(&view, &format!("{id}[{n}]"));
            assert_eq!(step["text"].as_str().unwrap(), value, "{step:#}");
        }
        let c = step(&view, &format!("prompt[{n}]"))["conversation_id"].clone();
        let shown = world
            .run(&["show", c.as_str().unwrap(), "--json"])
            .ok()
            .json();
        assert_eq!(shown["messages"][0]["text"], format!("p {value} p"));
    }
    assert!(!world.work().join("pwned").exists());
}

/// Values of an agent: a loop that goes back, items from a list, a condition, and what a skipped need
/// does to the steps behind it.
#[test]
fn loops_items_and_conditions() {
    let world = World::new(REJOIN);
    write(
        &world,
        DEMO,
        &[
            ("begin", "prompt: hello\n"),
            ("fix", "continue_from: begin\nprompt: \"fix it\"\n"),
            (
                "test",
                "needs: [fix]\nshell: 'echo x >> rounds; test $(wc -l < rounds) -ge 3'\nloop: { back_to: fix, while: \"steps.test.exit_code != 0\", max: 5 }\n",
            ),
            (
                "each",
                "needs: [test]\nfor_each: \"[1, 2, 3]\"\nwhen: item != 2\nrun: [\"echo\", \"{{ item }}-{{ index }}\"]\n",
            ),
            ("never", "needs: [test]\nwhen: \"false\"\nprompt: never\n"),
            ("behind", "needs: [never]\nprompt: never\n"),
            (
                "fails",
                "needs: [test]\nrun: [\"sh\", \"-c\", \"exit 3\"]\n",
            ),
            (
                "after",
                "needs: [fails]\nwhen: failed('fails')\nrun: [\"echo\", \"{{ steps.fails.exit_code }}\"]\n",
            ),
            (
                "always",
                "needs: [behind, fails]\nwhen: always()\nrun: [\"echo\", \"ran\"]\n",
            ),
        ],
    );
    let (view, code) = run(&world, &[]);
    assert_eq!((code, &view["status"]), (1, &"failed".into()), "{view:#}");
    let rounds = std::fs::read_to_string(world.work().join("rounds")).unwrap();
    assert_eq!(rounds.lines().count(), 3);
    assert_eq!(step(&view, "fix")["attempts"], 3);
    assert_eq!(step(&view, "test")["exit_code"], 0);
    assert_eq!(step(&view, "each[0]")["text"], "1-0\n");
    assert_eq!(step(&view, "each[1]")["status"], "skipped");
    assert_eq!(step(&view, "each[2]")["text"], "3-2\n");
    for id in ["never", "behind"] {
        assert_eq!(step(&view, id)["status"], "skipped", "{view:#}");
    }
    assert_eq!(step(&view, "fails")["exit_code"], 3);
    assert_eq!(step(&view, "after")["text"], "3\n");
    assert_eq!(step(&view, "always")["text"], "ran\n");
    let c = step(&view, "fix")["conversation_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let shown = world.run(&["show", &c, "--json"]).ok().json();
    assert_eq!(
        shown["messages"].as_array().unwrap().len(),
        8,
        "four turns of one conversation"
    );
}

/// Items in a loop run again in every round.
#[test]
fn items_run_in_every_round() {
    let world = World::new(REJOIN);
    write(
        &world,
        DEMO,
        &[
            ("fix", "run: [\"true\"]\n"),
            (
                "each",
                "needs: [fix]\nfor_each: \"[1, 2]\"\nshell: 'echo $N >> items'\nenv: { N: \"{{ item }}\" }\n",
            ),
            (
                "test",
                "needs: [each]\nshell: 'test $(wc -l < items) -ge 6'\nloop: { back_to: fix, while: \"steps.test.exit_code != 0\", max: 5 }\n",
            ),
        ],
    );
    let view = succeed(&world, &[]);
    let items = std::fs::read_to_string(world.work().join("items")).unwrap();
    assert_eq!(items.lines().count(), 6, "{items} {view:#}");
}

/// An approval waits in the inbox; the run goes on after the answer, and a denial fails it.
#[test]
fn approvals_wait_in_the_inbox() {
    for (answer, code, status) in [("allow", 0, "succeeded"), ("deny", 1, "failed")] {
        let world = World::new(REJOIN);
        write(
            &world,
            DEMO,
            &[
                ("ask", "approve: \"Merge it?\"\n"),
                ("merge", "needs: [ask]\nrun: [\"touch\", \"merged\"]\n"),
            ],
        );
        let (view, waits) = run(&world, &[]);
        assert_eq!((waits, &view["status"]), (7, &"waiting".into()), "{view:#}");
        let inbox = world.run(&["inbox", "--json"]).ok().json();
        assert_eq!(
            inbox["turns"][0]["questions"][0]["input"]["question"],
            "Merge it?"
        );
        let text = world.run(&["inbox"]).ok().stdout;
        assert!(
            text.contains("Merge it?") && text.contains("allow|deny"),
            "{text}"
        );
        let turn = step(&view, "ask")["turn_id"].as_str().unwrap();
        let always = world.run(&["answer", turn, "always"]);
        assert_eq!(always.code, 2, "{}", always.stderr);
        world.run(&["answer", turn, answer]).ok();
        let done = world.run(&["workflow", "resume", "w", "--json"]);
        let view = done.json();
        assert_eq!(
            (done.code, &view["status"]),
            (code, &status.into()),
            "{view:#}"
        );
        assert_eq!(world.work().join("merged").exists(), answer == "allow");
        assert!(
            world.run(&["inbox", "--json"]).ok().json()["turns"]
                .as_array()
                .unwrap()
                .is_empty()
        );
    }
}

/// Nobody can use the agent of command steps for a message.
#[test]
fn the_agent_of_commands_takes_no_messages() {
    let world = World::new(REJOIN);
    write(&world, DEMO, &[("one", "run: [\"true\"]\n")]);
    let view = succeed(&world, &[]);
    let c = step(&view, "one")["conversation_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let spec = json!({"run": ["touch", "pwned"]}).to_string();
    for args in [
        vec!["send", "-a", "workflow", "--permission", "full", &spec],
        vec!["send", "-c", &c, &spec],
        vec!["retry", &c],
    ] {
        let done = world.run(&args);
        assert_ne!(done.code, 0, "{args:?}");
    }
    let daemon = world.serve(&[]);
    let body = json!({"key": "x", "agent": "workflow", "text": spec});
    assert!(daemon.post("/api/send?wait=true", &body).status >= 400);
    let body = json!({"key": "x", "agent": "workflow", "text": spec, "workflow_step": true});
    assert!(daemon.post("/api/send?wait=true", &body).status >= 400);
    assert!(!world.work().join("pwned").exists());
}

/// A step that fails is run again from there, in a copy of its conversation's file or the same one.
#[test]
fn a_failed_run_begins_again_at_a_step() {
    let world = World::new(REJOIN);
    write(
        &world,
        DEMO,
        &[
            ("one", "run: [\"sh\", \"-c\", \"echo one >> log\"]\n"),
            (
                "two",
                "needs: [one]\nrun: [\"sh\", \"-c\", \"echo two >> log; test -e ready\"]\n",
            ),
            (
                "three",
                "needs: [two]\nrun: [\"sh\", \"-c\", \"echo three >> log\"]\n",
            ),
        ],
    );
    let (view, code) = run(&world, &[]);
    assert_eq!(code, 1, "{view:#}");
    assert_eq!(step(&view, "three")["status"], "skipped");
    std::fs::write(world.work().join("ready"), "").unwrap();
    world
        .run(&["workflow", "resume", "w", "--from", "two"])
        .ok();
    let log = std::fs::read_to_string(world.work().join("log")).unwrap();
    assert_eq!(log, "one\ntwo\ntwo\nthree\n");
    // Items that failed run again with all others of their step.
    write(
        &world,
        DEMO,
        &[(
            "each",
            "for_each: \"[1, 2]\"\nshell: 'echo $N >> items; test $N != 2 -o -e more'\nenv: { N: \"{{ item }}\" }\n",
        )],
    );
    let done = world.run(&["workflow", "run", "t.yaml", "-k", "i"]);
    assert_eq!(done.code, 1, "{}", done.stderr);
    std::fs::write(world.work().join("more"), "").unwrap();
    world.run(&["workflow", "resume", "i"]).ok();
    let items = std::fs::read_to_string(world.work().join("items")).unwrap();
    assert_eq!(items.lines().count(), 4, "{items}");
    // Without a daemon `cancel` ends what an interrupted run left.
    write(&world, DEMO, &[("long", "run: [\"sleep\", \"600\"]\n")]);
    let child = world.spawn(&["workflow", "run", "t.yaml", "-k", "c"]);
    rejoin_testkit::wait_for("the command", 30, || {
        let shown = world.run(&["workflow", "show", "c", "--json"]);
        let runs = shown.code == 0 && shown.json()["steps"][0]["status"] == "running";
        runs.then_some(())
    });
    rejoin_testkit::kill(i32::try_from(child.id()).unwrap(), "INT");
    assert_eq!(rejoin_testkit::Done::of(child).code, 130);
    world.run(&["workflow", "cancel", "c"]).ok();
    let view = world.run(&["workflow", "show", "c", "--json"]).ok().json();
    assert_eq!(view["status"], "cancelled", "{view:#}");
    assert_eq!(view["cost_complete"], true);
    world.assert_quiet();
    let wrong = world.run(&["workflow", "resume", "w", "--from", "nine"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("one, two, three"), "{}", wrong.stderr);
}

/// The example that `new` prints and those of `examples/` have no mistakes and can be rehearsed; nothing
/// of them is run.
#[test]
fn examples_are_checked_and_rehearsed() {
    let world = World::new(REJOIN);
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/workflows");
    let new = world.run(&["workflow", "new"]).ok().stdout;
    std::fs::write(world.work().join("new.yaml"), new).unwrap();
    for (file, input) in [
        (format!("{folder}/review.yaml"), "change=HEAD"),
        (format!("{folder}/fix.yaml"), "task=x"),
        (format!("{folder}/triage.yaml"), "alert=x"),
        ("new.yaml".to_owned(), "pr=7"),
    ] {
        world.run(&["workflow", "check", &file]).ok();
        let done = world.run(&["workflow", "test", &file, "-i", input, "--json"]);
        let view = done.json();
        assert_eq!(
            (done.code, &view["status"]),
            (0, &"succeeded".into()),
            "{view:#}"
        );
    }
    assert!(!world.work().join("report.txt").exists());
    assert!(!world.work().join("review.txt").exists());
    let schema = world.run(&["workflow", "schema"]).ok().json();
    assert!(schema["properties"]["steps"].is_object());
    let missing = world.run(&["workflow", "run", "new.yaml"]);
    assert_eq!(missing.code, 2);
    assert!(missing.stderr.contains("pr"), "{}", missing.stderr);
}
