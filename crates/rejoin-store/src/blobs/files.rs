//! The `file:` backend: private files in private folders, each complete or absent.

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::time::UNIX_EPOCH;

use fs_err::os::unix::fs::OpenOptionsExt as _;

use super::objects::{Failed, ListedObject, ObjectName, PAGE};

/// Prefix of half-written files. A sweep removes those that were never finished.
const UNFINISHED: &str = ".unfinished-";

/// Runs a blocking call on another thread: a disk or a network share may be slow.
pub(super) async fn blocking<T: Send + 'static>(
    call: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, Failed> {
    match tokio::task::spawn_blocking(call).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(failed(&error)),
        Err(_) => Err(Failed::Passing("the call was given up".to_owned())),
    }
}

fn failed(error: &std::io::Error) -> Failed {
    let passing = [
        ErrorKind::Interrupted,
        ErrorKind::WouldBlock,
        ErrorKind::TimedOut,
    ];
    if passing.contains(&error.kind()) {
        Failed::Passing(error.to_string())
    } else {
        Failed::Refused(error.to_string())
    }
}

pub(super) fn put(path: &Path, body: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    make_folder(folder)?;
    let unfinished = folder.join(format!("{UNFINISHED}{:016x}", getrandom::u64()?));
    let written = write(&unfinished, body).and_then(|()| fs_err::rename(&unfinished, path));
    if let Err(error) = written {
        drop(fs_err::remove_file(&unfinished));
        return Err(error);
    }
    sync_folder(folder)
}

fn write(path: &Path, body: &[u8]) -> std::io::Result<()> {
    let mut options = fs_err::OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(body)?;
    file.sync_all()
}

/// Creates a folder. The folder of a new name must be synced for the name to last, and so upwards.
fn make_folder(folder: &Path) -> std::io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let mut builder = std::fs::DirBuilder::new();
    builder
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|error| {
            let why = format!("failed to create directory `{}`: {error}", folder.display());
            std::io::Error::new(error.kind(), why)
        })?;
    folder.parent().map_or(Ok(()), sync_folder)
}

fn sync_folder(folder: &Path) -> std::io::Result<()> {
    fs_err::File::open(folder)?.sync_all()
}

pub(super) fn get(path: &Path, at_most: usize) -> std::io::Result<Option<Vec<u8>>> {
    let Some(file) = there(fs_err::File::open(path))? else {
        return Ok(None);
    };
    let mut body = Vec::new();
    // One byte more than allowed shows the caller that the object is too long.
    file.take(at_most as u64 + 1).read_to_end(&mut body)?;
    Ok(Some(body))
}

pub(super) fn size(path: &Path) -> std::io::Result<Option<u64>> {
    Ok(there(fs_err::metadata(path))?.map(|meta| meta.len()))
}

pub(super) fn delete(path: &Path) -> std::io::Result<()> {
    there(fs_err::remove_file(path)).map(drop)
}

fn there<T>(found: std::io::Result<T>) -> std::io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) fn list(root: &Path, after: Option<&str>) -> std::io::Result<Vec<ListedObject>> {
    let mut found = Vec::new();
    for folder in names(&root.join("chunks"))? {
        let under = root.join("chunks").join(&folder);
        let last = format!("chunks/{folder}/g");
        if after.is_some_and(|after| after > last.as_str()) || !under.is_dir() {
            continue;
        }
        for file in names(&under)? {
            let key = format!("chunks/{folder}/{file}");
            let Some(name) = ObjectName::of(&key) else {
                continue;
            };
            if after.is_some_and(|after| after >= key.as_str()) {
                continue;
            }
            // Deleted meanwhile by another sweep.
            let Some(meta) = there(fs_err::metadata(under.join(&file)))? else {
                continue;
            };
            let at = written_at(&meta)?;
            found.push(ListedObject {
                name,
                bytes: meta.len(),
                at,
            });
            if found.len() == PAGE {
                return Ok(found);
            }
        }
    }
    Ok(found)
}

pub(super) fn tidy(root: &Path, before: i64) -> std::io::Result<()> {
    for folder in names(&root.join("chunks"))? {
        let under = root.join("chunks").join(folder);
        if !under.is_dir() {
            continue;
        }
        for file in names(&under)? {
            let path = under.join(&file);
            let old = || written_at(&fs_err::metadata(&path)?).map(|at| at < before);
            if file.starts_with(UNFINISHED) && there(old())?.unwrap_or(false) {
                delete(&path)?;
            }
        }
    }
    Ok(())
}

fn written_at(meta: &std::fs::Metadata) -> std::io::Result<i64> {
    let at = meta.modified()?.duration_since(UNIX_EPOCH);
    Ok(at.map_or(0, |at| at.as_micros() as i64))
}

/// Returns the names in a folder in order. Empty if the folder does not exist.
fn names(folder: &Path) -> std::io::Result<Vec<String>> {
    let Some(entries) = there(fs_err::read_dir(folder))? else {
        return Ok(Vec::new());
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry?.file_name().into_string());
    }
    names.sort_unstable();
    Ok(names)
}
