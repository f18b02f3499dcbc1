//! The decision: a total, pure function from facts to a plan. It keeps every check for display.

use std::fmt;

use crate::pin::{PinState, SeenPrefix};
use crate::plan::{CatchUp, Prompt, SessionSource, Transcript, TrustedSession, TurnPlan};
use crate::reason::Reason;
use crate::situation::{PermissionsFact, PinFacts, Situation, SnapshotFact};

mod evidence;
mod guards;

pub use evidence::Evidence;
pub use guards::GONE_AND_SWEPT;

/// A plan or the reason to run nothing, with the evidence of each guard.
#[derive(Debug, Clone)]
pub struct Decision<'a> {
    pub plan: Result<TurnPlan, Blocker>,
    pub checks: [Check<'a>; guards::COUNT],
}

/// Reason to run nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blocker {
    /// A foreign process is writing the session.
    InUse { pid: u32 },
    /// The session cannot be resumed, and `--no-reseed` forbids a new one.
    WouldReseed { why: Reason },
    /// The agent cannot enforce the requested permissions.
    Permissions,
}

/// Answer of one guard. `ok` is `None` if the guard does not apply.
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
    Permissions => "envelope",
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

/// Decides how the next turn continues. Evaluates all guards; the first that fails gives the
/// reason.
pub fn decide<'a>(s: &Situation<'a>) -> Decision<'a> {
    let (checks, refused) = guards::all(s);
    Decision {
        plan: plan(s, refused),
        checks,
    }
}

fn plan(s: &Situation<'_>, refused: Option<Reason>) -> Result<TurnPlan, Blocker> {
    if let PermissionsFact::Cannot(_) = s.permissions {
        return Err(Blocker::Permissions);
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
            return Err(Blocker::InUse { pid });
        }
        (Some(why), _) => why,
        (None, None) => Reason::NoSession,
    };
    if s.request.no_reseed {
        return Err(Blocker::WouldReseed { why });
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

/// Creates a trusted session; no other function does. Returns `None` if neither files nor a
/// snapshot can be used.
fn trusted(s: &Situation<'_>, facts: &PinFacts<'_>) -> Option<(TrustedSession, CatchUp)> {
    let (way, seen) = reach(facts)?;
    // A prefix cannot be longer than the history. If the facts claim that, they are wrong.
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

/// Returns the source of the session: in place if its bytes are the confirmed ones, else a
/// snapshot, which may have seen fewer messages.
pub(crate) fn reach(facts: &PinFacts<'_>) -> Option<(SessionSource, SeenPrefix)> {
    match facts.snapshot() {
        _ if in_place(facts) => {
            let own = facts.forked_from.is_none();
            Some((
                if own {
                    SessionSource::InPlace
                } else {
                    SessionSource::Fork
                },
                facts.pin.seen,
            ))
        }
        SnapshotFact::Usable { seen } => Some((SessionSource::Snapshot, seen)),
        SnapshotFact::None
        | SnapshotFact::Damaged
        | SnapshotFact::Expired
        | SnapshotFact::Unreachable(_) => None,
    }
}

/// Returns true if the session can be used where it is. An open pin means that no process has read
/// the remains of its turn yet, so its files are not trusted. A fork copies only confirmed bytes
/// and ignores that state.
fn in_place(facts: &PinFacts<'_>) -> bool {
    let open = matches!(facts.pin.state, PinState::Open(_));
    facts.session.usable() && (facts.forked_from.is_some() || !open)
}

#[cfg(test)]
mod tests;
