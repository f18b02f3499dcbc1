//! Composes the prompt of a plan: the context that precedes the new message, inside the marker.
//!
//! The context never repeats the text of a message, and nothing that varies per turn comes before
//! the history, so prompt caches stay valid.

use serde::{Deserialize, Serialize};

use crate::marker::{MARK_CLOSE, MARK_OPEN, escape};
use crate::message::Message;
use crate::plan::TurnPlan;
use crate::reason::Reason;
use crate::transcript::TranscriptText;

/// in a resumed session the agent must not answer an old question again.
pub(crate) const ACT_ON_THIS: &str = "Questions asked earlier in this session have been dealt with; the message that follows is the one to act on.";
pub(crate) const MEANWHILE: &str = "Since your last answer here, this was said in the same conversation; it is for your knowledge, not to be done again:";
pub(crate) const FROM_TRANSCRIPT: &str = "You are continuing a conversation from its record, because the session that held it is not used any more. What the record says was done is done. The message that follows it is the one to act on.";
pub(crate) const UNANSWERED: &str = "Messages that precede the one that follows were sent, but never answered; take them into account:";

pub(crate) const INSTRUCTIONS: &str = "Standing instructions of the product you work in:";
pub(crate) const OTHER_INSTRUCTIONS: &str =
    "The standing instructions of the product you work in have changed; these hold from now on:";
pub(crate) const NO_INSTRUCTIONS: &str =
    "The standing instructions of the product you work in do not hold any more.";

/// Transcript that the plan asks for. The caller, which has the history, loads it.
#[derive(Debug, Clone, Copy)]
pub enum Material<'a> {
    Nothing,
    /// Exactly the messages that the session has not seen.
    CatchUp(&'a TranscriptText),
    Transcript(&'a TranscriptText),
}

/// Error for material that does not match the plan. A defect: the turn must not run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the history read for this turn is not what its plan asked for ({0})")]
pub struct Mismatch(pub String);

/// User message of the turn. The adapter decides how the two parts reach the CLI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Composed {
    /// Everything that rejoin adds, inside the marker.
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

impl Sent {
    /// Says what the session knows of the messages before the turn: `knows all 12 messages`.
    pub fn knows(&self) -> String {
        crate::summary::knows(self.resumed, self.summarised)
    }
}

pub fn compose(
    plan: &TurnPlan,
    material: Material<'_>,
    new: &Message,
) -> Result<Composed, Mismatch> {
    let mut sent = Sent::default();
    let context = match (plan, material) {
        (TurnPlan::Start { .. }, Material::Nothing) => None,
        (TurnPlan::Resume { catch_up, .. }, Material::CatchUp(text)) => {
            must_tell_of(text, catch_up.messages())?;
            sent.resumed = catch_up.after();
            sent.summarised = catch_up.summarised();
            sent.caught_up = text.told;
            sent.left_out = text.left_out;
            sent.shortened = text.shortened;
            Some(resumed(text))
        }
        (
            TurnPlan::Reseed {
                transcript, why, ..
            },
            Material::Transcript(text),
        ) => {
            must_tell_of(text, transcript.messages())?;
            sent.transcribed = text.told;
            sent.left_out = text.left_out;
            sent.shortened = text.shortened;
            let intro = if *why == Reason::FirstTurn {
                UNANSWERED
            } else {
                FROM_TRANSCRIPT
            };
            Some(inside(&format!("{intro}\n{}", text.text)))
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
    /// Leaves out the notice about earlier questions, for a session in which none was asked. A
    /// catch-up keeps it: its messages may contain questions.
    #[must_use]
    pub fn without_question_notice(mut self) -> Self {
        if self.context.as_deref() == Some(inside(ACT_ON_THIS).as_str()) {
            self.context = None;
            self.sent.bytes = self.message.len() as u64;
        }
        self
    }

    /// Puts the standing instructions of the product that embeds rejoin before everything else.
    /// `again`: the session received other instructions before. An empty `text` revokes them.
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

impl Composed {
    /// Adds a text of rejoin about this turn, after everything else.
    #[must_use]
    pub fn with_notice(mut self, text: &str) -> Self {
        let before = self.context.as_deref().map(outside).unwrap_or_default();
        let context = inside(format!("{before}\n\n{}", escape(text)).trim_start());
        self.sent.bytes = (context.len() + self.message.len()) as u64;
        self.context = Some(context);
        self
    }

    /// Returns the context unless it is only the notice about earlier questions.
    pub fn told(&self) -> Option<&str> {
        let context = self.context.as_deref()?;
        (context != inside(ACT_ON_THIS)).then_some(context)
    }

    /// Removes a context that contains no message, so that the message is the sole new input.
    #[must_use]
    pub fn alone(mut self) -> Self {
        if self.context.as_deref() == Some(inside(ACT_ON_THIS).as_str()) {
            self.context = None;
            self.sent.bytes = self.message.len() as u64;
        }
        self
    }
}

/// Returns the text between the marks.
fn outside(context: &str) -> &str {
    let open = context.strip_prefix(MARK_OPEN).unwrap_or(context);
    open.strip_suffix(MARK_CLOSE).unwrap_or(open).trim()
}

fn must_tell_of(text: &TranscriptText, messages: u64) -> Result<(), Mismatch> {
    if text.told + text.left_out == messages {
        return Ok(());
    }
    Err(Mismatch(format!(
        "{} told and {} left out, not {messages} in all",
        text.told, text.left_out,
    )))
}

fn resumed(text: &TranscriptText) -> String {
    if text.told + text.left_out == 0 {
        return inside(ACT_ON_THIS);
    }
    inside(&format!("{MEANWHILE}\n{}{ACT_ON_THIS}", text.text))
}

fn inside(text: &str) -> String {
    format!("{MARK_OPEN}\n{}\n{MARK_CLOSE}", text.trim_end())
}
