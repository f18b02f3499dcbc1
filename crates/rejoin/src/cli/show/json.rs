//! `rejoin show --json`

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufWriter, Read as _, Seek as _, Write as _};

use serde::Serialize;
use serde_json::json;

use super::walk::Walk;
use crate::output::Output;
use rejoin_errors::{CommandError, Result};

/// Prints one document. Messages and turns of a long conversation wait in files until all pages
/// are read, so an error leaves nothing half printed.
pub(super) async fn print(out: Output, mut walk: Walk<'_>) -> Result<()> {
    let one_page = walk.is_one_page();
    let Some(first) = walk.next().await? else {
        return Ok(());
    };
    if one_page {
        out.json(&json!({
            "conversation": first.conversation, "messages": first.messages,
            "turns": first.turns, "sessions": first.sessions,
        }));
        return Ok(());
    }
    let conversation = json!(first.conversation);
    let sessions = json!(first.sessions);
    let (mut messages, mut turns) = (Elements::new()?, Elements::new()?);
    let mut known = HashSet::new();
    let mut next = Some(first);
    while let Some(shown) = next {
        for message in &shown.messages {
            messages.add(message)?;
        }
        for turn in shown.turns.iter().filter(|turn| known.insert(turn.turn_id)) {
            turns.add(turn)?;
        }
        next = walk.next().await?;
    }
    out.json_piece(&format!("{{\"conversation\":{conversation},\"messages\":["));
    messages.print(out)?;
    out.json_piece(&format!("],\"sessions\":{sessions},\"turns\":["));
    turns.print(out)?;
    out.json_piece("]}\n");
    Ok(())
}

/// Elements of an array, in a file without a name.
struct Elements {
    file: BufWriter<File>,
    empty: bool,
}

impl Elements {
    fn new() -> Result<Self> {
        let file = BufWriter::new(tempfile::tempfile().map_err(|e| failed(&e))?);
        Ok(Self { file, empty: true })
    }

    fn add(&mut self, element: &impl Serialize) -> Result<()> {
        if !std::mem::replace(&mut self.empty, false) {
            self.file.write_all(b",").map_err(|e| failed(&e))?;
        }
        // By way of a value, whose keys are sorted as in every other document.
        let element = serde_json::to_value(element).unwrap_or_default();
        serde_json::to_writer(&mut self.file, &element).map_err(|e| failed(&e.into()))
    }

    fn print(self, out: Output) -> Result<()> {
        let mut file = self.file.into_inner().map_err(|e| failed(e.error()))?;
        file.rewind().map_err(|e| failed(&e))?;
        let mut rest = vec![];
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let read = file.read(&mut buffer).map_err(|e| failed(&e))?;
            if read == 0 {
                return Ok(());
            }
            rest.extend_from_slice(&buffer[..read]);
            // A letter may be cut in two at the end of the buffer.
            let whole = match std::str::from_utf8(&rest) {
                Ok(text) => text.len(),
                Err(error) => error.valid_up_to(),
            };
            let later = rest.split_off(whole);
            out.json_piece(&String::from_utf8_lossy(&rest));
            rest = later;
        }
    }
}

fn failed(error: &std::io::Error) -> CommandError {
    CommandError::unavailable(format!("a temporary file cannot be written: {error}"))
}
