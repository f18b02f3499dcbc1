//! The decision: a total, pure function from facts to a plan, with every check kept for display.

use std::fmt;

use crate::pin::{PinState, Seen};
use crate::plan::{CatchUp, Prompt, Transcript, TrustedSession, TurnPlan, Way};
use crate::reason::Reason;
use crate::situation::{EnvelopeFact, PinFacts, Situation, SnapshotFact};

mod evidence;
mod guards;

pub use evidence::Evidence;

/// A plan, or the reason to run nothing; and what each guard saw.
#[derive(Debug, Clone)]
pub struct Decision<'a> {
    pub plan: Result<TurnPlan, Hold>,
    pub checks: [Check<'a>; guards::COUNT],
}

/// Nothing is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hold {
    /// A process that is not ours is writing the session.
    InUse { pid: u32 },
    /// `--no-reseed`, and the session cannot be resumed.
    WouldReseed { why: Reason },
    /// The agent cannot be held to the permissions asked for.
    Envelope,
}

/// One guard's answer. `ok` is none where it does not apply.
#[derive(Debug, Clone, Copy)]
pub struct Check<'a> {
    pub check: CheckName,
    pub ok: Option<bool>,
    pub evidence: Evidence<'a>,
}

macro_rules! check_names {
    ($($variant:ident => $word:literal,)+) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum CheckName { $($variant),+ }

        impl fmt::Display for CheckName {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$variant => $word),+ })
            }
        }
    };
}

check_names! {
    Envelope => "envelope",
    Turns => "turns",
    Fresh => "fresh",
    Capability => "capability",
    Session => "session",
    Breaker => "breaker",
    History => "history",
    Folder => "folder",
    Runtime => "runtime",
    Provider => "provider",
    Context => "context",
    Present => "present",
    InUse => "in_use",
    Bytes => "bytes",
    Model => "model",
    Compaction => "compaction",
    Snapshot => "snapshot",
}

/// Decides how the next turn is continued. The first guard that fails gives the reason; all are
/// evaluated.
pub fn decide<'a>(s: &Situation<'a>) -> Decision<'a> {
    let (checks, refused) = guards::all(s);
    Decision {
        plan: plan(s, refused),
        checks,
    }
}

fn plan(s: &Situation<'_>, refused: Option<Reason>) -> Result<TurnPlan, Hold> {
    if let EnvelopeFact::Cannot(_) = s.envelope {
        return Err(Hold::Envelope);
    }
    let prompt = Prompt(());
    if s.history.messages == 0 {
        return Ok(TurnPlan::Start { prompt });
    }
    let why = match (refused, s.pin) {
        (None, Some(facts)) => match trusted(s, &facts) {
            Some((session, catch_up)) => {
                return Ok(TurnPlan::Resume {
                    session,
                    catch_up,
                    prompt,
                });
            }
            None => Reason::HistoryChanged,
        },
        (
            Some(Reason::InUse),
            Some(PinFacts {
                in_use: Some(pid), ..
            }),
        ) => {
            return Err(Hold::InUse { pid });
        }
        (Some(why), _) => why,
        (None, None) => Reason::NoSession,
    };
    if s.request.no_reseed {
        return Err(Hold::WouldReseed { why });
    }
    let transcript = Transcript {
        messages: s.history.messages,
    };
    Ok(TurnPlan::Reseed {
        why,
        transcript,
        prompt,
    })
}

/// The one place where a session becomes trusted.
fn trusted(s: &Situation<'_>, facts: &PinFacts<'_>) -> Option<(TrustedSession, CatchUp)> {
    let (way, seen) = reach(facts)?;
    // A prefix can never be longer than the history; if the facts say so they are wrong.
    let messages = s.history.messages.checked_sub(seen.messages)?;
    let session = TrustedSession {
        id: facts.pin.session.clone(),
        way,
    };
    Some((
        session,
        CatchUp {
            after: seen.messages,
            summarised: seen.summarised.min(seen.messages),
            messages,
        },
    ))
}

/// Where the session is to be had: in place if its bytes are the confirmed ones, else from a
/// snapshot, which may have seen less.
pub(crate) fn reach(facts: &PinFacts<'_>) -> Option<(Way, Seen)> {
    match facts.snapshot() {
        _ if in_place(facts) => {
            let own = facts.forked_from.is_none();
            Some((if own { Way::InPlace } else { Way::Fork }, facts.pin.seen))
        }
        SnapshotFact::Usable { seen } => Some((Way::Snapshot, seen)),
        SnapshotFact::None
        | SnapshotFact::Damaged
        | SnapshotFact::Expired
        | SnapshotFact::Unreachable(_) => None,
    }
}

/// An open pin says that nobody has read yet what its turn left behind, whatever the files say; a
/// fork takes nothing of that along.
fn in_place(facts: &PinFacts<'_>) -> bool {
    let open = matches!(facts.pin.state, PinState::Open(_));
    facts.session.usable() && (facts.forked_from.is_some() || !open)
}

#[cfg(test)]
mod tests;
