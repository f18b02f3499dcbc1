//! The proven capabilities of a binary, row by row.

use rejoin_agents::{Facts, ProofState};
use rejoin_hub::rfc3339;
use rejoin_runner::{ROWS, Weight};
use serde_json::{Value, json};

use super::report::Report;

pub(super) fn word(state: ProofState) -> &'static str {
    match state {
        ProofState::Proven => "proven",
        ProofState::Broken => "BROKEN",
        ProofState::NotTried => "not tried",
    }
}

/// Nothing, if nobody has asked for a proof yet.
pub(super) fn rows(report: &mut Report, facts: &Facts) -> Value {
    let Some(at) = facts.proven_at else {
        return Value::Null;
    };
    for row in &facts.rows {
        let text = format!("{}: {}", row.what, row.evidence);
        match row.state {
            ProofState::Proven => report.good("", &text),
            ProofState::NotTried => report.note("", &text),
            ProofState::Broken => {
                let weighs = ROWS.contains(&(row.what.as_str(), Weight::Resume));
                let next = if weighs {
                    "another version; until then every turn is told what was said"
                } else {
                    "another version"
                };
                report.bad("", &text, next);
            }
        }
    }
    let rows: Vec<Value> = facts
        .rows
        .iter()
        .map(|row| json!({"what": row.what, "state": row.state, "evidence": row.evidence}))
        .collect();
    json!({"at": rfc3339(at), "rows": rows})
}
