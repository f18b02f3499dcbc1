//! Moves a session to where the CLI will look for it, when its folder has moved.

use rejoin_agents::{Moving, SessionAt};
use rejoin_core::{FileMark, Permissions, Pin, SessionFact, SessionId};
use rejoin_hub::{Clock, Confirmed};

use crate::atomic_file::{keep_aside, put_copy};
use crate::error::{Error, Result};
use crate::foreign_file;
use crate::inspect::Inspection;
use crate::session::Sessions;

/// Returns the confirmed session, ready for use. If the folder moved, the session is moved too. If
/// this clock is behind the one that wrote the session, its times are adjusted.
pub(crate) async fn bring_here(
    inspection: &Inspection,
    pin: &Pin,
    session: &SessionId,
    clock: Clock,
) -> Result<Confirmed> {
    let mark = inspection.session.as_ref().and_then(|s| s.mark.clone());
    let mark = mark.ok_or_else(|| Error::Internal("a session without a file".into()))?;
    brought(inspection, pin, session, mark, clock).await
}

/// Adapts a restored session to its present folder and time.
pub(crate) async fn told_where(
    inspection: &Inspection,
    pin: &Pin,
    clock: Clock,
) -> Result<Confirmed> {
    let mark = pin.files.first().cloned();
    let mark = mark.ok_or_else(|| Error::Internal("a session without a file".into()))?;
    brought(inspection, pin, &pin.session, mark, clock).await
}

/// Moves a session to a path at which a run with these permissions finds it complete.
pub(crate) fn out_of_the_way(
    inspection: &Inspection,
    mark: FileMark,
    permissions: &Permissions,
) -> Result<FileMark> {
    let repair = inspection.adapter.capabilities().repair;
    let moved = repair.and_then(|repair| repair.relocate_for(&mark.path, permissions));
    let Some(path) = moved else {
        return Ok(mark);
    };
    let from = inspection.home.join(&mark.path);
    foreign_file::beneath(&inspection.home, &path)
        .and_then(|to| {
            keep_aside(&to, inspection.adapter.profile().records, true)?;
            fs_err::rename(from, to)
        })
        .map_err(Error::io("moving the session"))?;
    Ok(FileMark { path, ..mark })
}

async fn brought(
    inspection: &Inspection,
    pin: &Pin,
    session: &SessionId,
    mark: FileMark,
    clock: Clock,
) -> Result<Confirmed> {
    let (path, now) = (mark.path.clone(), clock.now() / 1000);
    let moved = Moved {
        from: pin.folder.path.clone(),
        to: inspection.folder.path.clone(),
        session: session.clone(),
        pin: pin.id.to_string(),
    };
    let bring = move |s: Sessions<'_>| s.make_ready(bring(s, &moved, mark)?, now);
    let file = inspection.sessions().on_worker(&path, bring).await;
    let file = file.map_err(Error::io("bringing the session to this folder and time"))?;
    Ok(Confirmed::of(pin, file))
}

/// Session that moves from one folder to another, or stays in the same.
struct Moved {
    from: String,
    to: String,
    session: SessionId,
    pin: String,
}

fn bring(sessions: Sessions<'_>, moved: &Moved, mark: FileMark) -> std::io::Result<FileMark> {
    let at = SessionAt {
        folder: &moved.to,
        session: &moved.session,
        pin: &moved.pin,
    };
    let read = |file: &str| foreign_file::read_setting(sessions.home.join(file));
    let copied = |path: String| {
        let file = FileMark {
            path,
            ..mark.clone()
        };
        if file.path != mark.path {
            copy_session(&sessions, &mark.path, &file)?;
        }
        Ok(file)
    };
    match sessions.adapter.moving(&at, &read) {
        // A session that records its folder may record the wrong one even here: after a turn in
        // another folder that was undone.
        Moving::Rewrite(statements) => sessions.rewrite(mark, statements, &moved.to),
        _ if moved.from == moved.to => Ok(mark),
        Moving::Stays => Ok(mark),
        Moving::To(path) => copied(path),
        Moving::Into(folder) => {
            let name = mark.path.rsplit('/').next().unwrap_or(&mark.path);
            copied(format!("{folder}/{name}"))
        }
    }
}

/// Copies the session. A different file at its place is moved aside, never overwritten.
fn copy_session(sessions: &Sessions<'_>, from: &str, to: &FileMark) -> std::io::Result<()> {
    let target = foreign_file::beneath(sessions.home, &to.path)?;
    if sessions.compare(to) == SessionFact::Verified {
        return Ok(());
    }
    keep_aside(&target, sessions.adapter.profile().records, true)?;
    put_copy(&sessions.home.join(from), &target)
}
