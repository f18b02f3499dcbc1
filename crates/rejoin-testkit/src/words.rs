//! Marker words: every message contains its own, and every turn must show each of them to the model
//! once.

use rejoin_model::Request;

/// Returns the word of user message `n`.
pub fn user(n: usize) -> String {
    format!("userword-{n}-end")
}

/// Returns the word of the answer to user message `n`.
pub fn answer(n: usize) -> String {
    format!("answerword-{n}-end")
}

/// Returns the words of these turns, each message with its answer.
pub fn said(turns: impl IntoIterator<Item = usize>) -> Vec<String> {
    turns
        .into_iter()
        .flat_map(|n| [user(n), answer(n)])
        .collect()
}

/// Returns every marker word in a text, in order.
pub fn words_in(text: &str) -> Vec<String> {
    let mut found = vec![];
    for (at, _) in text.match_indices("word-") {
        let kind = ["user", "answer"]
            .into_iter()
            .find(|kind| text[..at].ends_with(kind));
        let rest = &text[at + "word-".len()..];
        let number = rest.split_once("-end").map(|(number, _)| number);
        if let Some((kind, number)) = kind.zip(number)
            && !number.is_empty()
            && number.bytes().all(|b| b.is_ascii_digit())
        {
            found.push(format!("{kind}word-{number}-end"));
        }
    }
    found
}

/// Asserts that the request contains exactly these words, each once and in this order.
#[track_caller]
pub fn assert_shown(request: &Request, words: &[String]) {
    let body = request.history().to_string();
    assert_eq!(words_in(&body), words, "in {body}");
}

/// Returns all text of a request, as the model reads it.
pub fn texts(request: &Request) -> String {
    fn collect(value: &serde_json::Value, into: &mut Vec<String>) {
        match value {
            serde_json::Value::String(text) => into.push(text.clone()),
            serde_json::Value::Array(all) => all.iter().for_each(|v| collect(v, into)),
            serde_json::Value::Object(all) => all.values().for_each(|v| collect(v, into)),
            serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => {
            }
        }
    }
    let mut found = vec![];
    collect(request.history(), &mut found);
    found.join("\n")
}
