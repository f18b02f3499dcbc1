//! Command line of the CLI for one turn.

use rejoin_core::{SessionId, TurnPlan};
use serde_json::json;

use super::{environment, escape, permission, repository};
use crate::order::{CommandSpec, GoOnOrder, RunOrder};

/// Flags of every run. `stream-json` needs `--verbose`. Partial messages do not change the request
/// body (equal bytes on 2.1.197 and 2.1.325). The prompt tool makes the CLI ask instead of denying.
/// It must be present in all runs or in none, because it adds tools to the request.
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
        permissions: order.permissions,
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

/// Builds a command without a prompt: the CLI first repeats the deferred call, and asks about it
/// again.
pub(super) fn go_on(order: &GoOnOrder<'_>) -> CommandSpec {
    on("--resume", order.session, order)
}

/// Builds the command line. A session remembers only its model, so every run passes everything
/// again.
fn on(flag: &str, session: &SessionId, order: &GoOnOrder<'_>) -> CommandSpec {
    let mut args: Vec<String> = FLAGS.iter().map(|&flag| flag.to_owned()).collect();
    let mut add = |flag: &str, value: &str| args.extend([flag.to_owned(), value.to_owned()]);
    add(flag, session.as_str());
    if let Some(model) = order.model {
        add("--model", model);
    }
    // The limit counts this process alone, on 2.1.197 and 2.1.325, also on a resumed session.
    if let Some(most) = order.max_cost {
        add("--max-budget-usd", &most.dollars().to_string());
    }
    args.extend(permission::flags(order.permissions));
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

/// Formats the prompt as a `user` line. Its `uuid` becomes the id of the line in the session. The
/// CLI drops a line whose `uuid` it received before.
fn user_line(order: &RunOrder<'_>) -> String {
    let (context, message) = (
        order.composed.context.as_deref(),
        order.composed.message.as_str(),
    );
    let blocks = if order.raw {
        escape::raw_blocks(context, message, order.outside)
    } else {
        escape::blocks(context, message, order.neutral)
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
