//! Command line of the CLI for one turn.

use rejoin_core::{PermissionMode, TurnPlan};

use super::{dialogue, escape, permission, repository};
use crate::environment::MARKER;
use crate::order::{CommandSpec, RunOrder};
use crate::repository::RepositoryConfig;
use crate::session::text_mark;

/// Limits connection retries. Otherwise the CLI retries a refused connection forever.
const ENDS: &str = "features.unbounded_connection_retries=false";

/// Builds the command. Flags of `exec` precede `resume`, which accepts few of them.
pub(super) fn command(order: &RunOrder<'_>) -> CommandSpec {
    if order.permissions.mode == PermissionMode::Ask {
        return dialogue::command(order);
    }
    let mut args = vec!["exec".to_owned()];
    let mut add = |flag: &str, value: &str| args.extend([flag.to_owned(), value.to_owned()]);
    add("-s", permission::sandbox(order.permissions.mode));
    add("-C", order.folder);
    args.extend(settings(order));
    if let Some(model) = order.model {
        args.extend(["-m".to_owned(), model.to_owned()]);
    }
    args.push("--skip-git-repo-check".into());
    args.extend(permission::flags(order.permissions, order.mcp_servers));
    args.extend(order.extra_args.iter().cloned());
    match order.plan {
        TurnPlan::Resume { session, .. } => {
            args.extend(["resume", "--json", session.id().as_str()].map(str::to_owned));
        }
        TurnPlan::Start { .. } | TurnPlan::Reseed { .. } => args.push("--json".into()),
    }
    args.push("-".into());
    let stdin = prompt(order);
    CommandSpec {
        args,
        prompt_mark: Some(text_mark(&stdin)),
        stdin,
        // If the vendor's servers are unreachable, the process runs for another 5 s.
        done_on: vec!["turn.completed".into(), "turn.failed".into()],
        ..CommandSpec::default()
    }
}

/// Returns the settings of every run, for any command of the CLI.
pub(super) fn settings(order: &RunOrder<'_>) -> Vec<String> {
    let marker = quoted(order.turn);
    let settings = [
        // Otherwise a writable sandbox records in the user's configuration that the folder is
        // trusted. The folders above are listed too: a repository that the user trusts would bring
        // its own servers along.
        projects(order.folder, order.repository),
        // A policy that hides variables from tools would lose the marker.
        format!("shell_environment_policy.set.{MARKER}={marker}"),
        ENDS.to_owned(),
    ];
    let flags = settings
        .into_iter()
        .chain(repository::instructions(order.memory))
        .chain(repository::without_skills(order.repository));
    flags.flat_map(|it| ["-c".to_owned(), it]).collect()
}

/// Formats the trust level of the folder and of all folders above it.
pub(super) fn projects(folder: &str, repository: RepositoryConfig) -> String {
    let level = repository::level(repository);
    let above = std::path::Path::new(folder).ancestors();
    let folders = above.filter_map(|f| f.to_str()).filter(|f| *f != "/");
    let entries: Vec<String> = folders
        .map(|folder| format!("{}={{trust_level=\"{level}\"}}", quoted(folder)))
        .collect();
    format!("projects={{{}}}", entries.join(","))
}

pub(super) fn prompt(order: &RunOrder<'_>) -> String {
    let message = if order.raw {
        order.composed.message.clone()
    } else {
        escape::data(&order.composed.message)
    };
    match &order.composed.context {
        Some(context) => format!("{}\n{message}", escape::data(context)),
        // The CLI would remove a leading byte order mark.
        None if message.starts_with('\u{feff}') => format!("\n{message}"),
        None => message,
    }
}

/// Quotes a string in a form that is valid in both TOML and JSON.
pub(super) fn quoted(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted.replace('\u{7f}', "\\u007f")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_path_is_one_key() {
        for path in ["/w", "/a \"b\"\\c", "/é日\u{7f}\t\u{1}", "/a=b]c.d"] {
            let text = projects(path, RepositoryConfig::Ignored);
            let table: toml::Table = text.parse().unwrap();
            assert!(table["projects"].get(path).is_some(), "{text}");
        }
    }
}
