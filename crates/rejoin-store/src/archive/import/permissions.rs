//! Restricts imported permissions: the author of an archive does not decide which permissions apply
//! here. Drops settings that would let an agent do more, now, on a retry, or after an undo.

use std::collections::BTreeMap;

use rejoin_core::{PermissionMode, Permissions};
use serde_json::{Value, json};

use super::super::rows::ChangeRow;
use crate::conversations::AgentSettings;

/// Drops the lists of allowed tools, which grant access. Lists of denied tools only take away, and
/// stay. Returns the number of dropped lists.
pub(super) fn settings(of: &mut BTreeMap<String, AgentSettings>) -> u64 {
    let dropped = of.values_mut().filter_map(|own| own.tools.take());
    dropped.count() as u64
}

/// Restricts the request of a turn, which a retry would use again.
pub(super) fn request(mut request: Value, most: PermissionMode, workdir: &str) -> Value {
    let asked: Option<Permissions> = serde_json::from_value(request["envelope"].take()).ok();
    let asked = asked.unwrap_or_default();
    let mode = asked.mode.at_most(most);
    request["envelope"] = json!({"mode": mode, "tools": null, "deny_tools": asked.deny_tools});
    request["workdir"] = workdir.into();
    // A user's own message may be meant for the CLI; one from elsewhere is text.
    request["raw"] = false.into();
    if let Some(fields) = request.as_object_mut() {
        // The tier of a turn contains the permissions of every tier that its retry or climb may use. The address
        // for notifications is one that the other daemon allowed.
        for field in ["tier", "notify_url"] {
            fields.remove(field);
        }
    }
    request
}

/// Restricts a change. `None` if undoing it would alter permissions or another conversation. A
/// changed title keeps only the old title and no other field of its row.
pub(super) fn change(row: &ChangeRow) -> Option<Value> {
    match row.body["what"].as_str() {
        Some("edit" | "cut" | "reset") => Some(row.body.clone()),
        Some("settings") if row.kind != "set" => {
            let title = row.body["title"].as_str()?;
            Some(json!({"what": "settings", "title": title}))
        }
        Some(_) | None => None,
    }
}
