//! Messages on the socket: one JSON object per line, in a frozen format.
//!
//! A daemon of one build talks to shims of older builds, so nothing here may change its meaning;
//! an unknown order is refused, and the hello names the version.

use serde::{Deserialize, Serialize};

/// First line from the shim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Version of the orders.
    pub shim: u32,
    pub pid: i32,
    pub cli: i32,
}

/// Orders to a shim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "snake_case")]
pub enum Order {
    /// Write this to the CLI's stdin, which must be held open.
    Stdin {
        data: String,
    },
    /// Close stdin when everything before has been written.
    CloseStdin,
    /// SIGINT, then harder if that does not help.
    Interrupt,
    /// SIGTERM at once, SIGKILL one second later.
    Stop,
    Ping,
    /// Run until then, in milliseconds of the machine's boot clock, and end unless a new lease
    /// arrives. Since version 2.
    Lease {
        until_ms: u64,
    },
    /// Write this to the CLI's stdin unless the key was used before. Since version 3.
    Say {
        key: String,
        data: String,
    },
    /// Live without a client for this long, or until the next prompt or the end of stdin. Since
    /// version 4, and only with `Spec::rests`.
    Rest {
        ms: u64,
    },
}

/// Version of the orders that this build knows.
pub(crate) const VERSION: u32 = 4;
/// First version with `Order::Lease`.
pub(crate) const KNOWS_LEASES: u32 = 2;
/// First version with `Order::Say`, which writes each key once.
pub(crate) const KNOWS_KEYS: u32 = 3;

/// Notification between answers: there is more to read in the spools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Grew {
    pub(crate) grew: bool,
}

/// Answer to an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reply {
    pub(crate) ok: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

impl From<Result<(), String>> for Reply {
    fn from(result: Result<(), String>) -> Self {
        Self {
            ok: result.is_ok(),
            error: result.err(),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_frozen() {
        let table = [
            (
                Order::Stdin {
                    data: "a\n".to_owned(),
                },
                r#"{"order":"stdin","data":"a\n"}"#,
            ),
            (Order::CloseStdin, r#"{"order":"close_stdin"}"#),
            (Order::Interrupt, r#"{"order":"interrupt"}"#),
            (Order::Stop, r#"{"order":"stop"}"#),
            (Order::Ping, r#"{"order":"ping"}"#),
            (
                Order::Lease { until_ms: 7 },
                r#"{"order":"lease","until_ms":7}"#,
            ),
            (
                Order::Say {
                    key: "k".to_owned(),
                    data: "a\n".to_owned(),
                },
                r#"{"order":"say","key":"k","data":"a\n"}"#,
            ),
            (Order::Rest { ms: 7 }, r#"{"order":"rest","ms":7}"#),
        ];
        for (order, text) in table {
            assert_eq!(serde_json::to_string(&order).unwrap(), text);
            assert_eq!(serde_json::from_str::<Order>(text).unwrap(), order);
        }
        let hello = Hello {
            shim: 1,
            pid: 2,
            cli: 3,
        };
        assert_eq!(
            serde_json::to_string(&hello).unwrap(),
            r#"{"shim":1,"pid":2,"cli":3}"#
        );
        let reply = |result| serde_json::to_string(&Reply::from(result)).unwrap();
        assert_eq!(reply(Ok(())), r#"{"ok":true}"#);
        assert_eq!(reply(Err("no".to_owned())), r#"{"ok":false,"error":"no"}"#);
    }
}
