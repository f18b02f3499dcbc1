//! The demo agent asks for a higher tier: `climb: remediate the database is down`.

use serde_json::json;

/// Returns the block that ends the answer to such a message.
pub(super) fn request(message: &str) -> Option<String> {
    let words = message.trim_start().strip_prefix("climb:")?.trim();
    let (to, reason) = words.split_once(' ').unwrap_or((words, ""));
    let mut body = json!({"escalate": {"reason": reason.trim(), "services": []}});
    if !to.is_empty() {
        body["escalate"]["to"] = json!(to);
    }
    Some(format!("```rejoin\n{body}\n```"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_message_that_begins_so_asks() {
        let block = request("climb: fix the db is down").unwrap();
        let (asked, _) = rejoin_core::climb_request(&block).unwrap();
        assert_eq!(asked.to.as_deref(), Some("fix"));
        assert_eq!(asked.reason, "the db is down");
        let (next, _) = rejoin_core::climb_request(&request("climb:").unwrap()).unwrap();
        assert_eq!(next.to, None);
        assert_eq!(request("please climb: fix"), None);
    }
}
