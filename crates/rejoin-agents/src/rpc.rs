//! JSON-RPC messages in lines, for CLIs that run as a server.

use serde::Deserialize;
use serde_json::Value;

/// A request has a method and an id, a notification only a method, a response only an id.
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
