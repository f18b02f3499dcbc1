//! Puts a plan into words: what stands before the new message, inside the marker.
//!
//! Nothing here repeats the text of a message, and nothing that varies per turn comes before the
//! history, so prompt caches hold.

use serde::{Deserialize, Serialize};

use crate::marker::{MARK_CLOSE, MARK_OPEN, escape};
use crate::message::Message;
use crate::plan::TurnPlan;
use crate::reason::Reason;
use crate::transcript::Record;

/// on a resumed session an old question must not be answered again.
pub(crate) const ACT_ON_THIS: &str = "Questions asked earlier in this session have been dealt with; the message that follows is the one to act on.";
pub(crate) const MEANWHILE: &str = "Since your last answer here, this was said in the same conversation; it is for your knowledge, not to be done again:";
pub(crate) const RECORD: &str = "You are continuing a conversation from its record, because the session that held it is not used any more. What the record says was done is done. The message that follows it is the one to act on.";
pub(crate) const UNANSWERED: &str = "Messages that precede the one that follows were sent, but never answered; take them into account:";

pub(crate) const INSTRUCTIONS: &str = "Standing instructions of the product you work in:";
pub(crate) const OTHER_INSTRUCTIONS: &str =
    "The standing instructions of the product you work in have changed; these hold from now on:";
pub(crate) const NO_INSTRUCTIONS: &str =
    "The standing instructions of the product you work in do not hold any more.";

/// What the plan asks for, loaded by whoever holds the history.
#[derive(Debug, Clone, Copy)]
pub enum Material<'a> {
    Nothing,
    /// Exactly the messages after those the session has seen.
    Rest(&'a Record),
    Record(&'a Record),
}

/// The plan asked for other material than was given: a defect, and the turn must not run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the history read for this turn is not what its plan asked for ({0})")]
pub struct Mismatch(pub String);

/// The user message of the turn. How the two parts are put on a wire is the adapter's business.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Composed {
    /// All that rejoin adds, inside the marker.
    pub context: Option<String>,
    /// The new message, with the marker escaped in it.
    pub message: String,
    pub sent: Sent,
}

/// How the model came to know each message. Part of the turn's JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Sent {
    /// Held by the session already.
    pub resumed: u64,
    pub caught_up: u64,
    /// Re-told, shortened or not.
    pub transcribed: u64,
    pub left_out: u64,
    /// Bytes handed to the agent in this turn, the new message included.
    pub bytes: u64,
    #[serde(default)]
    pub shortened: u64,
    /// Messages among `resumed` that the session holds only in its agent's summary.
    #[serde(default)]
    pub summarised: u64,
}

pub fn compose(
    plan: &TurnPlan,
    material: Material<'_>,
    new: &Message,
) -> Result<Composed, Mismatch> {
    let mut sent = Sent::default();
    let context = match (plan, material) {
        (TurnPlan::Start { .. }, Material::Nothing) => None,
        (TurnPlan::Resume { catch_up, .. }, Material::Rest(rest)) => {
            must_tell_of(rest, catch_up.messages())?;
            sent.resumed = catch_up.after();
            sent.summarised = catch_up.summarised();
            sent.caught_up = rest.told;
            sent.left_out = rest.left_out;
            sent.shortened = rest.shortened;
            Some(resumed(rest))
        }
        (
            TurnPlan::Reseed {
                transcript, why, ..
            },
            Material::Record(record),
        ) => {
            must_tell_of(record, transcript.messages())?;
            sent.transcribed = record.told;
            sent.left_out = record.left_out;
            sent.shortened = record.shortened;
            let intro = if *why == Reason::FirstTurn {
                UNANSWERED
            } else {
                RECORD
            };
            Some(inside(&format!("{intro}\n{}", record.text)))
        }
        (TurnPlan::Start { .. } | TurnPlan::Resume { .. } | TurnPlan::Reseed { .. }, _) => {
            return Err(Mismatch("of another kind".into()));
        }
    };
    let message = escape(&new.text);
    sent.bytes = (context.as_ref().map_or(0, String::len) + message.len()) as u64;
    Ok(Composed {
        context,
        message,
        sent,
    })
}

impl Composed {
    /// With the standing text of the product that embeds this, before everything else; `again`: the
    /// session was told another one before. Empty: none holds any more.
    #[must_use]
    pub fn with_instructions(mut self, text: &str, again: bool) -> Self {
        let text = escape(text.trim());
        let told = match (text.is_empty(), again) {
            (true, _) => NO_INSTRUCTIONS.to_owned(),
            (false, true) => format!("{OTHER_INSTRUCTIONS}\n{text}"),
            (false, false) => format!("{INSTRUCTIONS}\n{text}"),
        };
        let rest = self.context.as_deref().map(outside).unwrap_or_default();
        let context = inside(&format!("{told}\n\n{rest}"));
        self.sent.bytes = (context.len() + self.message.len()) as u64;
        self.context = Some(context);
        self
    }
}

/// What stands between the marks.
fn outside(context: &str) -> &str {
    let open = context.strip_prefix(MARK_OPEN).unwrap_or(context);
    open.strip_suffix(MARK_CLOSE).unwrap_or(open).trim()
}

fn must_tell_of(record: &Record, messages: u64) -> Result<(), Mismatch> {
    if record.told + record.left_out == messages {
        return Ok(());
    }
    Err(Mismatch(format!(
        "{} told and {} left out, not {messages} in all",
        record.told, record.left_out,
    )))
}

fn resumed(rest: &Record) -> String {
    if rest.told + rest.left_out == 0 {
        return inside(ACT_ON_THIS);
    }
    inside(&format!("{MEANWHILE}\n{}{ACT_ON_THIS}", rest.text))
}

fn inside(text: &str) -> String {
    format!("{MARK_OPEN}\n{}\n{MARK_CLOSE}", text.trim_end())
}
