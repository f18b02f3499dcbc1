//! Events of a turn as pages: filtered by type and tool call, with long texts cut.

use std::collections::{BTreeMap, HashMap};

use rejoin_core::{EventBody, StoredEvent, TurnId};
use rejoin_store::{EventRow, Read};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Hub;
use crate::clock::rfc3339;
use crate::error::{Error, Result};

/// Number of events per page if the request has no limit, and at most.
const DEFAULT_PAGE: i64 = 200;
const LARGEST_PAGE: i64 = 2000;
/// Number of events to read at once, and for one page.
const STRETCH: i64 = 500;
const READ_AT_MOST: i64 = 10_000;
/// Size of a text in bytes from which it is cut.
const LONG: usize = 8 * 1024;
/// Size in bytes of a page's texts after which the page ends.
const PAGE_BYTES: usize = 2 * 1024 * 1024;

/// Selection of events of a turn.
#[derive(Debug, Clone, Default)]
pub struct TurnEventsQuery {
    /// Events after this number.
    pub after: i64,
    pub limit: Option<i64>,
    /// Types; `None`: all.
    pub types: Option<Vec<&'static str>>,
    /// Only the call, result and question of this tool call.
    pub tool_id: Option<String>,
    /// True to return long texts as a whole.
    pub whole: bool,
}

/// A page of the events of a turn, oldest first.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TurnEventsView {
    /// Events as a stream has them. In addition: `lengths`, the bytes of texts that were cut, by field (ask again with
    /// `whole`); and in `tool.result` `duration_ms`, the time since the call.
    #[cfg_attr(feature = "schema", schema(value_type = Vec<Object>))]
    pub events: Vec<Value>,
    /// There may be more events: ask with `after` and this number.
    pub next_after: Option<i64>,
    /// Number of the last event that this view contains: a stream with `after` and this number continues exactly here.
    pub as_of: i64,
}

impl Hub {
    /// Returns a page of the events of a turn.
    pub async fn turn_events(
        &self,
        turn: TurnId,
        query: &TurnEventsQuery,
    ) -> Result<TurnEventsView> {
        let limit = query.limit.unwrap_or(DEFAULT_PAGE).clamp(1, LARGEST_PAGE);
        let mut read = self.store.read_consistent().await?;
        let as_of = read.events().last().await?;
        let (mut after, mut looked, mut bytes) = (query.after, 0, 0);
        let (mut events, mut next_after) = (vec![], None);
        let mut calls = Calls::default();
        'page: loop {
            let stretch = read.events().of_turn(turn, after, STRETCH).await?;
            let full = stretch.len() as i64 == STRETCH;
            looked += stretch.len() as i64;
            for row in stretch {
                if events.len() as i64 >= limit || bytes > PAGE_BYTES {
                    next_after = Some(after);
                    break 'page;
                }
                after = row.seq;
                calls.hear(&row);
                if !query.wants(&row.body) {
                    continue;
                }
                let took = calls.took(&mut read, &row).await?;
                let event = shown(row, took, query.whole)?;
                bytes += event.to_string().len();
                events.push(event);
            }
            if !full {
                break;
            }
            if looked >= READ_AT_MOST {
                next_after = Some(after);
                break;
            }
        }
        read.finish().await;
        Ok(TurnEventsView {
            events,
            next_after,
            as_of,
        })
    }
}

impl TurnEventsQuery {
    fn wants(&self, body: &EventBody) -> bool {
        let typed = self.types.as_ref();
        let tool = self.tool_id.as_deref();
        typed.is_none_or(|types| types.contains(&body.kind()))
            && tool.is_none_or(|tool| call_of(body) == Some(tool))
    }
}

/// Returns the tool call that an event belongs to.
fn call_of(body: &EventBody) -> Option<&str> {
    if let EventBody::ToolCall { id, .. }
    | EventBody::ToolResult { id, .. }
    | EventBody::Question { id, .. }
    | EventBody::Approval { id, .. }
    | EventBody::Answered { id, .. } = body
    {
        return Some(id);
    }
    None
}

/// Times of calls, to find the durations of their results.
#[derive(Default)]
struct Calls {
    at: HashMap<String, i64>,
    earlier: bool,
}

impl Calls {
    fn hear(&mut self, row: &EventRow) {
        if let EventBody::ToolCall { id, .. } = &row.body {
            self.at.insert(id.clone(), row.at);
        }
    }

    /// Returns the duration of the call that this event ends, in milliseconds.
    async fn took(&mut self, read: &mut Read, row: &EventRow) -> Result<Option<i64>> {
        let EventBody::ToolResult { id, .. } = &row.body else {
            return Ok(None);
        };
        // The call may be on an earlier page.
        if !self.at.contains_key(id) && !std::mem::replace(&mut self.earlier, true) {
            for call in read
                .events()
                .calls_before(row.turn, row.seq, STRETCH)
                .await?
            {
                self.hear(&call);
            }
        }
        Ok(self.at.get(id).map(|at| (row.at - at).max(0) / 1000))
    }
}

fn shown(row: EventRow, took: Option<i64>, whole: bool) -> Result<Value> {
    let event = StoredEvent {
        seq: row.seq,
        conversation_id: row.conversation,
        turn_id: (!row.turn.is_nil()).then_some(row.turn),
        at: rfc3339(row.at),
        body: row.body.described(),
    };
    let internal = |e: serde_json::Error| Error::Internal(e.to_string());
    let mut event = serde_json::to_value(event).map_err(internal)?;
    let mut lengths = BTreeMap::new();
    if !whole {
        cut(&mut event, "", &mut lengths);
    }
    if let Some(fields) = event.as_object_mut() {
        if !lengths.is_empty() {
            let lengths: Map<String, Value> = lengths
                .into_iter()
                .map(|(field, length)| (field, length.into()))
                .collect();
            fields.insert("lengths".into(), lengths.into());
        }
        if let Some(took) = took {
            fields.insert("duration_ms".into(), took.into());
        }
    }
    Ok(event)
}

/// Cuts long texts in a value, and notes their lengths by field.
fn cut(value: &mut Value, field: &str, lengths: &mut BTreeMap<String, usize>) {
    let below = |name: &str| match field {
        "" => name.to_owned(),
        field => format!("{field}.{name}"),
    };
    match value {
        Value::String(text) if text.len() > LONG => {
            lengths.insert(field.to_owned(), text.len());
            text.truncate(text.floor_char_boundary(LONG));
        }
        Value::Array(all) => {
            for (n, one) in all.iter_mut().enumerate() {
                cut(one, &below(&n.to_string()), lengths);
            }
        }
        Value::Object(fields) => {
            for (name, one) in fields.iter_mut() {
                cut(one, &below(name), lengths);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn long_texts_are_cut_at_a_character() {
        let long = "ä".repeat(LONG);
        let mut event = json!({"text": long, "input": {"edits": [{"new": long}], "path": "a"}});
        let mut lengths = BTreeMap::new();
        cut(&mut event, "", &mut lengths);
        assert_eq!(event["text"].as_str().map(str::len), Some(LONG));
        assert_eq!(event["input"]["path"], "a");
        let due = ["input.edits.0.new", "text"].map(|field| (field.to_owned(), 2 * LONG));
        assert_eq!(lengths, BTreeMap::from(due));
    }
}
