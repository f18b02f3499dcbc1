//! What a turn keeps of its decision and its command, for whoever asks later.

use rejoin_agents::CommandSpec;
use rejoin_core::{Composed, Decision, Reason, TurnPlan};
use rejoin_hub::Claimed;
use rejoin_store::TurnRecord;
use serde_json::json;

use crate::look::Looked;

/// Every check with its evidence, the effective settings, the command without secrets.
pub(crate) fn record(
    claimed: &Claimed,
    looked: &Looked,
    plan: &TurnPlan,
    decision: &Decision<'_>,
    composed: &Composed,
    command: &CommandSpec,
) -> TurnRecord {
    let request = &claimed.request;
    let mut checks: Vec<_> = decision
        .checks
        .iter()
        .map(|c| json!({"check": c.check.to_string(), "ok": c.ok, "evidence": c.evidence.to_string()}))
        .collect();
    checks.push(looked.wall.check());
    let failed = decision.checks.iter().find(|c| c.ok == Some(false));
    let because = match plan.reason() {
        Some(Reason::Rejected) => Some(format!(
            "{} does not know its session any more",
            claimed.turn.agent
        )),
        Some(Reason::FirstTurn) | None => None,
        Some(_) => failed.map(|c| c.evidence.to_string()),
    };
    let mut argv = vec![looked.binary.path.display().to_string()];
    argv.extend(looked.adapter.prelude().iter().map(ToString::to_string));
    argv.extend(command.args.iter().cloned());
    TurnRecord {
        checks: checks.into(),
        sent: composed.sent,
        policy: json!({
            "context_threshold": request.context_threshold, "breaker": request.breaker,
            "model_change": request.model_change, "after_compaction": request.after_compaction,
            "scope": claimed.conversation.scope, "permission": request.envelope.mode,
        }),
        command: without_secrets(argv),
        runtime: Some(looked.binary.facts.runtime.to_string()),
        folder: Some(looked.folder.path.clone()),
        because,
        ..TurnRecord::default()
    }
}

/// Arguments are not the place for secrets, but people put them there.
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
