//! Every message carries a word of its own; every turn must show the model each of them once.

use rejoin_model::Request;

/// The word in user message N.
pub fn user(n: usize) -> String {
    format!("userword-{n}-end")
}

/// The word in the answer to it.
pub fn answer(n: usize) -> String {
    format!("answerword-{n}-end")
}

/// The words of messages `1..=n`, each with its answer.
pub fn said(turns: impl IntoIterator<Item = usize>) -> Vec<String> {
    turns
        .into_iter()
        .flat_map(|n| [user(n), answer(n)])
        .collect()
}

/// Every word of ours in a text, in order.
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

/// The request shows exactly these words, each once and in this order, and no other of ours.
#[track_caller]
pub fn assert_shown(request: &Request, words: &[String]) {
    let body = request.history().to_string();
    assert_eq!(words_in(&body), words, "in {body}");
}

/// Everything the request says in words, as the model reads it.
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
