//! Whoever made an archive does not say what may be done here: what would let an agent do more, now or
//! when a turn is run again or a change taken back, is left behind.

use std::collections::BTreeMap;

use rejoin_core::{Envelope, PermissionMode};
use serde_json::{Value, json};

use super::super::rows::ChangeRow;
use crate::conversations::AgentSettings;

/// A list of tools permits what it names; one of denied tools only takes away, and stays. Says how many
/// lists there were.
pub(super) fn settings(of: &mut BTreeMap<String, AgentSettings>) -> u64 {
    let dropped = of.values_mut().filter_map(|own| own.tools.take());
    dropped.count() as u64
}

/// What a turn asked for is what it asks for when it is run again.
pub(super) fn request(mut request: Value, most: PermissionMode, workdir: &str) -> Value {
    let asked: Option<Envelope> = serde_json::from_value(request["envelope"].take()).ok();
    let asked = asked.unwrap_or_default();
    let mode = asked.mode.at_most(most);
    request["envelope"] = json!({"mode": mode, "tools": null, "deny_tools": asked.deny_tools});
    request["workdir"] = workdir.into();
    request
}

/// None: taking it back would change what may be done, or more than this conversation. Of a new name the
/// old one is kept, and nothing else that its row may say.
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
