//! Puts a session where the CLI will look for it, when the folder it belongs to has moved.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rejoin_core::{FileMark, Pin, SessionFact, SessionId};
use rejoin_hub::Confirmed;

use crate::error::{Error, Result};
use crate::look::Looked;
use crate::marks;

/// The session as confirmed. If the folder moved, a copy is put where the CLI will look for it.
pub(crate) fn bring_here(looked: &Looked, pin: &Pin, session: &SessionId) -> Result<Confirmed> {
    let mark = looked.session.as_ref().and_then(|s| s.mark.clone());
    let mark = mark.ok_or_else(|| Error::Internal("a session without a file".into()))?;
    let here = looked.adapter.session_file(&looked.folder.path, session);
    let file = FileMark {
        path: here,
        ..mark.clone()
    };
    if file.path != mark.path {
        copy_session(&looked.home, &mark.path, &file)
            .map_err(Error::io("bringing the session to this folder"))?;
    }
    Ok(Confirmed {
        file,
        cursor: pin.cursor.clone(),
        total: pin.total,
        failures: pin.failures,
        compacted: pin.compacted,
    })
}

/// Never over another file: one that differs is kept aside.
fn copy_session(home: &Path, from: &str, to: &FileMark) -> std::io::Result<()> {
    let target = home.join(&to.path);
    if marks::compare(home, to) == SessionFact::Verified {
        return Ok(());
    }
    if let Some(parent) = target.parent() {
        fs_err::create_dir_all(parent)?;
    }
    if target.exists() {
        let stamp = fs_err::metadata(&target).map_or(0, |m| m.mtime());
        fs_err::rename(
            &target,
            target.with_extension(format!("jsonl.aside-{stamp}")),
        )?;
    }
    let temp = target.with_extension("jsonl.rejoin-tmp");
    fs_err::copy(home.join(from), &temp)?;
    fs_err::File::open(&temp)?.sync_all()?;
    fs_err::rename(&temp, &target)
}
