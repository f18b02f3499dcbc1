//! Marks the bytes of a session file when they are confirmed, compares the file with its mark before
//! use, and cuts it back to it.
//!
//! The hash is a fold over blocks, so a file that grew costs its last block and the added bytes, not
//! the whole file; an unchanged file costs one `stat`.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rejoin_core::{FileMark, SessionFact};

use crate::foreign_file;
pub(crate) use line::Line;

mod line;

const BLOCK: usize = 256 * 1024;

/// Fold over the whole blocks, and hash of the bytes after them.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Hash {
    blocks: [u8; 32],
    rest: [u8; 32],
}

impl Hash {
    fn text(&self) -> String {
        format!(
            "{}-{}",
            blake3::Hash::from(self.blocks).to_hex(),
            blake3::Hash::from(self.rest).to_hex()
        )
    }

    fn parse(text: &str) -> Option<Self> {
        let (blocks, rest) = text.split_once('-')?;
        let read = |hex: &str| blake3::Hash::from_hex(hex).ok().map(|h| *h.as_bytes());
        Some(Self {
            blocks: read(blocks)?,
            rest: read(rest)?,
        })
    }
}

/// Returns true if the file did not change since it was marked, according to one `stat`.
pub(crate) fn is_untouched(home: &Path, mark: &FileMark) -> bool {
    let meta = fs_err::symlink_metadata(home.join(&mark.path));
    meta.is_ok_and(|meta| meta.is_file() && meta.len() == mark.length && stat(&meta) == mark.stat)
}

/// Compares a session file with its mark.
pub fn compare(home: &Path, mark: &FileMark) -> SessionFact {
    let path = home.join(&mark.path);
    let Ok(meta) = fs_err::symlink_metadata(&path) else {
        return SessionFact::Missing;
    };
    if !meta.is_file() {
        return SessionFact::Damaged;
    }
    if meta.len() == mark.length && stat(&meta) == mark.stat {
        return SessionFact::Untouched;
    }
    if meta.len() < mark.length {
        return SessionFact::Damaged;
    }
    match begins_with(&path, mark) {
        Err(_) => SessionFact::Unknown,
        Ok(false) => SessionFact::Damaged,
        Ok(true) if meta.len() == mark.length => SessionFact::Verified,
        Ok(true) => SessionFact::Changed,
    }
}

/// Reads the lines that were added to a file since `before` (all lines if there is no mark), and
/// marks the whole file. In a line that is longer than any text a model could have seen, long texts
/// are cut. Fails if the bytes before have changed.
pub fn read_on(
    home: &Path,
    path: &str,
    before: Option<&FileMark>,
    mut line: impl FnMut(&[u8]),
) -> io::Result<FileMark> {
    let mut file = foreign_file::open(home.join(path))?;
    let from = before.map_or(0, |m| m.length);
    let known = before.and_then(|m| Hash::parse(&m.hash));
    // The beginning can be skipped only in the same file.
    let meta = file.file().metadata()?;
    let same = before.is_some_and(|m| (m.stat.0, m.stat.1) == (meta.dev(), meta.ino()));
    let taken = known.filter(|_| same);
    let start = taken.map_or(0, |_| from - from % BLOCK as u64);
    file.seek(SeekFrom::Start(start))?;
    let mut fold = Fold {
        blocks: taken.map_or([0; 32], |h| h.blocks),
        block: Vec::with_capacity(BLOCK),
    };
    let (mut at, mut pending) = (start, Line::default());
    let mut buffer = vec![0; BLOCK];
    loop {
        let want = if at < from {
            buffer.len().min((from - at) as usize)
        } else {
            buffer.len()
        };
        let got = file.read(&mut buffer[..want])?;
        if got == 0 {
            break;
        }
        let bytes = &buffer[..got];
        fold.add(bytes);
        at += got as u64;
        if at == from && known.is_some_and(|k| fold.finish() != k) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "what was confirmed has changed",
            ));
        }
        if at <= from {
            continue;
        }
        for piece in bytes.split_inclusive(|b| *b == b'\n') {
            pending.add(piece);
            if piece.ends_with(b"\n") {
                pending.take(&mut line);
            }
        }
    }
    if at < from {
        return Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "it is shorter than what was confirmed",
        ));
    }
    if !pending.is_empty() {
        pending.take(&mut line);
    }
    let meta = file.file().metadata()?;
    if meta.len() != at {
        return Err(io::Error::new(
            io::ErrorKind::ResourceBusy,
            "it is still being written",
        ));
    }
    Ok(FileMark {
        path: path.to_owned(),
        length: at,
        hash: fold.finish().text(),
        stat: stat(&meta),
    })
}

/// Cuts a file back to its confirmed bytes. Fails, changing nothing, if they are not there.
pub fn cut_back(home: &Path, mark: &FileMark) -> io::Result<FileMark> {
    let path = home.join(&mark.path);
    if !begins_with(&path, mark)? {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "what was confirmed has changed",
        ));
    }
    let mut options = fs_err::OpenOptions::new();
    let file = foreign_file::open_to_change(&path, options.write(true))?;
    let meta = file.metadata()?;
    if meta.len() != mark.length {
        file.set_len(mark.length)?;
        file.sync_data()?;
    }
    let meta = file.metadata()?;
    Ok(FileMark {
        stat: stat(&meta),
        ..mark.clone()
    })
}

/// Copies the confirmed bytes, without anything that was added. Fails if they are not there.
pub fn copy_confirmed(home: &Path, mark: &FileMark, mut to: impl Write) -> io::Result<()> {
    let whole = each_confirmed(&home.join(&mark.path), mark, |bytes| to.write_all(bytes))?;
    to.flush()?;
    if whole {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidData,
        "what was confirmed has changed",
    ))
}

pub fn begins_with(path: &Path, mark: &FileMark) -> io::Result<bool> {
    each_confirmed(path, mark, |_| Ok(()))
}

/// Reads as many bytes as were confirmed. Returns true if they match the mark.
fn each_confirmed(
    path: &Path,
    mark: &FileMark,
    mut each: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<bool> {
    let mut file = foreign_file::open(path)?.take(mark.length);
    let mut fold = Fold {
        blocks: [0; 32],
        block: Vec::with_capacity(BLOCK),
    };
    let mut buffer = vec![0; BLOCK];
    let mut length = 0;
    loop {
        let got = file.read(&mut buffer)?;
        if got == 0 {
            break;
        }
        length += got as u64;
        fold.add(&buffer[..got]);
        each(&buffer[..got])?;
    }
    Ok(length == mark.length && fold.finish().text() == mark.hash)
}

/// Writer that computes the hash of a mark.
pub(crate) struct Folded<W> {
    fold: Fold,
    to: W,
}

impl<W: Write> Folded<W> {
    pub(crate) fn new(to: W) -> Self {
        let fold = Fold {
            blocks: [0; 32],
            block: Vec::with_capacity(BLOCK),
        };
        Self { fold, to }
    }

    pub(crate) fn finish(&self) -> String {
        self.fold.finish().text()
    }
}

impl<W: Write> Write for Folded<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let wrote = self.to.write(bytes)?;
        self.fold.add(&bytes[..wrote]);
        Ok(wrote)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

struct Fold {
    blocks: [u8; 32],
    block: Vec<u8>,
}

impl Fold {
    fn add(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = BLOCK - self.block.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.block.extend_from_slice(now);
            bytes = later;
            if self.block.len() == BLOCK {
                let mut hasher = blake3::Hasher::new();
                hasher
                    .update(&self.blocks)
                    .update(blake3::hash(&self.block).as_bytes());
                self.blocks = *hasher.finalize().as_bytes();
                self.block.clear();
            }
        }
    }

    fn finish(&self) -> Hash {
        Hash {
            blocks: self.blocks,
            rest: *blake3::hash(&self.block).as_bytes(),
        }
    }
}

fn stat(meta: &std::fs::Metadata) -> (u64, u64, i64, i64) {
    let nanos =
        |seconds: i64, part: i64| seconds.saturating_mul(1_000_000_000).saturating_add(part);
    (
        meta.dev(),
        meta.ino(),
        nanos(meta.mtime(), meta.mtime_nsec()),
        nanos(meta.ctime(), meta.ctime_nsec()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(home: &Path, before: Option<&FileMark>) -> (FileMark, Vec<String>) {
        let mut seen = vec![];
        let mark = read_on(home, "s", before, |l| {
            seen.push(String::from_utf8_lossy(l).into_owned());
        })
        .unwrap();
        (mark, seen)
    }

    fn add(home: &Path, text: &str) {
        let mut file = fs_err::OpenOptions::new()
            .create(true)
            .append(true)
            .open(home.join("s"))
            .unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn reading_on_equals_reading_all() {
        for first in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7] {
            let dir = tempfile::tempdir().unwrap();
            let home = dir.path();
            add(
                home,
                &("a".repeat(first.saturating_sub(1)) + if first > 0 { "\n" } else { "" }),
            );
            let (before, _) = lines(home, None);
            assert_eq!(compare(home, &before), SessionFact::Untouched);
            add(home, "x\nyy\n");
            assert_eq!(compare(home, &before), SessionFact::Changed);
            let (after, added) = lines(home, Some(&before));
            assert_eq!(added, ["x", "yy"], "{first}");
            assert_eq!(after, lines(home, None).0);
            let back = cut_back(home, &before).unwrap();
            assert_eq!((back.length, &back.hash), (before.length, &before.hash));
            assert_eq!(compare(home, &back), SessionFact::Untouched);
            assert_eq!(compare(home, &before), SessionFact::Verified);
        }
    }

    /// A fork never takes along bytes that its parent is adding.
    #[test]
    fn only_what_was_confirmed_is_copied() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path();
        let text = "line of text\n".repeat(60_000);
        add(home, &text);
        let (mark, _) = lines(home, None);
        add(home, "more\n");
        let mut copy = vec![];
        copy_confirmed(home, &mark, &mut copy).unwrap();
        assert!(copy == text.as_bytes());
        fs_err::write(home.join("s"), &text[1..]).unwrap();
        assert!(copy_confirmed(home, &mark, io::sink()).is_err());
        add(home, "m");
        assert!(copy_confirmed(home, &mark, io::sink()).is_err());
    }

    #[test]
    fn damage_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path();
        add(home, &"line of text\n".repeat(60_000));
        let (mark, _) = lines(home, None);
        let path = home.join("s");
        let good = fs_err::read(&path).unwrap();
        let mut middle = good.clone();
        middle[1000] ^= 1;
        for bad in [middle, good[..100].to_vec(), vec![]] {
            fs_err::write(&path, &bad).unwrap();
            assert_eq!(compare(home, &mark), SessionFact::Damaged);
            assert!(cut_back(home, &mark).is_err());
        }
        fs_err::remove_file(&path).unwrap();
        assert_eq!(compare(home, &mark), SessionFact::Missing);
    }

    /// Same length and same last block, but a different file.
    #[test]
    fn a_replaced_file_is_read_from_its_beginning() {
        let dir = tempfile::tempdir().unwrap();
        add(dir.path(), &"line of text\n".repeat(60_000));
        let (mark, _) = lines(dir.path(), None);
        let (path, other) = (dir.path().join("s"), dir.path().join("other"));
        let mut bytes = fs_err::read(&path).unwrap();
        bytes[10] ^= 1;
        bytes.extend(b"more\n");
        fs_err::write(&other, &bytes).unwrap();
        fs_err::rename(&other, &path).unwrap();
        assert!(read_on(dir.path(), "s", Some(&mark), |_| {}).is_err());
    }

    #[test]
    fn a_changed_last_block_is_not_read_on() {
        let dir = tempfile::tempdir().unwrap();
        add(dir.path(), "one\ntwo\n");
        let (mark, _) = lines(dir.path(), None);
        fs_err::write(dir.path().join("s"), "one\nTWO\nthree\n").unwrap();
        assert!(read_on(dir.path(), "s", Some(&mark), |_| {}).is_err());
    }
}
