//! Builds the record of a turn's decision and command, for later inspection.

use rejoin_agents::CommandSpec;
use rejoin_core::{Composed, Reason, TurnPlan};
use rejoin_hub::Claimed;
use rejoin_store::TurnRecord;
use serde_json::json;

use crate::decision::Decided;
use crate::inspect::Inspection;

/// Builds the record: every check with its evidence, the effective settings, the command without
/// secrets.
pub(crate) fn record(
    claimed: &Claimed,
    inspection: &Inspection,
    plan: &TurnPlan,
    decided: &Decided,
    composed: &Composed,
    command: &CommandSpec,
    asks: bool,
) -> TurnRecord {
    let request = &claimed.request;
    let policy = &request.policy;
    let because = match plan.reason() {
        Some(Reason::Rejected) => Some(format!(
            "{} does not know its session any more",
            claimed.turn.agent
        )),
        Some(Reason::FirstTurn) | None => None,
        Some(_) => decided.failed.clone(),
    };
    let mut argv = vec![inspection.binary.path.display().to_string()];
    argv.extend(
        inspection
            .adapter
            .profile()
            .prelude
            .iter()
            .map(ToString::to_string),
    );
    argv.extend(command.args.iter().cloned());
    TurnRecord {
        checks: decided.checks.clone().into(),
        sent: composed.sent,
        policy: json!({
            "context_threshold": policy.context_threshold, "breaker": policy.breaker,
            "model_change": policy.model_change, "after_compaction": policy.after_compaction,
            "scope": claimed.conversation.scope, "permission": request.permissions.mode,
            "asks": asks,
        }),
        command: without_secrets(argv),
        runtime: Some(inspection.binary.facts.runtime.to_string()),
        folder: Some(inspection.folder.path.clone()),
        because,
        ..TurnRecord::default()
    }
}

/// Removes values of arguments that look like secrets. Arguments are not the place for them, but
/// users put them there.
fn without_secrets(argv: Vec<String>) -> Vec<String> {
    let secret = |name: &str| {
        let name = name.to_ascii_lowercase();
        ["key", "token", "secret", "password"]
            .iter()
            .any(|word| name.contains(word))
    };
    let mut hide_next = false;
    argv.into_iter()
        .map(|arg| {
            let hide = std::mem::replace(
                &mut hide_next,
                arg.starts_with("--") && !arg.contains('=') && secret(&arg),
            );
            match arg.split_once('=') {
                _ if hide => "[removed]".into(),
                Some((name, _)) if name.starts_with("--") && secret(name) => {
                    format!("{name}=[removed]")
                }
                _ => arg,
            }
        })
        .collect()
}
