//! Answers in the Responses format: one JSON object, or events that build it up item by item.

use serde_json::{Value, json};

use crate::{
    answer::{Answer, Call, Usage},
    dialects::{Frame, Part},
};

/// Any base64 works: Codex sends it back unread.
const ENCRYPTED: &str = "c2NyaXB0ZWQ=";

pub(super) fn whole(answer: &Answer) -> Value {
    let mut items = Vec::new();
    items.extend(
        answer
            .thinking
            .as_deref()
            .map(|text| reasoning(answer, text)),
    );
    if !answer.pieces.is_empty() {
        items.push(message(answer));
    }
    items.extend(answer.calls.iter().map(call_item));
    completed(answer, items)
}

pub(super) fn frames(answer: &Answer) -> Vec<Frame> {
    let mut stream = Stream::default();
    let opening = json!({"response": envelope(answer, "in_progress")});
    stream.event(Part::Opening, "response.created", opening);
    if let Some(thinking) = &answer.thinking {
        let item = reasoning(answer, thinking);
        stream.item(item, "summary", json!([]), |stream| {
            let part = json!({"type": "summary_text", "text": ""});
            stream.within(
                Part::Rest,
                "response.reasoning_summary_part.added",
                json!({"part": part}),
            );
            let delta = json!({"summary_index": 0, "delta": thinking});
            stream.within(Part::Rest, "response.reasoning_summary_text.delta", delta);
            let done = json!({"summary_index": 0, "text": thinking});
            stream.within(Part::Rest, "response.reasoning_summary_text.done", done);
        });
    }
    if !answer.pieces.is_empty() {
        let item = message(answer);
        let whole = item["content"][0].clone();
        stream.item(item, "content", json!([]), |stream| {
            let part = json!({"type": "output_text", "text": "", "annotations": []});
            let added = json!({"content_index": 0, "part": part});
            stream.within(Part::Rest, "response.content_part.added", added);
            for piece in &answer.pieces {
                let delta = json!({"content_index": 0, "delta": piece});
                stream.within(Part::Text, "response.output_text.delta", delta);
            }
            let done = json!({"content_index": 0, "text": whole["text"]});
            stream.within(Part::Rest, "response.output_text.done", done);
            let done = json!({"content_index": 0, "part": whole});
            stream.within(Part::Rest, "response.content_part.done", done);
        });
    }
    for call in &answer.calls {
        let item = call_item(call);
        let (field, kind) = if item["input"].is_string() {
            ("input", "custom_tool_call_input")
        } else {
            ("arguments", "function_call_arguments")
        };
        let value = item[field].clone();
        stream.item(item, field, json!(""), |stream| {
            stream.within(
                Part::Rest,
                &format!("response.{kind}.delta"),
                json!({"delta": value}),
            );
            stream.within(
                Part::Rest,
                &format!("response.{kind}.done"),
                json!({field: value}),
            );
        });
    }
    let items = std::mem::take(&mut stream.items);
    let ending = json!({"response": completed(answer, items)});
    stream.event(Part::Rest, "response.completed", ending);
    stream.frames
}

/// A stream that opens and fails.
pub(super) fn failed(code: &str, message: &str) -> Vec<Frame> {
    let mut stream = Stream::default();
    let mut response = json!({"id": "resp_failed", "object": "response", "status": "in_progress"});
    stream.event(
        Part::Opening,
        "response.created",
        json!({"response": response}),
    );
    response["status"] = json!("failed");
    response["error"] = json!({"code": code, "message": message});
    let ending = json!({"response": response});
    stream.event(Part::Rest, "response.failed", ending);
    stream.frames
}

#[derive(Default)]
struct Stream {
    frames: Vec<Frame>,
    items: Vec<Value>,
    /// Id of the item that is being written.
    item: Value,
}

impl Stream {
    /// Writes an item: announced with this field still empty, filled by events, then repeated
    /// completely.
    fn item(&mut self, item: Value, field: &str, empty: Value, events: impl FnOnce(&mut Self)) {
        let index = self.items.len();
        self.item = item["id"].clone();
        let mut announced = item.clone();
        announced["status"] = json!("in_progress");
        announced[field] = empty;
        let added = json!({"output_index": index, "item": announced});
        self.event(Part::Rest, "response.output_item.added", added);
        events(self);
        let done = json!({"output_index": index, "item": item});
        self.event(Part::Rest, "response.output_item.done", done);
        self.items.push(item);
    }

    /// Writes an event about the current item.
    fn within(&mut self, part: Part, name: &str, mut data: Value) {
        data["item_id"] = self.item.clone();
        data["output_index"] = json!(self.items.len());
        self.event(part, name, data);
    }

    fn event(&mut self, part: Part, name: &str, mut data: Value) {
        data["type"] = json!(name);
        data["sequence_number"] = json!(self.frames.len());
        self.frames.push(Frame::event(part, name, &data));
    }
}

fn envelope(answer: &Answer, status: &str) -> Value {
    json!({
        "id": format!("resp_{}", answer.id),
        "object": "response",
        "created_at": 0,
        "status": status,
        "model": answer.model,
        "output": [],
        "error": null,
        "incomplete_details": null,
        "usage": null,
    })
}

fn completed(answer: &Answer, items: Vec<Value>) -> Value {
    let mut response = envelope(answer, "completed");
    response["output"] = Value::Array(items);
    response["usage"] = usage(&answer.usage);
    response
}

fn reasoning(answer: &Answer, thinking: &str) -> Value {
    json!({
        "type": "reasoning",
        "id": format!("rs_{}", answer.id),
        "summary": [{"type": "summary_text", "text": thinking}],
        "encrypted_content": ENCRYPTED,
    })
}

fn message(answer: &Answer) -> Value {
    let text = answer.pieces.concat();
    json!({
        "type": "message",
        "id": format!("msg_{}", answer.id),
        "status": "completed",
        "role": "assistant",
        "content": [{"type": "output_text", "text": text, "annotations": []}],
    })
}

/// Formats a call. A tool with free text as input (`apply_patch`) has its own kind of call.
fn call_item(call: &Call) -> Value {
    let mut item = json!({
        "status": "completed",
        "call_id": format!("call_{}", call.id),
        "name": call.name,
    });
    if let Some(text) = call.input.as_str() {
        item["type"] = json!("custom_tool_call");
        item["id"] = json!(format!("ctc_{}", call.id));
        item["input"] = json!(text);
    } else {
        item["type"] = json!("function_call");
        item["id"] = json!(format!("fc_{}", call.id));
        item["arguments"] = json!(call.input.to_string());
    }
    item
}

/// Formats the counts. This API counts cached tokens as part of the input.
fn usage(usage: &Usage) -> Value {
    let input = usage.input + usage.cache_read + usage.cache_creation;
    json!({
        "input_tokens": input,
        "input_tokens_details": {
            "cached_tokens": usage.cache_read,
            "cache_write_tokens": usage.cache_creation,
        },
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": input + usage.output,
    })
}
