//! Names of agents and permission modes, and sessions of steps that continue others.

use std::str::FromStr;

use rejoin_core::{AgentName, PermissionMode};

use super::fields::{choice, text};
use super::shown;
use super::step::Draft;
use crate::mistake::Mistakes;
use crate::workflow::{Session, Work};
use crate::yaml::Entry;

const PERMISSIONS: &[&str] = &["read-only", "edit", "full", "ask"];

/// Returns the name of an agent.
pub(super) fn agent_name(entry: &Entry, mistakes: &mut Mistakes) -> Option<String> {
    let name = text(entry, mistakes)?;
    match AgentName::new(&name) {
        Ok(_) => Some(name),
        Err(error) => {
            let text = format!("`{}` cannot be the name of an agent: {error}", shown(&name));
            mistakes.add(entry.value.place, text);
            None
        }
    }
}

/// Returns the name of a permission mode.
pub(super) fn permission(entry: &Entry, mistakes: &mut Mistakes) -> Option<String> {
    let known = choice(entry, PERMISSIONS, mistakes)?;
    PermissionMode::from_str(known)
        .ok()
        .map(|_| known.to_owned())
}

/// Returns the session of each step. The first step in file order that continues a step takes its
/// session; the others continue a copy, as does a step with `for_each`.
pub(super) fn sessions(
    drafts: &[Draft],
    origins: &[Option<usize>],
    mistakes: &mut Mistakes,
) -> Vec<Session> {
    let mut taken = vec![false; drafts.len()];
    drafts
        .iter()
        .zip(origins)
        .map(|(draft, of)| session(draft, *of, drafts, &mut taken, mistakes))
        .collect()
}

fn session(
    draft: &Draft,
    of: Option<usize>,
    drafts: &[Draft],
    taken: &mut [bool],
    mistakes: &mut Mistakes,
) -> Session {
    let (Some(origin), Some(of)) = (&draft.origin, of) else {
        return Session::New;
    };
    let Some(source) = drafts.get(of) else {
        return Session::New;
    };
    let key = if origin.fork {
        "fork_from"
    } else {
        "continue_from"
    };
    let id = &origin.id;
    if !matches!(source.step.work, Work::Agent(_)) && source.decided {
        let kind = source.step.work.kind();
        let text = format!("`{key}` needs an agent step; `{id}` is a step of kind `{kind}`");
        mistakes.suggest(origin.place, text, format!("use `needs: [{id}]`"));
    } else if source.step.for_each.is_some() {
        let text = format!("`{key}` cannot name `{id}`, which has one conversation for each item");
        mistakes.suggest(
            origin.place,
            text,
            format!("use `needs: [{id}]` and `steps.{id}.items`"),
        );
    }
    if origin.fork {
        return Session::Fork { of, declared: true };
    }
    let each = draft.step.for_each.is_some();
    match taken.get_mut(of) {
        Some(taken) if !*taken && !each => {
            *taken = true;
            Session::Continue(of)
        }
        _ => Session::Fork {
            of,
            declared: false,
        },
    }
}
