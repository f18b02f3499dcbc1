//! Answers in the Gemini format. A stream is a series of complete responses, each with a further
//! part.

use serde_json::{Value, json};

use crate::{
    answer::{Answer, Usage},
    dialects::{Frame, Part},
};

/// Any base64 works: the CLI sends it back unread.
const SIGNATURE: &str = "c2NyaXB0ZWQ=";

pub(super) fn whole(answer: &Answer) -> Value {
    let mut parts = Vec::new();
    parts.extend(answer.thinking.as_deref().map(thought));
    if !answer.pieces.is_empty() {
        parts.push(json!({"text": answer.pieces.concat()}));
    }
    parts.extend(calls(answer));
    let mut response = response(answer, &parts);
    finish(&mut response, answer);
    response
}

/// Returns the stream. The API has no event that merely opens a stream, so a hanging answer is
/// silent from the start.
pub(super) fn frames(answer: &Answer) -> Vec<Frame> {
    let mut frames = Vec::new();
    if let Some(thinking) = &answer.thinking {
        frames.push(frame(Part::Rest, &response(answer, &[thought(thinking)])));
    }
    for piece in &answer.pieces {
        let response = response(answer, &[json!({"text": piece})]);
        frames.push(frame(Part::Text, &response));
    }
    if !answer.calls.is_empty() {
        frames.push(frame(Part::Rest, &response(answer, &calls(answer))));
    }
    let mut ending = response(answer, &[json!({"text": ""})]);
    finish(&mut ending, answer);
    frames.push(frame(Part::Rest, &ending));
    frames
}

fn frame(part: Part, response: &Value) -> Frame {
    // Google ends lines as HTTP does, and its older clients accept nothing else.
    let bytes = format!("data: {response}\r\n\r\n");
    Frame { part, bytes }
}

fn response(answer: &Answer, parts: &[Value]) -> Value {
    json!({
        "candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}],
        "modelVersion": answer.model,
        "responseId": answer.id,
    })
}

fn finish(response: &mut Value, answer: &Answer) {
    response["candidates"][0]["finishReason"] = json!("STOP");
    response["usageMetadata"] = usage(&answer.usage);
}

fn thought(thinking: &str) -> Value {
    json!({"text": thinking, "thought": true})
}

/// Returns all calls of an answer. The first one carries the signature, as in the API.
fn calls(answer: &Answer) -> Vec<Value> {
    let mut parts: Vec<Value> = Vec::new();
    for call in &answer.calls {
        let id = format!("call_{}", call.id);
        parts.push(json!({"functionCall": {"id": id, "name": call.name, "args": call.input}}));
    }
    if let Some(first) = parts.first_mut() {
        first["thoughtSignature"] = json!(SIGNATURE);
    }
    parts
}

/// Formats the counts. This API counts cached tokens as part of the prompt, and does not report
/// newly cached ones.
fn usage(usage: &Usage) -> Value {
    let prompt = usage.input + usage.cache_read + usage.cache_creation;
    json!({
        "promptTokenCount": prompt,
        "cachedContentTokenCount": usage.cache_read,
        "candidatesTokenCount": usage.output,
        "totalTokenCount": prompt + usage.output,
    })
}
