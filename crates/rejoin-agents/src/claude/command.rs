//! The call of the CLI for one turn.

use rejoin_core::{SessionId, TurnPlan};
use serde_json::json;

use super::{environment, neutral, permission, repository};
use crate::order::{CommandSpec, GoOnOrder, RunOrder};

/// Of every run. `stream-json` needs `--verbose`. Partial messages leave the request body as it is
/// (equal bytes on 2.1.197 and 2.1.325). The prompt tool makes the CLI ask instead of denying, and
/// its presence must not change from run to run: it adds tools to the request.
pub(super) const FLAGS: &[&str] = &[
    "-p",
    "--input-format",
    "stream-json",
    "--output-format",
    "stream-json",
    "--verbose",
    "--include-partial-messages",
    "--permission-prompt-tool",
    "stdio",
];

pub(super) fn command(order: &RunOrder<'_>) -> CommandSpec {
    let (flag, session) = match order.plan {
        TurnPlan::Resume { session, .. } => ("--resume", session.id()),
        TurnPlan::Start { .. } | TurnPlan::Reseed { .. } => ("--session-id", order.new_session),
    };
    let always = GoOnOrder {
        session,
        model: order.model,
        envelope: order.envelope,
        folder: order.folder,
        repository: order.repository,
        memory: order.memory,
        extra_args: order.extra_args,
        max_cost: order.max_cost,
    };
    CommandSpec {
        stdin: user_line(order),
        ..on(flag, session, &always)
    }
}

/// Without a prompt: the call that was put off comes first, and is asked about again.
pub(super) fn go_on(order: &GoOnOrder<'_>) -> CommandSpec {
    on("--resume", order.session, order)
}

/// Nothing is remembered by a session but its model, so everything is said again on every run.
fn on(flag: &str, session: &SessionId, order: &GoOnOrder<'_>) -> CommandSpec {
    let mut args: Vec<String> = FLAGS.iter().map(|&flag| flag.to_owned()).collect();
    let mut add = |flag: &str, value: &str| args.extend([flag.to_owned(), value.to_owned()]);
    add(flag, session.as_str());
    if let Some(model) = order.model {
        add("--model", model);
    }
    // Counts this process alone, on 2.1.197 and 2.1.325, also on a resumed session.
    if let Some(most) = order.max_cost {
        add("--max-budget-usd", &most.dollars().to_string());
    }
    args.extend(permission::flags(order.envelope));
    args.extend(repository::flags(
        order.repository,
        order.folder,
        order.memory,
    ));
    args.extend(order.extra_args.iter().cloned());
    CommandSpec {
        args,
        hold_stdin: true,
        close_stdin_on: vec!["result".into()],
        env: environment::always()
            .into_iter()
            .chain(repository::env(order.repository))
            .collect(),
        ..CommandSpec::default()
    }
}

/// The `uuid` becomes that of the line in the session; sent twice, the CLI drops the second.
fn user_line(order: &RunOrder<'_>) -> String {
    let (context, message) = (
        order.composed.context.as_deref(),
        order.composed.message.as_str(),
    );
    let blocks = if order.raw {
        neutral::raw_blocks(context, message, order.outside)
    } else {
        neutral::blocks(context, message, order.neutral)
    };
    let content: Vec<_> = blocks
        .into_iter()
        .map(|text| json!({"type": "text", "text": text}))
        .collect();
    let line = json!({
        "type": "user",
        "uuid": order.prompt_id,
        "message": {"role": "user", "content": content},
    });
    format!("{line}\n")
}
