use super::*;
use crate::{Continuity, EXAMPLE, Session, Work};

fn read(text: &str) -> Workflow {
    parse(text, &|file| Ok(format!("text of {file}"))).unwrap_or_else(|mistakes| {
        panic!(
            "{}",
            mistakes
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join("\n")
        )
    })
}

/// Returns a file with these steps.
fn steps(text: &str) -> Workflow {
    read(&format!("name: x\nsteps:\n{text}"))
}

const CONTRACT: &str = r#"# yaml-language-server: $schema=rejoin-workflow.schema.json     (printed by `rejoin workflow schema`)
name: review
inputs:
  pr: { type: string, required: true }
  depth: { type: integer, default: 2 }
defaults: { agent: claude, permission: read-only, timeout: 20m }
max_parallel: 4
steps:
  plan:
    agent: claude
    model: sonnet
    prompt: "Plan a review of {{ inputs.pr }}."
  security:
    agent: codex
    needs: [plan]
    prompt: "Look for security faults. The plan:\n{{ steps.plan.text }}"
  style:
    agent: gemini
    needs: [plan]
    prompt: "Look at style."
  judge:
    continue_from: plan            # same conversation and session; implies needs
    needs: [security, style]
    prompt: "Judge: {{ steps.security.text }} --- {{ steps.style.text }}"
    output:                        # JSON Schema of the answer
      type: object
      required: [verdict]
      properties: { verdict: { enum: [approve, change] } }
  fix:
    when: steps.judge.output.verdict == "change"
    fork_from: judge               # copy of the conversation; the parent stays unchanged
    agent: codex
    permission: edit
    prompt: "Fix what was found."
    retry: { max: 2, on: [transient, quota], wait: 30s }
  test:
    run: ["cargo", "test"]         # argv, no shell; `shell: "…"` receives values as environment variables only
    needs: [fix]
    loop: { back_to: fix, while: "steps.test.exit_code != 0", max: 3 }
  ask:
    approve: "Merge {{ inputs.pr }}?"     # waits in the inbox
    needs: [test]
"#;

#[test]
fn the_contract() {
    let flow = read(CONTRACT);
    let ids: Vec<&str> = flow.steps.iter().map(|step| step.id.as_str()).collect();
    assert_eq!(
        ids,
        ["plan", "security", "style", "judge", "fix", "test", "ask"]
    );
    assert_eq!((flow.name.as_str(), flow.max_parallel), ("review", 4));
    let needs: Vec<&[usize]> = flow
        .steps
        .iter()
        .map(|step| step.needs.as_slice())
        .collect();
    assert_eq!(needs, [&[][..], &[0], &[0], &[0, 1, 2], &[3], &[4], &[5]]);
    let agent = |at: usize| match &flow.steps[at].work {
        Work::Agent(work) => work.clone(),
        other @ (Work::Run(_) | Work::Shell(_) | Work::Approve(_)) => panic!("{other:?}"),
    };
    assert_eq!(agent(0).model.as_deref(), Some("sonnet"));
    assert_eq!(agent(2).agent.as_deref(), Some("gemini"));
    assert_eq!(agent(3).session, Session::Continue(0));
    assert_eq!(
        (agent(3).agent, agent(3).continuity),
        (None, Continuity::Required)
    );
    assert!(agent(3).output.is_some());
    assert_eq!(
        (flow.agent_of(3), flow.agent_of(4), flow.agent_of(5)),
        (Some("claude"), Some("codex"), None)
    );
    assert_eq!(
        agent(4).session,
        Session::Fork {
            of: 3,
            declared: true
        }
    );
    assert_eq!(agent(4).permission.as_deref(), Some("edit"));
    assert_eq!(agent(0).permission.as_deref(), Some("read-only"));
    let retry = &flow.steps[4].retry;
    assert_eq!((retry.max, retry.on.len(), retry.wait_ms), (2, 2, 30_000));
    let repeat = flow.steps[5].repeat.as_ref().unwrap();
    assert_eq!((repeat.back_to, repeat.max), (4, 3));
    assert_eq!(flow.steps[5].timeout_ms, Some(1_200_000));
    assert_eq!(flow.steps[6].timeout_ms, None, "a person has time");
    assert_eq!(flow.steps[4].line, 29);
    assert_eq!(flow.loop_body(5).into_iter().collect::<Vec<_>>(), [4, 5]);
    assert!(matches!(&flow.steps[5].work, Work::Run(command) if command.argv.len() == 2));
    assert!(matches!(&flow.steps[6].work, Work::Approve(_)));
}

#[test]
fn the_example() {
    let flow = read(EXAMPLE);
    assert!(matches!(&flow.steps[6].work, Work::Shell(shell) if shell.env.len() == 1));
    assert!(flow.steps[6].when.as_ref().unwrap().looks_at_failures());
}

#[test]
fn who_takes_the_session() {
    let flow = steps(concat!(
        "  a: { prompt: x }\n",
        "  each: { prompt: x, continue_from: a, for_each: '[1, 2]' }\n",
        "  b: { prompt: x, continue_from: a }\n",
        "  c: { prompt: x, continue_from: a }\n",
        "  d: { prompt: x, continue_from: b }\n",
        "  e: { prompt: x, fork_from: a }\n",
    ));
    let sessions: Vec<Session> = (flow.steps.iter())
        .map(|step| match &step.work {
            Work::Agent(work) => work.session,
            other @ (Work::Run(_) | Work::Shell(_) | Work::Approve(_)) => panic!("{other:?}"),
        })
        .collect();
    let fork = |of, declared| Session::Fork { of, declared };
    let expected = [
        Session::New,
        fork(0, false),
        Session::Continue(0),
        fork(0, false),
        Session::Continue(2),
        fork(0, true),
    ];
    assert_eq!(sessions, expected);
}

#[test]
fn a_default_model_is_of_the_default_agent() {
    let flow = read(concat!(
        "name: x\ndefaults: { agent: claude, model: sonnet, tools: [Read] }\nsteps:\n",
        "  a: { prompt: x }\n  b: { prompt: x, agent: codex }\n  c: { prompt: x, continue_from: b }\n",
        "  d: { prompt: x, agent: claude, tools: [] }\n",
    ));
    let found: Vec<_> = (flow.steps.iter())
        .map(|step| match &step.work {
            Work::Agent(work) => (
                work.agent.as_deref(),
                work.model.as_deref(),
                work.tools.as_ref().map(Vec::len),
            ),
            other @ (Work::Run(_) | Work::Shell(_) | Work::Approve(_)) => panic!("{other:?}"),
        })
        .collect();
    let expected = [
        (Some("claude"), Some("sonnet"), Some(1)),
        (Some("codex"), None, Some(1)),
        (None, None, Some(1)),
        (Some("claude"), Some("sonnet"), Some(0)),
    ];
    assert_eq!(found, expected);
}

#[test]
fn steps_of_a_loop_see_each_other() {
    steps(concat!(
        "  a: { run: [echo, '{{ steps.b.text | default(\"\") }}'] }\n",
        "  b: { run: [echo], needs: [a], loop: { back_to: a, while: steps.b.exit_code != 0, max: 9 } }\n",
        "  c: { run: [echo], when: failed(b) or failed(\"a\"), needs: [b] }\n",
    ));
}

#[test]
fn prompts_of_files_and_items() {
    let flow = steps(concat!(
        "  a: { prompt_file: p.md }\n",
        "  b: { for_each: '{{ [1, 2] }}', prompt: '{{ item }} {{ index }}' }\n",
        "  c: { run: [echo, '{{ steps.b.items[0].text }}'], needs: [b], env: { N: 5, T: true } }\n",
    ));
    assert!(
        matches!(&flow.steps[0].work, Work::Agent(work) if work.prompt.source() == "text of p.md")
    );
    assert!(flow.steps[1].for_each.is_some());
}

#[test]
fn many_steps_are_read_quickly() {
    let step = |at: usize| {
        let before = at - 1;
        format!(
            "  s{at}: {{ prompt: '{{{{ steps.s0.text }}}}', continue_from: s{before} }}
"
        )
    };
    let text = "  s0: { prompt: x }
"
    .to_owned()
        + &(1..1_000).map(step).collect::<Vec<_>>().concat();
    let started = std::time::Instant::now();
    let flow = steps(&text);
    assert_eq!(flow.order().len(), 1_000);
    assert!(started.elapsed().as_secs() < 10, "{:?}", started.elapsed());
}
