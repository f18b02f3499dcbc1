//! The guards, one function each, in the order of the contract.

use crate::decide::evidence::Evidence;
use crate::decide::{Check, CheckName, in_place, reach};
use crate::pin::PinState;
use crate::plan::SessionSource;
use crate::reason::Reason;
use crate::situation::{
    AfterCompaction, Capability, FolderFact, ModelChange, PermissionsFact, PinFacts, Prefix,
    SessionFact, Situation, SnapshotFact,
};
use crate::usage::Context;

pub(super) const COUNT: usize = GUARDS.len();

type Guard = for<'a> fn(&Situation<'a>) -> Answer<'a>;

/// Answer of a guard with its evidence: passed, not applicable, or a reason not to resume.
enum Answer<'a> {
    Ok(Evidence<'a>),
    Skip,
    No(Reason, Evidence<'a>),
    /// Nothing may run at all; not a reason against resuming (used by the permissions guard).
    Block(Evidence<'a>),
}

const GUARDS: [(CheckName, Guard); 17] = [
    (CheckName::Permissions, permissions),
    (CheckName::Turns, turns),
    (CheckName::Fresh, fresh),
    (CheckName::Capability, capability),
    (CheckName::Session, session),
    (CheckName::Breaker, breaker),
    (CheckName::History, history),
    (CheckName::Folder, folder),
    (CheckName::Runtime, runtime),
    (CheckName::Provider, provider),
    (CheckName::Context, context),
    (CheckName::Present, present),
    (CheckName::InUse, in_use),
    (CheckName::Bytes, bytes),
    (CheckName::Model, model),
    (CheckName::Compaction, compaction),
    (CheckName::Snapshot, snapshot),
];

pub(super) fn all<'a>(s: &Situation<'a>) -> ([Check<'a>; COUNT], Option<Reason>) {
    let mut refused = None;
    let checks = GUARDS.map(|(check, guard)| {
        let (ok, evidence) = match guard(s) {
            Answer::Ok(evidence) => (Some(true), evidence),
            Answer::Skip => (None, Evidence::NotApplicable),
            Answer::Block(evidence) => (Some(false), evidence),
            Answer::No(reason, evidence) => {
                refused.get_or_insert(reason);
                (Some(false), evidence)
            }
        };
        Check {
            check,
            ok,
            evidence,
        }
    });
    (checks, refused)
}

fn with_pin<'a>(s: &Situation<'a>, ask: impl FnOnce(&PinFacts<'a>) -> Answer<'a>) -> Answer<'a> {
    s.pin.as_ref().map_or(Answer::Skip, ask)
}

fn permissions<'a>(s: &Situation<'a>) -> Answer<'a> {
    match s.permissions {
        PermissionsFact::Expressible => Answer::Ok(Evidence::Permissions),
        PermissionsFact::Cannot(why) => Answer::Block(Evidence::Text(why)),
    }
}

fn turns<'a>(s: &Situation<'a>) -> Answer<'a> {
    let evidence = Evidence::Messages {
        messages: s.history.messages,
    };
    if s.history.answered {
        Answer::Ok(evidence)
    } else {
        Answer::No(Reason::FirstTurn, evidence)
    }
}

fn fresh<'a>(s: &Situation<'a>) -> Answer<'a> {
    match s.request.fresh {
        None => Answer::Ok(Evidence::Text("a resume is allowed")),
        Some(who) => Answer::No(Reason::FreshRequested, Evidence::Fresh(who)),
    }
}

fn capability<'a>(s: &Situation<'a>) -> Answer<'a> {
    match s.capability {
        Capability::Proven => Answer::Ok(Evidence::Text("resume proven on this binary")),
        Capability::Probed => Answer::Ok(Evidence::Text("this binary knows the resume flag")),
        Capability::Absent(why) => Answer::No(Reason::NoCapability, Evidence::Text(why)),
    }
}

fn session<'a>(s: &Situation<'a>) -> Answer<'a> {
    match &s.pin {
        None => Answer::No(
            Reason::NoSession,
            Evidence::Text("no session of this agent here"),
        ),
        Some(facts) => Answer::Ok(match facts.forked_from {
            None => Evidence::Session(&facts.pin.session),
            Some(conversation) => Evidence::Parent {
                session: &facts.pin.session,
                conversation,
            },
        }),
    }
}

fn breaker<'a>(s: &Situation<'a>) -> Answer<'a> {
    with_pin(s, |facts| match &facts.pin.state {
        PinState::Retired(why) => Answer::No(Reason::SessionRetired, Evidence::Text(why)),
        PinState::Open(_) | PinState::Confirmed => {
            let (failures, limit) = (facts.pin.failures, s.policy.breaker);
            let evidence = Evidence::Failures { failures, limit };
            if limit > 0 && failures >= limit {
                Answer::No(Reason::SessionRetired, evidence)
            } else {
                Answer::Ok(evidence)
            }
        }
    })
}

fn history<'a>(s: &Situation<'a>) -> Answer<'a> {
    with_pin(s, |facts| {
        let (seen, messages) = (facts.pin.seen.messages, s.history.messages);
        // A prefix cannot be longer than the history. If the facts claim that, they are wrong.
        let fits = seen <= messages && reach(facts).is_none_or(|(_, s)| s.messages <= messages);
        match facts.prefix {
            Prefix::Holds if fits => Answer::Ok(Evidence::Seen { seen, messages }),
            Prefix::Holds => {
                Answer::No(Reason::HistoryChanged, Evidence::Changed { seen, by: None })
            }
            Prefix::Changed { by } => {
                Answer::No(Reason::HistoryChanged, Evidence::Changed { seen, by })
            }
        }
    })
}

fn folder<'a>(s: &Situation<'a>) -> Answer<'a> {
    with_pin(s, |facts| {
        let missing = facts.session == SessionFact::Missing;
        // Files here that are not the session were left by an earlier stay on this machine.
        let away = missing || (facts.elsewhere && !in_place(facts));
        let restorable = matches!(facts.snapshot(), SnapshotFact::Usable { .. });
        match facts.folder {
            FolderFact::Same => Answer::Ok(Evidence::Text("same folder")),
            FolderFact::SameInode => Answer::Ok(Evidence::Text("same folder, moved")),
            FolderFact::SameCheckout => {
                Answer::Ok(Evidence::Text("same place in the same checkout"))
            }
            FolderFact::Other if s.request.relocate => {
                Answer::Ok(Evidence::Text("another folder, allowed by --relocate"))
            }
            FolderFact::Other if away && restorable => Answer::Ok(Evidence::Text(
                "another folder, on a machine without the session",
            )),
            FolderFact::Other => Answer::No(
                Reason::OtherFolder,
                Evidence::OtherFolder(&facts.pin.folder.path),
            ),
        }
    })
}

fn runtime<'a>(s: &Situation<'a>) -> Answer<'a> {
    with_pin(s, |facts| {
        let (wrote, now) = (&facts.pin.runtime, s.runtime);
        let evidence = Evidence::Runtime { wrote, now };
        if wrote.product != now.product || now.version.older_than(&wrote.version) {
            Answer::No(Reason::OtherRuntime, evidence)
        } else {
            Answer::Ok(evidence)
        }
    })
}

fn provider<'a>(s: &Situation<'a>) -> Answer<'a> {
    with_pin(s, |facts| match (&facts.pin.provider, facts.has_provider) {
        (None, _) => Answer::Skip,
        (Some(name), true) => Answer::Ok(Evidence::Text(name)),
        (Some(name), false) => Answer::No(Reason::OtherProvider, Evidence::Text(name)),
    })
}

fn context<'a>(s: &Situation<'a>) -> Answer<'a> {
    let of_model = |context: Context| Context {
        window: s.window.unwrap_or(context.window),
        ..context
    };
    with_pin(s, |facts| match facts.pin.context.map(of_model) {
        Some(context) if context.window > 0 => {
            let limit = s.policy.context_threshold;
            let evidence = Evidence::Context { context, limit };
            if context.used as f64 >= limit * context.window as f64 {
                Answer::No(Reason::ContextFull, evidence)
            } else {
                Answer::Ok(evidence)
            }
        }
        _ => Answer::Ok(Evidence::ContextUnknown {
            limit: s.policy.context_threshold,
        }),
    })
}

/// Evidence that neither the session file nor its snapshot is left.
pub const GONE_AND_SWEPT: &str = "the session file is gone, and its snapshot was swept";

fn present<'a>(s: &Situation<'a>) -> Answer<'a> {
    with_pin(s, |facts| match (facts.session, facts.snapshot()) {
        (SessionFact::Missing, SnapshotFact::None) => Answer::No(
            Reason::SessionMissing,
            Evidence::Missing {
                path: facts.pin.files.first().map(|f| f.path.as_str()),
            },
        ),
        (SessionFact::Missing | SessionFact::Unknown, SnapshotFact::Unreachable(why)) => {
            Answer::No(Reason::SessionMissing, Evidence::Text(why))
        }
        // The guard of the snapshot refuses.
        (SessionFact::Missing, SnapshotFact::Expired) => Answer::Skip,
        (SessionFact::Missing, _) => {
            Answer::Ok(Evidence::Text("not here, but there is a snapshot"))
        }
        (SessionFact::Unknown, SnapshotFact::None) => Answer::No(
            Reason::SessionMissing,
            Evidence::Text("its files could not be looked at"),
        ),
        (SessionFact::Unknown, _) => Answer::Ok(Evidence::Text(
            "it could not be looked at, but there is a snapshot",
        )),
        _ => Answer::Ok(Evidence::Text("its files are here")),
    })
}

fn in_use<'a>(s: &Situation<'a>) -> Answer<'a> {
    with_pin(s, |facts| match (facts.forked_from, facts.in_use) {
        (Some(_), _) => Answer::Ok(Evidence::Text("a copy is written, not the session itself")),
        (None, None) if !facts.writers_visible => Answer::Ok(Evidence::Text(
            "unknown: the agent leaves no trace of who has it open",
        )),
        (None, None) => Answer::Ok(Evidence::Text("nobody else is writing it")),
        (None, Some(pid)) => Answer::No(Reason::InUse, Evidence::InUse { pid }),
    })
}

fn bytes<'a>(s: &Situation<'a>) -> Answer<'a> {
    with_pin(s, |facts| {
        let replaceable = matches!(facts.snapshot(), SnapshotFact::Usable { .. });
        let bad = |reason, text| {
            if replaceable {
                Answer::Ok(Evidence::Text(
                    "not as confirmed, but there is a verified snapshot",
                ))
            } else {
                Answer::No(reason, Evidence::Text(text))
            }
        };
        let in_place = in_place(facts);
        match facts.session {
            _ if in_place && facts.forked_from.is_some() => {
                Answer::Ok(Evidence::Text("what was confirmed of it is there"))
            }
            SessionFact::Untouched if in_place => {
                Answer::Ok(Evidence::Text("untouched since confirmed"))
            }
            SessionFact::Verified if in_place => {
                Answer::Ok(Evidence::Text("read again, equal to the byte"))
            }
            SessionFact::Missing | SessionFact::Unknown => Answer::Skip,
            SessionFact::Damaged => bad(
                Reason::SessionDamaged,
                "shorter than confirmed, or other bytes",
            ),
            SessionFact::Changed => bad(
                Reason::SessionChanged,
                "somebody went on with it outside rejoin",
            ),
            SessionFact::Untouched | SessionFact::Verified | SessionFact::Dirty => bad(
                Reason::SessionDirty,
                "an unfinished turn left something in it",
            ),
        }
    })
}

fn model<'a>(s: &Situation<'a>) -> Answer<'a> {
    with_pin(s, |facts| match (facts.pin.model.as_deref(), s.model) {
        (Some(wrote), Some(now)) if wrote != now => {
            let evidence = Evidence::Model { wrote, now };
            match s.policy.model_change {
                ModelChange::Resume => Answer::Ok(evidence),
                ModelChange::Reseed => Answer::No(Reason::ModelChanged, evidence),
            }
        }
        (Some(wrote), _) => Answer::Ok(Evidence::Text(wrote)),
        (None, _) => Answer::Skip,
    })
}

fn compaction<'a>(s: &Situation<'a>) -> Answer<'a> {
    with_pin(s, |facts| {
        // A snapshot may be older than the compaction.
        let (compacted, seen) = match reach(facts) {
            Some((SessionSource::Snapshot, seen)) => (seen.summarised > 0, seen),
            Some((SessionSource::InPlace | SessionSource::Live | SessionSource::Fork, _))
            | None => (facts.pin.compacted, facts.pin.seen),
        };
        let evidence = Evidence::Compacted {
            summarised: seen.summarised,
            messages: seen.messages,
        };
        match (compacted, s.policy.after_compaction) {
            (false, _) => Answer::Ok(Evidence::Text("not compacted")),
            (true, AfterCompaction::Resume) => Answer::Ok(evidence),
            (true, AfterCompaction::Reseed) => Answer::No(Reason::Compacted, evidence),
        }
    })
}

fn snapshot<'a>(s: &Situation<'a>) -> Answer<'a> {
    with_pin(s, |facts| {
        if in_place(facts) {
            return Answer::Skip;
        }
        match facts.snapshot() {
            SnapshotFact::None | SnapshotFact::Unreachable(_) => Answer::Skip,
            SnapshotFact::Usable { .. } => Answer::Ok(Evidence::Text("verified")),
            SnapshotFact::Damaged => Answer::No(
                Reason::SnapshotDamaged,
                Evidence::Text("the snapshot does not match its hashes"),
            ),
            SnapshotFact::Expired if facts.session == SessionFact::Missing => {
                Answer::No(Reason::SnapshotExpired, Evidence::Text(GONE_AND_SWEPT))
            }
            SnapshotFact::Expired => Answer::No(
                Reason::SnapshotExpired,
                Evidence::Text("the snapshot was swept"),
            ),
        }
    })
}
