//! Checks of single values of a request, the same for commands and HTTP.

use rejoin_core::{AgentName, Micros, PermissionMode, Scope};

use crate::error::{Error, Result};

/// Longest key, in bytes.
const KEY: usize = 200;
/// Longest title, in bytes.
const TITLE: usize = 1000;

fn usage(text: &str) -> Error {
    Error::Usage(text.to_owned())
}

/// Returns true if the text has a control character.
pub(crate) fn has_control(text: &str) -> bool {
    text.chars().any(char::is_control)
}

/// Checks a caller's own name of a conversation, or an idempotency key.
pub fn key(text: &str) -> Result<String> {
    if text.is_empty() || text.len() > KEY || has_control(text) {
        return Err(usage(
            "a key has 1 to 200 characters and no control characters",
        ));
    }
    Ok(text.to_owned())
}

/// Checks a title and removes the space around it.
pub fn title(text: &str) -> Result<String> {
    let line = text.trim();
    if line.is_empty() || line.len() > TITLE || has_control(line) {
        return Err(usage("a title is one line of 1 to 1000 characters"));
    }
    Ok(line.to_owned())
}

/// Parses the name of an agent.
pub fn agent(name: &str) -> Result<AgentName> {
    AgentName::new(name).map_err(|error| Error::Usage(error.to_string()))
}

/// Checks the name of a model.
pub fn model(name: &str) -> Result<String> {
    if name.trim().is_empty() || name.len() > KEY || has_control(name) {
        return Err(usage(
            "a model has a name of 1 to 200 characters and no control characters",
        ));
    }
    Ok(name.to_owned())
}

/// Parses a permission mode.
pub fn permission(text: &str) -> Result<PermissionMode> {
    text.parse()
        .map_err(|_| usage("permission is one of read-only, edit, full, ask"))
}

/// Parses a scope.
pub fn scope(text: &str) -> Result<Scope> {
    match text {
        "full" => Ok(Scope::Full),
        "agent" => Ok(Scope::Agent),
        _ => Err(usage("scope is one of full, agent")),
    }
}

/// Converts a cost limit in dollars.
pub fn max_cost(dollars: f64) -> Result<Micros> {
    let cost = Micros::from_dollars(dollars).filter(|cost| cost.0 > 0);
    cost.ok_or_else(|| usage("max_cost_usd is an amount in dollars above 0"))
}
