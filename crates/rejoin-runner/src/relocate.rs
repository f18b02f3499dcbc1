//! Puts a session where the CLI will look for it, when the folder it belongs to has moved.

use rejoin_agents::{Moving, SessionAt};
use rejoin_core::{Envelope, FileMark, Pin, SessionFact, SessionId};
use rejoin_hub::{Clock, Confirmed};

use crate::error::{Error, Result};
use crate::foreign_file;
use crate::look::Looked;
use crate::session::Sessions;
use crate::whole::{keep_aside, put_copy};

/// The session as confirmed. If the folder moved, it is brought along; if this clock is behind the
/// one it was written by, its times are.
pub(crate) async fn bring_here(
    looked: &Looked,
    pin: &Pin,
    session: &SessionId,
    clock: Clock,
) -> Result<Confirmed> {
    let mark = looked.session.as_ref().and_then(|s| s.mark.clone());
    let mark = mark.ok_or_else(|| Error::Internal("a session without a file".into()))?;
    brought(looked, pin, session, mark, clock).await
}

/// A session that was put where the CLI will look is told where and when that is.
pub(crate) async fn told_where(looked: &Looked, pin: &Pin, clock: Clock) -> Result<Confirmed> {
    let mark = pin.files.first().cloned();
    let mark = mark.ok_or_else(|| Error::Internal("a session without a file".into()))?;
    brought(looked, pin, &pin.session, mark, clock).await
}

/// Moves a session to where a run with these permissions finds it whole.
pub(crate) fn out_of_the_way(
    looked: &Looked,
    mark: FileMark,
    envelope: &Envelope,
) -> Result<FileMark> {
    let Some(path) = looked.adapter.out_of_the_way(&mark.path, envelope) else {
        return Ok(mark);
    };
    let from = looked.home.join(&mark.path);
    foreign_file::beneath(&looked.home, &path)
        .and_then(|to| {
            keep_aside(&to, looked.adapter.records(), true)?;
            fs_err::rename(from, to)
        })
        .map_err(Error::io("moving the session"))?;
    Ok(FileMark { path, ..mark })
}

async fn brought(
    looked: &Looked,
    pin: &Pin,
    session: &SessionId,
    mark: FileMark,
    clock: Clock,
) -> Result<Confirmed> {
    let (path, now) = (mark.path.clone(), clock.now() / 1000);
    let moved = Moved {
        from: pin.folder.path.clone(),
        to: looked.folder.path.clone(),
        session: session.clone(),
        pin: pin.id.to_string(),
    };
    let bring = move |s: Sessions<'_>| s.make_ready(bring(s, &moved, mark)?, now);
    let file = looked.sessions().apart(&path, bring).await;
    let file = file.map_err(Error::io("bringing the session to this folder and time"))?;
    Ok(Confirmed::of(pin, file))
}

/// A session on its way from one folder to another, or to the same.
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
        // A session that says itself where it belongs may say so wrongly also here: after a turn in
        // another folder that was taken back.
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

/// Never over another file: one that differs is kept aside.
fn copy_session(sessions: &Sessions<'_>, from: &str, to: &FileMark) -> std::io::Result<()> {
    let target = foreign_file::beneath(sessions.home, &to.path)?;
    if sessions.compare(to) == SessionFact::Verified {
        return Ok(());
    }
    keep_aside(&target, sessions.adapter.records(), true)?;
    put_copy(&sessions.home.join(from), &target)
}
