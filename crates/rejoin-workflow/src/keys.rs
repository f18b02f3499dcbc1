//! Keys of the format, and the kinds of steps they belong to.

/// Causes that `retry.on` may name.
pub const RETRY_CAUSES: &[&str] = &[
    "transient",
    "quota",
    "lost",
    "auth",
    "overflow",
    "timeout",
    "invalid",
    "crash",
    "any",
];

/// Most steps in a file.
pub(crate) const MAX_STEPS: usize = 1_000;

/// Largest `max_parallel`.
pub(crate) const MAX_PARALLEL: u64 = 64;

/// Default of `max_parallel`.
pub(crate) const DEFAULT_PARALLEL: usize = 4;

/// Largest `retry.max` and `loop.max`.
pub(crate) const MAX_ROUNDS: u64 = 100;

/// Pattern of step ids and input names.
pub(crate) const ID: &str = "^[a-z][a-z0-9_-]*$";

/// Keys of the file.
pub(crate) const TOP: &[&str] = &[
    "name",
    "description",
    "inputs",
    "defaults",
    "max_parallel",
    "timeout",
    "max_cost_usd",
    "steps",
];

/// Keys of an input.
pub(crate) const INPUT: &[&str] = &["type", "required", "default", "description"];

/// Keys of `defaults`.
pub(crate) const DEFAULTS: &[&str] = &[
    "agent",
    "model",
    "permission",
    "timeout",
    "workdir",
    "tier",
    "tools",
    "deny_tools",
    "max_cost_usd",
];

/// Keys of `retry`.
pub(crate) const RETRY: &[&str] = &["max", "on", "wait"];

/// Keys of `loop`.
pub(crate) const LOOP: &[&str] = &["back_to", "while", "max"];

/// Kinds of steps that a key belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    All,
    Agent,
    /// `run` and `shell`
    Command,
    AgentOrCommand,
    Approve,
}

/// Keys of a step.
pub(crate) const STEP: &[(&str, Owner)] = &[
    ("agent", Owner::Agent),
    ("model", Owner::Agent),
    ("tier", Owner::Agent),
    ("prompt", Owner::Agent),
    ("prompt_file", Owner::Agent),
    ("continue_from", Owner::Agent),
    ("fork_from", Owner::Agent),
    ("needs", Owner::All),
    ("when", Owner::All),
    ("retry", Owner::AgentOrCommand),
    ("timeout", Owner::All),
    ("permission", Owner::Agent),
    ("tools", Owner::Agent),
    ("deny_tools", Owner::Agent),
    ("continuity", Owner::Agent),
    ("output", Owner::Agent),
    ("for_each", Owner::All),
    ("loop", Owner::All),
    ("run", Owner::Command),
    ("shell", Owner::Command),
    ("env", Owner::Command),
    ("approve", Owner::Approve),
    ("workdir", Owner::AgentOrCommand),
    ("max_cost_usd", Owner::Agent),
];

/// Keys that decide the kind of a step.
pub(crate) const DECIDING: &[&str] = &["prompt", "prompt_file", "run", "shell", "approve"];

/// Returns true for an id of a step or name of an input.
pub(crate) fn is_id(text: &str) -> bool {
    text.len() <= 64
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-')
}

/// Returns true for the name of an environment variable.
pub(crate) fn is_variable(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
