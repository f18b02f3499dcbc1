//! The call of the CLI for one turn.

use rejoin_core::TurnPlan;

use super::{environment, home, neutral, permission};
use crate::adapter::{CommandSpec, RunOrder};

/// Of every run.
pub(super) const FLAGS: &[&str] = &["--output-format", "stream-json"];

/// Nothing is remembered by a session, so everything is said again on every run. The prompt comes on
/// stdin, which must be closed before the CLI begins.
pub(super) fn command(order: &RunOrder<'_>) -> CommandSpec {
    let mut args: Vec<String> = FLAGS.iter().map(|&flag| flag.to_owned()).collect();
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
    let permission::Rules { flags, files } = permission::rules(order.envelope, order.home);
    args.extend(flags);
    args.extend(order.extra_args.iter().cloned());
    let prompt = neutral::prompt(order);
    let mut env = environment::always(order.home);
    env.push(environment::marker(order.turn));
    CommandSpec {
        args,
        prompt_mark: Some(neutral::mark(&prompt.text)),
        stdin: prompt.text,
        env,
        files: [files, prompt.files, vec![home::owner_mark(order.folder)]].concat(),
        ..CommandSpec::default()
    }
}
