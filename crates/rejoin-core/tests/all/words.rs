//! Reads what was composed the way the model does.

use rejoin_core::{
    AgentName, Budget, Composed, Material, Message, MessageState, TranscriptBuilder,
    TranscriptText, TurnPlan, compose,
};

/// One element of a catch-up or a transcript, as the model reads it.
#[derive(Debug, PartialEq)]
pub(super) struct Element {
    number: i64,
    by: String,
    unanswered: bool,
    word: String,
    tools: bool,
}

pub(super) fn transcript(messages: &[Message], tokens: u64) -> TranscriptText {
    let mut builder = TranscriptBuilder::new(Budget { tokens });
    for message in messages.iter().rev() {
        if !builder.push(message) {
            break;
        }
    }
    builder.finish(messages.len() as u64, &[])
}

/// Too little room: the newest are told, in order, and the line says how many are not.
pub(super) fn check_small_budget(plan: &TurnPlan, messages: &[Message], new: &Message) {
    let total = messages.len() as u64;
    let transcript = transcript(messages, 60);
    let Composed { context, sent, .. } =
        compose(plan, Material::Transcript(&transcript), new).unwrap();
    let context = context.unwrap();
    assert_eq!(sent.transcribed + sent.left_out, total);
    let newest = &messages[sent.left_out as usize..];
    assert!(!newest.is_empty());
    assert_eq!(elements(&context), expected_elements(newest));
    let line = format!(
        "The first {} of {total} messages are left out for want of room.",
        sent.left_out
    );
    assert_eq!(context.contains(&line), sent.left_out > 0, "{context}");
    assert_eq!(context.contains("left out"), sent.left_out > 0, "{context}");
}

/// All words in a text, in order.
pub(super) fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|part| part.starts_with("zq"))
        .map(Into::into)
        .collect()
}

/// The word of one message.
pub(super) fn word(text: &str) -> String {
    let found = words(text);
    assert_eq!(found.len(), 1, "{text}");
    found.concat()
}

/// The elements of a context, read from its text.
pub(super) fn elements(context: &str) -> Vec<Element> {
    let mut found: Vec<Element> = vec![];
    for line in context.lines() {
        if let Some(head) = line.strip_prefix("<said ") {
            let field = |name: &str| {
                let from = head.split_once(&format!("{name}=\""))?.1;
                Some(from.split_once('"')?.0.to_owned())
            };
            found.push(Element {
                number: field("n").unwrap().parse().unwrap(),
                by: field("by").unwrap(),
                unanswered: field("unanswered").as_deref() == Some("true"),
                word: String::new(),
                tools: false,
            });
        } else if let Some(last) = found.last_mut() {
            last.word.extend(words(line));
            last.tools |= line == "(tools: started make (outcome unknown))";
        }
    }
    found
}

pub(super) fn expected_elements(messages: &[Message]) -> Vec<Element> {
    messages
        .iter()
        .map(|m| Element {
            number: m.seq,
            by: m.agent.as_ref().map_or("user", AgentName::as_str).into(),
            unanswered: m.state == MessageState::Unanswered,
            word: word(&m.text),
            tools: !m.trail.is_empty(),
        })
        .collect()
}
