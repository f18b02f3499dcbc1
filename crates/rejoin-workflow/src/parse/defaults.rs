//! `defaults` of a file.

use super::fields::{cost, find, mapping, rules, timeout, unknown_keys, word};
use super::session::{agent_name, permission};
use crate::keys;
use crate::mistake::Mistakes;
use crate::yaml::Entry;

/// Values for steps that do not set their own.
#[derive(Debug, Default)]
pub(super) struct Defaults<'n> {
    pub(super) agent: Option<String>,
    pub(super) model: Option<String>,
    pub(super) tier: Option<String>,
    pub(super) permission: Option<String>,
    pub(super) tools: Option<Vec<String>>,
    pub(super) deny_tools: Option<Vec<String>>,
    pub(super) max_cost_usd: Option<f64>,
    pub(super) timeout_ms: Option<u64>,
    pub(super) workdir: Option<&'n Entry>,
}

impl<'n> Defaults<'n> {
    pub(super) fn read(entry: &'n Entry, mistakes: &mut Mistakes) -> Self {
        let Some(entries) = mapping(entry, mistakes) else {
            return Self::default();
        };
        unknown_keys(entries, keys::DEFAULTS, "`defaults`", mistakes);
        let get = |key: &str| find(entries, key);
        Self {
            agent: get("agent").and_then(|entry| agent_name(entry, mistakes)),
            model: get("model").and_then(|entry| word(entry, mistakes)),
            tier: get("tier").and_then(|entry| word(entry, mistakes)),
            permission: get("permission").and_then(|entry| permission(entry, mistakes)),
            tools: get("tools").and_then(|entry| rules(entry, mistakes)),
            deny_tools: get("deny_tools").and_then(|entry| rules(entry, mistakes)),
            max_cost_usd: get("max_cost_usd").and_then(|entry| cost(entry, mistakes)),
            timeout_ms: get("timeout").and_then(|entry| timeout(entry, mistakes)),
            workdir: get("workdir"),
        }
    }
}
