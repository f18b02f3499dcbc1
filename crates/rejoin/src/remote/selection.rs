//! Which hub a command is for: `--hub`, `REJOIN_HUB`, or the daemon on this data folder.

use super::{Logins, Remote};
use crate::output::Output;
use rejoin_errors::{CommandError, Result};

/// The hub that the user selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HubSelection {
    /// Nothing: a daemon on this data folder, if there is one.
    Any,
    /// No daemon: this process, on the store itself.
    Nobody,
    Named {
        name: String,
        by: SelectedBy,
    },
}

/// Source of the selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SelectedBy {
    /// In this very command.
    Flag,
    Environment,
}

impl HubSelection {
    pub(crate) fn of(flag: Option<&str>) -> Self {
        let variable = std::env::var("REJOIN_HUB");
        let variable = variable.ok().filter(|name| !name.is_empty());
        let (name, by) = match (flag, variable) {
            (Some(flag), _) => (flag.to_owned(), SelectedBy::Flag),
            (None, Some(name)) => (name, SelectedBy::Environment),
            (None, None) => return Self::Any,
        };
        match name.as_str() {
            "none" => Self::Nobody,
            _ => Self::Named { name, by },
        }
    }
}

/// The daemon of that name, or at that address. `REJOIN_TOKEN` counts more than what was kept.
pub(super) fn named(out: Output, name: &str) -> Result<Remote> {
    let token = super::logins::token_variable();
    let logins = Logins::load()?;
    if name.contains("://") {
        let kept = || logins.at(name).map(|login| login.token.clone());
        return Remote::at(out, name, name, token.or_else(kept));
    }
    let Some(login) = logins.hubs.get(name) else {
        let text = format!("there is no hub called `{name}`");
        return Err(CommandError::usage(text).try_this(format!("rejoin login URL --name {name}")));
    };
    let token = token.unwrap_or_else(|| login.token.clone());
    Remote::at(out, name, &login.url, Some(token))
}
