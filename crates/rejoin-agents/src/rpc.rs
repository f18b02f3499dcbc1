//! JSON-RPC in lines, as CLIs that are led speak it.

use serde::Deserialize;
use serde_json::Value;

/// A request has a method and an id, a notification only the one, a response only the other.
#[derive(Deserialize)]
pub(crate) struct Message {
    pub(crate) id: Option<Value>,
    pub(crate) method: Option<String>,
    #[serde(default)]
    pub(crate) params: Value,
    #[serde(default)]
    pub(crate) result: Value,
    pub(crate) error: Option<Value>,
}
