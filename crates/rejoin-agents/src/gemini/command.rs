//! Command line of the CLI for one turn.

use rejoin_core::{PermissionMode, TurnPlan};

use super::acp::Opening;
use super::{environment, escape, home, permission};
use crate::order::{CommandSpec, RunOrder};
use crate::session::ChosenBy;

/// Flags of every run in which the CLI does not ask.
pub(super) const FLAGS: &[&str] = &["--output-format", "stream-json"];

/// Builds the command. A session remembers nothing, so every run passes everything again. The
/// prompt is passed on stdin, which must be closed before the CLI begins.
pub(super) fn command(order: &RunOrder<'_>) -> CommandSpec {
    if order.permissions.mode == PermissionMode::Ask {
        return dialogue(order);
    }
    let (args, files) = arguments(order, FLAGS);
    let prompt = escape::prompt(order);
    CommandSpec {
        args,
        prompt_mark: Some(escape::mark(&prompt.text)),
        stdin: prompt.text,
        files: [files, prompt.files, vec![home::owner_mark(order.folder)]].concat(),
        ..common(order)
    }
}

/// Builds the command of a run that asks. It too receives the session as an argument. For an
/// unknown session the CLI then reports that first. And the empty file that it leaves (which is not
/// the file of a session begun over the protocol) has a known name.
fn dialogue(order: &RunOrder<'_>) -> CommandSpec {
    let (args, files) = arguments(order, &["--acp"]);
    let session = match order.plan {
        TurnPlan::Resume { session, .. } => Some(session.id().to_string()),
        TurnPlan::Start { .. } | TurnPlan::Reseed { .. } => None,
    };
    let chosen_by = session.is_none().then_some(ChosenBy::TheCli);
    let opening = Opening {
        folder: order.folder.to_owned(),
        session,
        prompt: escape::plain(order),
        raw: order.raw,
        live: order.is_live(),
    };
    CommandSpec {
        args,
        prompt_mark: Some(escape::mark(&opening.prompt)),
        stdin: opening.first(),
        hold_stdin: true,
        close_stdin_on: Opening::last_words(),
        dialogue: serde_json::to_string(&opening).ok(),
        chosen_by,
        files: [files, vec![home::owner_mark(order.folder)]].concat(),
        ..common(order)
    }
}

/// Returns the arguments, and the files that they refer to.
fn arguments(order: &RunOrder<'_>, first: &[&str]) -> (Vec<String>, Vec<(String, String)>) {
    let mut args: Vec<String> = first.iter().map(|&flag| flag.to_owned()).collect();
    let mut add = |flag: &str, value: &str| args.extend([flag.to_owned(), value.to_owned()]);
    match order.plan {
        TurnPlan::Resume { session, .. } => add("--resume", session.id().as_str()),
        TurnPlan::Start { .. } | TurnPlan::Reseed { .. } => {
            add("--session-id", order.new_session.as_str());
        }
    }
    if let Some(model) = order.model {
        add("--model", model);
    }
    let permission::Rules { flags, files } = permission::rules(order.permissions, order.home);
    args.extend(flags);
    args.extend(order.extra_args.iter().cloned());
    (args, files)
}

fn common(order: &RunOrder<'_>) -> CommandSpec {
    let mut env = environment::always(order.home);
    env.push(environment::marker(order.turn));
    CommandSpec {
        env,
        ..CommandSpec::default()
    }
}
