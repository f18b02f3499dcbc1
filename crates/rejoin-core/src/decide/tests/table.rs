//! Cases of the matrix, and the table of reason codes as a list of predicates over them. The
//! table says which results the guards must find, not how.

use std::cmp::Ordering;

use crate::decide::{Blocker, CheckName};
use crate::ids::SessionId;
use crate::plan::{CatchUp, Prompt, SessionSource, Transcript, TrustedSession, TurnPlan};
use crate::reason::Reason;
use crate::situation::{
    AfterCompaction, Capability, FolderFact, Fresh, ModelChange, PermissionsFact, Prefix,
    SessionFact,
};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Before {
    Answered,
    Nothing,
    Unanswered,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum PinIs {
    Confirmed,
    Open,
    Retired,
    Absent,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Failures {
    Below,
    AtLimit,
    Above,
    NoLimit,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Answers {
    Same,
    Older,
    Newer,
    OtherProduct,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Shot {
    No,
    Verified,
    Damaged,
    Expired,
    Unreachable,
    /// Impossible facts: the snapshot has seen more messages than exist.
    LongerThanHistory,
}

/// Name of an axis, number of its values, and a setter.
pub(super) type Axis = (&'static str, usize, fn(&mut Case, usize));

/// A case has one value on each axis. With the first value a session is resumed; the second is a
/// reason against it.
macro_rules! axes {
    ($($axis:ident: $type:ty = $values:expr;)+) => {
        #[derive(Debug, Clone, Copy)]
        pub(super) struct Case { $(pub(super) $axis: $type),+ }

        impl Case {
            pub(super) fn fine() -> Self {
                Self { $($axis: $values[0]),+ }
            }
        }

        pub(super) const AXES: &[Axis] =
            &[$((stringify!($axis), $values.len(), |case, value| case.$axis = $values[value])),+];
    };
}

axes! {
    history: Before = [Before::Answered, Before::Unanswered, Before::Nothing];
    fresh: Option<Fresh> = [None, Some(Fresh::Asked), Some(Fresh::Retry), Some(Fresh::Always)];
    capability: Capability<'static> =
        [Capability::Proven, Capability::Absent("no --resume"), Capability::Probed];
    pin: PinIs = [PinIs::Confirmed, PinIs::Open, PinIs::Retired, PinIs::Absent];
    failures: Failures =
        [Failures::Below, Failures::AtLimit, Failures::Above, Failures::NoLimit];
    prefix: Prefix =
        [Prefix::Holds, Prefix::Changed { by: Some(crate::HistoryChange::Removed(2)) }, Prefix::Changed { by: None }];
    seen: Ordering = [Ordering::Less, Ordering::Greater, Ordering::Equal];
    folder: FolderFact =
        [FolderFact::Same, FolderFact::Other, FolderFact::SameInode, FolderFact::SameCheckout];
    relocate: bool = [false, true];
    runtime: Answers = [Answers::Same, Answers::Older, Answers::Newer, Answers::OtherProduct];
    provider: Option<bool> = [Some(true), Some(false), None];
    context: Option<(u64, u64)> =
        [Some((79, 100)), Some((80, 100)), Some((101, 100)), Some((80, 0)), None];
    session: SessionFact = [
        SessionFact::Untouched, SessionFact::Missing, SessionFact::Dirty, SessionFact::Damaged,
        SessionFact::Changed, SessionFact::Verified, SessionFact::Unknown,
    ];
    snapshot: Shot =
        [Shot::No, Shot::Damaged, Shot::Verified, Shot::Expired, Shot::LongerThanHistory, Shot::Unreachable];
    elsewhere: bool = [false, true];
    in_use: Option<u32> = [None, Some(77)];
    // Model of the session, and requested model.
    model: (Option<&'static str>, Option<&'static str>) =
        [(Some("opus"), Some("opus")), (Some("opus"), Some("haiku")), (Some("opus"), None), (None, Some("opus"))];
    model_change: ModelChange = [ModelChange::Resume, ModelChange::Reseed];
    compacted: bool = [false, true];
    after_compaction: AfterCompaction = [AfterCompaction::Resume, AfterCompaction::Reseed];
    no_reseed: bool = [false, true];
    permissions: PermissionsFact<'static> =
        [PermissionsFact::Expressible, PermissionsFact::Cannot("no way to deny a tool")];
}

impl Case {
    pub(super) fn pinned(&self) -> bool {
        self.pin != PinIs::Absent
    }

    pub(super) fn gone(&self) -> bool {
        matches!(self.session, SessionFact::Missing | SessionFact::Unknown)
    }

    /// True if neither the session file nor its snapshot is left.
    pub(super) fn swept(&self) -> bool {
        self.session == SessionFact::Missing && self.snapshot == Shot::Expired
    }

    pub(super) fn intact(&self) -> bool {
        matches!(self.session, SessionFact::Untouched | SessionFact::Verified)
    }

    pub(super) fn trusted_in_place(&self) -> bool {
        self.intact() && self.pin != PinIs::Open
    }

    pub(super) fn replaceable(&self) -> bool {
        matches!(self.snapshot, Shot::Verified | Shot::LongerThanHistory)
    }

    /// True if no snapshot can be used.
    fn unsaved(&self) -> bool {
        matches!(self.snapshot, Shot::No | Shot::Unreachable)
    }

    /// True if the files here, if any, are not the session that continued elsewhere.
    fn away(&self) -> bool {
        self.session == SessionFact::Missing || (self.elsewhere && !self.trusted_in_place())
    }

    pub(super) fn needs_snapshot(&self) -> bool {
        self.pinned() && !self.trusted_in_place() && !self.unsaved()
    }

    pub(super) fn messages(&self) -> u64 {
        match self.history {
            Before::Nothing => 0,
            Before::Unanswered => 3,
            Before::Answered => 6,
        }
    }

    pub(super) fn seen(&self) -> u64 {
        match self.seen {
            Ordering::Less => self.messages().saturating_sub(2),
            Ordering::Equal => self.messages(),
            Ordering::Greater => self.messages() + 1,
        }
    }

    /// Number of messages that the snapshot has seen. An older snapshot has seen fewer than the
    /// session.
    pub(super) fn snapshot_seen(&self) -> u64 {
        match self.snapshot {
            Shot::LongerThanHistory => self.messages() + 1,
            Shot::No | Shot::Verified | Shot::Damaged | Shot::Expired | Shot::Unreachable => {
                self.seen() / 2
            }
        }
    }
}

pub(super) type When = fn(&Case) -> bool;

macro_rules! table {
    ($c:ident: $($reason:ident, $check:ident, if $applies:expr => $fails:expr;)+) => {
        /// Reason code, check that shows it, condition under which the check applies, and condition
        /// under which it fails with this reason. `rejected` is missing: it only occurs at run
        /// time.
        pub(super) const TABLE: &[(Reason, CheckName, When, When)] =
            &[$((Reason::$reason, CheckName::$check, |$c| $applies, |$c| $fails)),+];
    };
}

table! { c:
    FirstTurn, Turns, if always(c) => c.history != Before::Answered;
    FreshRequested, Fresh, if always(c) => c.fresh.is_some();
    NoCapability, Capability, if always(c) => c.capability == Capability::Absent("no --resume");
    NoSession, Session, if always(c) => !c.pinned();
    SessionRetired, Breaker, if c.pinned() =>
        c.pin == PinIs::Retired || matches!(c.failures, Failures::AtLimit | Failures::Above);
    HistoryChanged, History, if c.pinned() =>
        c.prefix != Prefix::Holds || c.seen == Ordering::Greater
            || (c.snapshot == Shot::LongerThanHistory && !c.trusted_in_place());
    OtherFolder, Folder, if c.pinned() =>
        c.folder == FolderFact::Other && !c.relocate
            && !(c.away() && c.replaceable());
    OtherRuntime, Runtime, if c.pinned() =>
        matches!(c.runtime, Answers::Older | Answers::OtherProduct);
    OtherProvider, Provider, if c.pinned() && c.provider.is_some() => c.provider == Some(false);
    ContextFull, Context, if c.pinned() => matches!(c.context, Some((80 | 101, 100)));
    SessionMissing, Present, if c.pinned() && !c.swept() => c.gone() && c.unsaved();
    InUse, InUse, if c.pinned() => c.in_use.is_some();
    SessionDirty, Bytes, if c.pinned() && !c.gone() => !c.replaceable()
        && (c.session == SessionFact::Dirty || (c.intact() && c.pin == PinIs::Open));
    SessionDamaged, Bytes, if c.pinned() && !c.gone() =>
        !c.replaceable() && c.session == SessionFact::Damaged;
    SessionChanged, Bytes, if c.pinned() && !c.gone() =>
        !c.replaceable() && c.session == SessionFact::Changed;
    ModelChanged, Model, if c.pinned() && c.model.0.is_some() =>
        c.model == (Some("opus"), Some("haiku")) && c.model_change == ModelChange::Reseed;
    Compacted, Compaction, if c.pinned() =>
        c.compacted && c.after_compaction == AfterCompaction::Reseed;
    SnapshotDamaged, Snapshot, if c.needs_snapshot() => c.snapshot == Shot::Damaged;
    SnapshotExpired, Snapshot, if c.needs_snapshot() => c.snapshot == Shot::Expired;
}

fn always(_: &Case) -> bool {
    true
}

pub(super) fn expected_checks(case: &Case) -> Vec<(CheckName, Option<bool>)> {
    let possible = case.permissions == PermissionsFact::Expressible;
    let mut checks = vec![(CheckName::Permissions, Some(possible))];
    for (_, name, applies, fails) in TABLE {
        let ok = applies(case).then(|| !fails(case));
        match checks.last_mut() {
            Some((last, so_far)) if last == name => {
                *so_far = so_far.and_then(|a| ok.map(|b| a && b));
            }
            _ => checks.push((*name, ok)),
        }
    }
    checks
}

/// Returns the expected plan: a hold; a bare start without history; a session with exactly the
/// messages it has not seen; or a transcript of everything without a session.
pub(super) fn expected_plan(case: &Case) -> Result<TurnPlan, Blocker> {
    let prompt = Prompt(());
    let messages = case.messages();
    if case.permissions != PermissionsFact::Expressible {
        return Err(Blocker::Permissions);
    }
    if case.history == Before::Nothing {
        return Ok(TurnPlan::Start { prompt });
    }
    let first = TABLE
        .iter()
        .find(|(_, _, applies, fails)| applies(case) && fails(case));
    match first.map(|row| row.0) {
        None => {
            let (way, after) = if case.trusted_in_place() {
                (SessionSource::InPlace, case.seen())
            } else {
                (SessionSource::Snapshot, case.snapshot_seen())
            };
            Ok(TurnPlan::Resume {
                session: TrustedSession {
                    id: SessionId::new("s-1").unwrap(),
                    way,
                },
                catch_up: CatchUp {
                    summarised: u64::from(case.compacted).min(after),
                    after,
                    messages: messages - after,
                },
                prompt,
            })
        }
        Some(Reason::InUse) => Err(Blocker::InUse { pid: 77 }),
        Some(why) if case.no_reseed => Err(Blocker::WouldReseed { why }),
        Some(why) => Ok(TurnPlan::Reseed {
            why,
            transcript: Transcript { messages },
            prompt,
        }),
    }
}
