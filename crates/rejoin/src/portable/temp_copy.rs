//! An archive is read twice: what comes through a pipe is put into a file first.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use fs_err::os::unix::fs::OpenOptionsExt;

use rejoin_errors::{CommandError, Result};

/// More than that is no archive of a conversation.
const MOST: u64 = 16 * 1024 * 1024 * 1024;

/// A file, or what comes on stdin (`-`), from its beginning.
pub(crate) fn seekable(name: &str, home: &Path) -> Result<std::fs::File> {
    if name == "-" {
        return spooled(&mut io::stdin().lock(), home, "stdin");
    }
    let open = fs_err::File::open(name);
    let (mut file, path) = open.map_err(|e| unreadable(&e))?.into_parts();
    let meta = file.metadata().map_err(|e| unreadable(&e))?;
    if meta.is_dir() {
        return Err(CommandError::usage(format!("{name} is a folder")));
    }
    if meta.is_file() {
        return Ok(file);
    }
    spooled(&mut file, home, &path.display().to_string())
}

/// Copies the input to an unlinked file that no other user can open.
fn spooled(from: &mut dyn Read, home: &Path, name: &str) -> Result<std::fs::File> {
    let failed = |e: io::Error| CommandError::unavailable(format!("{name} cannot be kept: {e}"));
    let path = home.join(format!("import-{}.tmp", std::process::id()));
    let _left = fs_err::remove_file(&path);
    let file = fs_err::OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path);
    let mut file = file.map_err(failed)?.into_parts().0;
    fs_err::remove_file(&path).map_err(failed)?;
    let mut from = from.take(MOST);
    let mut bytes = vec![0; 256 * 1024];
    let mut first = true;
    loop {
        let got = from.read(&mut bytes).map_err(|e| unreadable(&e))?;
        // What begins like nothing of ours is not waited for.
        if got == 0 || (first && !begins_well(&bytes[..got])) {
            break;
        }
        first = false;
        file.write_all(&bytes[..got]).map_err(failed)?;
    }
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    Ok(file)
}

fn begins_well(bytes: &[u8]) -> bool {
    let magic = b"rejoin archive ";
    let both = bytes.len().min(magic.len());
    bytes[..both] == magic[..both]
}

fn unreadable(error: &io::Error) -> CommandError {
    CommandError::usage(format!("the archive cannot be read: {error}"))
        .try_this("rejoin import FILE")
}
