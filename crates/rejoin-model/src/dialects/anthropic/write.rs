//! Answers in the Messages format: one JSON object, or server-sent events.

use serde_json::{Value, json};

use crate::{
    answer::{Answer, Call, Usage},
    dialects::{Frame, Part},
};

/// Any base64 works: a CLI sends it back unread.
const SIGNATURE: &str = "c2NyaXB0ZWQ=";

pub(super) fn whole(answer: &Answer) -> Value {
    let mut content = Vec::new();
    if let Some(thinking) = &answer.thinking {
        content.push(json!({"type": "thinking", "thinking": thinking, "signature": SIGNATURE}));
    }
    if !answer.pieces.is_empty() {
        content.push(json!({"type": "text", "text": answer.pieces.concat()}));
    }
    content.extend(answer.calls.iter().map(|call| tool_use(call, &call.input)));
    let mut message = message(answer, &answer.usage);
    message["content"] = Value::Array(content);
    message["stop_reason"] = stop_reason(answer);
    message
}

pub(super) fn frames(answer: &Answer) -> Vec<Frame> {
    // The output is not known yet when a stream begins, so the API counts one token there.
    let opening = message(
        answer,
        &Usage {
            output: 1,
            ..answer.usage
        },
    );
    let mut stream = Stream::default();
    stream.event(
        Part::Opening,
        &json!({"type": "message_start", "message": opening}),
    );
    if let Some(thinking) = &answer.thinking {
        let block = json!({"type": "thinking", "thinking": "", "signature": ""});
        stream.block(&block, |stream| {
            stream.delta(
                Part::Rest,
                &json!({"type": "thinking_delta", "thinking": thinking}),
            );
            stream.delta(
                Part::Rest,
                &json!({"type": "signature_delta", "signature": SIGNATURE}),
            );
        });
    }
    if !answer.pieces.is_empty() {
        stream.block(&json!({"type": "text", "text": ""}), |stream| {
            for piece in &answer.pieces {
                stream.delta(Part::Text, &json!({"type": "text_delta", "text": piece}));
            }
        });
    }
    for call in &answer.calls {
        stream.block(&tool_use(call, &json!({})), |stream| {
            let input = call.input.to_string();
            stream.delta(
                Part::Rest,
                &json!({"type": "input_json_delta", "partial_json": input}),
            );
        });
    }
    let delta = json!({"stop_reason": stop_reason(answer), "stop_sequence": null});
    let usage = usage(&answer.usage);
    stream.event(
        Part::Rest,
        &json!({"type": "message_delta", "delta": delta, "usage": usage}),
    );
    stream.event(Part::Rest, &json!({"type": "message_stop"}));
    stream.frames
}

#[derive(Default)]
struct Stream {
    frames: Vec<Frame>,
    index: usize,
}

impl Stream {
    fn block(&mut self, start: &Value, deltas: impl FnOnce(&mut Self)) {
        let index = self.index;
        let start = json!({"type": "content_block_start", "index": index, "content_block": start});
        self.event(Part::Rest, &start);
        deltas(self);
        self.event(
            Part::Rest,
            &json!({"type": "content_block_stop", "index": index}),
        );
        self.index += 1;
    }

    fn delta(&mut self, part: Part, delta: &Value) {
        let index = self.index;
        self.event(
            part,
            &json!({"type": "content_block_delta", "index": index, "delta": delta}),
        );
    }

    fn event(&mut self, part: Part, data: &Value) {
        let name = data["type"].as_str().unwrap_or_default();
        self.frames.push(Frame::event(part, name, data));
    }
}

/// Builds the message without its content.
fn message(answer: &Answer, counted: &Usage) -> Value {
    json!({
        "id": format!("msg_{}", answer.id),
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": usage(counted),
    })
}

fn usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_creation,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_creation,
            "ephemeral_1h_input_tokens": 0,
        },
        "output_tokens": usage.output,
        "service_tier": "standard",
    })
}

fn tool_use(call: &Call, input: &Value) -> Value {
    json!({
        "type": "tool_use",
        "id": format!("toolu_{}", call.id),
        "name": call.name,
        "input": input,
    })
}

fn stop_reason(answer: &Answer) -> Value {
    json!(if answer.calls.is_empty() {
        "end_turn"
    } else {
        "tool_use"
    })
}
