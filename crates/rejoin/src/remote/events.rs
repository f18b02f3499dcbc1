//! The events of a turn, as a daemon tells them; a connection that breaks is made anew.

use std::time::Duration;

use rejoin_core::TurnId;
use reqwest::Response;

use super::{Ask, Remote};
use rejoin_errors::{CommandError, Result};

/// Waited before the connection is made again; after the last it is given up.
const AGAIN: [Duration; 5] = [
    Duration::from_millis(100),
    Duration::from_millis(300),
    Duration::from_millis(600),
    Duration::from_secs(1),
    Duration::from_secs(1),
];
/// No event of ours is longer.
const LONGEST: usize = 64 << 20;

/// An event of a turn.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TurnEvent {
    pub(crate) kind: String,
    /// The event as it is stored, in JSON.
    pub(crate) json: String,
}

/// Follows one turn.
pub(crate) struct Events<'a> {
    remote: &'a Remote,
    turn: TurnId,
    /// The last event that was told.
    after: i64,
    open: Option<Response>,
    lines: Lines,
}

impl<'a> Events<'a> {
    pub(crate) fn of(remote: &'a Remote, turn: TurnId) -> Self {
        Self {
            remote,
            turn,
            after: 0,
            open: None,
            lines: Lines::default(),
        }
    }

    /// The next one. Can be given up at any time without losing any.
    pub(crate) async fn next_event(&mut self) -> Result<TurnEvent> {
        let mut tries = AGAIN.iter();
        loop {
            if let Some((id, told)) = self.lines.next() {
                self.after = id.unwrap_or(self.after);
                return Ok(told);
            }
            let failure = match self.more().await {
                Ok(()) => {
                    tries = AGAIN.iter();
                    continue;
                }
                // Nobody there is waited for; whoever says no means it.
                Err(failure) if failure.exit != 6 => return Err(failure),
                Err(failure) => failure,
            };
            self.open = None;
            self.lines = Lines::default();
            match tries.next() {
                Some(pause) => tokio::time::sleep(*pause).await,
                None => return Err(failure),
            }
        }
    }

    async fn more(&mut self) -> Result<()> {
        if self.open.is_none() {
            let turn = self.turn.to_string();
            let ask = Ask::get(&["api", "turns", &turn, "events"]);
            let ask = ask.with("after", self.after.to_string());
            self.open = Some(self.remote.send(ask, Some("text/event-stream")).await?);
        }
        let Some(response) = &mut self.open else {
            return Ok(());
        };
        match response.chunk().await {
            Ok(Some(bytes)) => self.lines.push(&bytes),
            Ok(None) => Err(CommandError::unavailable(format!(
                "{} went away",
                self.remote.called()
            ))),
            Err(error) => Err(self.remote.gone(&error)),
        }
    }
}

/// Bytes of a stream, cut into events.
#[derive(Default)]
struct Lines {
    bytes: Vec<u8>,
}

impl Lines {
    fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() > LONGEST {
            return Err(CommandError::unavailable("an event is too long"));
        }
        Ok(())
    }

    /// The next whole event, with its number.
    fn next(&mut self) -> Option<(Option<i64>, TurnEvent)> {
        loop {
            let end = self.bytes.windows(2).position(|two| two == b"\n\n")?;
            let rest = self.bytes.split_off(end + 2);
            let block = std::mem::replace(&mut self.bytes, rest);
            let text = String::from_utf8_lossy(&block);
            let (mut id, mut kind, mut data) = (None, String::new(), vec![]);
            for line in text.lines() {
                let (name, value) = line.split_once(':').unwrap_or((line, ""));
                let value = value.strip_prefix(' ').unwrap_or(value);
                match name {
                    "id" => id = value.parse().ok(),
                    "event" => value.clone_into(&mut kind),
                    "data" => data.push(value),
                    // A remark that keeps the connection open, or something of tomorrow.
                    _ => {}
                }
            }
            if !data.is_empty() {
                let json = data.join("\n");
                return Some((id, TurnEvent { kind, json }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_pieces() {
        let stream = ": alive\n\nid: 4\nevent: text\ndata: {\"a\":\ndata: 1}\n\nid:5\nevent:x\ndata:é\n\nid: 6\n";
        for size in 1..stream.len() {
            let mut lines = Lines::default();
            let mut found = vec![];
            for piece in stream.as_bytes().chunks(size) {
                lines.push(piece).unwrap();
                while let Some((id, told)) = lines.next() {
                    found.push((id, told.kind, told.json));
                }
            }
            let first = (Some(4), "text".to_owned(), "{\"a\":\n1}".to_owned());
            let second = (Some(5), "x".to_owned(), "é".to_owned());
            assert_eq!(found, [first, second], "{size}");
        }
    }
}
