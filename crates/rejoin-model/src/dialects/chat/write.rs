//! Answers in the chat format: one JSON object, or chunks that end with `[DONE]`.

use serde_json::{Value, json};

use crate::{
    answer::{Answer, Call, Usage},
    dialects::{Frame, Part},
};

pub(super) fn whole(answer: &Answer) -> Value {
    let text = (!answer.pieces.is_empty()).then(|| answer.pieces.concat());
    let mut message = json!({"role": "assistant", "content": text, "refusal": null});
    if let Some(thinking) = &answer.thinking {
        message["reasoning_content"] = json!(thinking);
    }
    if !answer.calls.is_empty() {
        let calls = answer.calls.iter().map(tool_call);
        message["tool_calls"] = calls.collect();
    }
    let choice = json!({"index": 0, "message": message, "finish_reason": finish_reason(answer)});
    let mut reply = envelope(answer, "chat.completion");
    reply["choices"] = json!([choice]);
    reply["usage"] = usage(&answer.usage);
    reply
}

pub(super) fn frames(answer: &Answer) -> Vec<Frame> {
    let mut frames = vec![chunk(
        answer,
        Part::Opening,
        &json!({"role": "assistant", "content": ""}),
    )];
    if let Some(thinking) = &answer.thinking {
        let delta = json!({"reasoning_content": thinking});
        frames.push(chunk(answer, Part::Rest, &delta));
    }
    for piece in &answer.pieces {
        frames.push(chunk(answer, Part::Text, &json!({"content": piece})));
    }
    for (index, call) in answer.calls.iter().enumerate() {
        let mut opening = tool_call(call);
        opening["index"] = json!(index);
        opening["function"]["arguments"] = json!("");
        frames.push(chunk(answer, Part::Rest, &json!({"tool_calls": [opening]})));
        let arguments = json!({"index": index, "function": {"arguments": call.input.to_string()}});
        let delta = json!({"tool_calls": [arguments]});
        frames.push(chunk(answer, Part::Rest, &delta));
    }
    let mut ending = envelope(answer, "chat.completion.chunk");
    ending["choices"] = json!([{"index": 0, "delta": {}, "finish_reason": finish_reason(answer)}]);
    frames.push(Frame::data(Part::Rest, &ending));
    let mut counted = envelope(answer, "chat.completion.chunk");
    counted["choices"] = json!([]);
    counted["usage"] = usage(&answer.usage);
    frames.push(Frame::data(Part::Rest, &counted));
    frames.push(Frame {
        part: Part::Rest,
        bytes: "data: [DONE]\n\n".to_owned(),
    });
    frames
}

fn chunk(answer: &Answer, part: Part, delta: &Value) -> Frame {
    let mut chunk = envelope(answer, "chat.completion.chunk");
    chunk["choices"] = json!([{"index": 0, "delta": delta, "finish_reason": null}]);
    Frame::data(part, &chunk)
}

fn envelope(answer: &Answer, object: &str) -> Value {
    json!({
        "id": format!("chatcmpl-{}", answer.id),
        "object": object,
        "created": 0,
        "model": answer.model,
    })
}

fn tool_call(call: &Call) -> Value {
    json!({
        "id": format!("call_{}", call.id),
        "type": "function",
        "function": {"name": call.name, "arguments": call.input.to_string()},
    })
}

fn finish_reason(answer: &Answer) -> &'static str {
    if answer.calls.is_empty() {
        "stop"
    } else {
        "tool_calls"
    }
}

/// Formats the counts. This API counts cached tokens as part of the prompt.
fn usage(usage: &Usage) -> Value {
    let prompt = usage.input + usage.cache_read + usage.cache_creation;
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": usage.output,
        "total_tokens": prompt + usage.output,
        "prompt_tokens_details": {
            "cached_tokens": usage.cache_read,
            "cache_write_tokens": usage.cache_creation,
        },
        "completion_tokens_details": {"reasoning_tokens": 0},
    })
}
