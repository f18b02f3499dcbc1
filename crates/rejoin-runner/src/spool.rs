//! Reads spool files line by line from a remembered offset.
//!
//! A reader sees each line exactly once across any number of restarts: every line carries the
//! offset after it, and an incomplete line is returned only when the file will not grow any more.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Complete line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Without the newline; at most `SpoolReader::LONGEST`.
    pub bytes: Vec<u8>,
    /// Offset after the newline, at which a new reader continues.
    pub end: u64,
    /// Number of bytes of a line that was too long which are missing at the end of `bytes`.
    pub skipped: u64,
}

/// Incomplete last line: its writer died.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Torn {
    pub bytes: Vec<u8>,
    /// Offset of its first byte.
    pub start: u64,
    pub skipped: u64,
}

/// Part of a spool that will not grow any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    Line(Line),
    Torn(Torn),
}

/// Reader of one spool file. The file need not exist yet.
#[derive(Debug)]
pub struct SpoolReader {
    path: PathBuf,
    file: Option<File>,
    /// Offset of the first byte of the line being read.
    start: u64,
    /// Offset of the next byte to be read from the file.
    at: u64,
    line: Vec<u8>,
    skipped: u64,
    block: Box<[u8]>,
    /// Part of `block` that is read but not yet examined.
    fresh: std::ops::Range<usize>,
}

const BLOCK: usize = 64 * 1024;

impl SpoolReader {
    /// Longest line that is kept whole.
    pub const LONGEST: usize = 32 * 1024 * 1024;

    /// Creates a reader that begins at `offset`, which is 0 or the `end` of a line.
    pub fn new(path: &Path, offset: u64) -> Self {
        Self {
            path: path.to_owned(),
            file: None,
            start: offset,
            at: offset,
            line: Vec::new(),
            skipped: 0,
            block: vec![0; BLOCK].into_boxed_slice(),
            fresh: 0..0,
        }
    }

    /// Returns the offset after the last line that was returned.
    pub fn offset(&self) -> u64 {
        self.start
    }

    /// Returns the next complete line, or None if there is none yet.
    pub fn next_line(&mut self) -> io::Result<Option<Line>> {
        loop {
            let bytes = self.block.get(self.fresh.clone()).unwrap_or_default();
            let newline = bytes.iter().position(|byte| *byte == b'\n');
            let part = bytes
                .get(..newline.unwrap_or(bytes.len()))
                .unwrap_or_default();
            let kept = part.len().min(Self::LONGEST - self.line.len());
            self.line
                .extend_from_slice(part.get(..kept).unwrap_or_default());
            self.skipped += (part.len() - kept) as u64;
            if newline.is_some() {
                self.fresh.start += part.len() + 1;
                let bytes = std::mem::take(&mut self.line);
                let skipped = std::mem::take(&mut self.skipped);
                self.start += bytes.len() as u64 + skipped + 1;
                return Ok(Some(Line {
                    bytes,
                    end: self.start,
                    skipped,
                }));
            }
            self.fresh = 0..0;
            if !self.fill()? {
                return Ok(None);
            }
        }
    }

    /// Returns the next piece of a file that will not grow any more: complete lines, then the
    /// incomplete rest.
    pub fn finish(&mut self) -> io::Result<Option<Piece>> {
        if let Some(line) = self.next_line()? {
            return Ok(Some(Piece::Line(line)));
        }
        if self.line.is_empty() {
            return Ok(None);
        }
        let bytes = std::mem::take(&mut self.line);
        let skipped = std::mem::take(&mut self.skipped);
        let start = std::mem::replace(&mut self.start, self.at);
        Ok(Some(Piece::Torn(Torn {
            bytes,
            start,
            skipped,
        })))
    }

    fn fill(&mut self) -> io::Result<bool> {
        let file = match &self.file {
            Some(file) => file,
            None => match fs_err::File::open(&self.path) {
                Ok(file) => self.file.insert(file.into_file()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
                Err(error) => return Err(error),
            },
        };
        let count = loop {
            match file.read_at(&mut self.block, self.at) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => break result?,
            }
        };
        self.at += count as u64;
        self.fresh = 0..count;
        Ok(count > 0)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Write;

    use super::*;

    fn append(path: &Path, bytes: &[u8]) {
        let mut file = fs_err::OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .unwrap();
        file.write_all(bytes).unwrap();
    }

    fn line(bytes: &[u8], end: u64) -> Line {
        Line {
            bytes: bytes.to_vec(),
            end,
            skipped: 0,
        }
    }

    #[test]
    fn whole_lines_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let mut reader = SpoolReader::new(&path, 0);
        assert_eq!(reader.next_line().unwrap(), None);
        append(&path, b"a\n\n\xff\0x");
        assert_eq!(reader.next_line().unwrap(), Some(line(b"a", 2)));
        assert_eq!(reader.next_line().unwrap(), Some(line(b"", 3)));
        assert_eq!(reader.next_line().unwrap(), None);
        assert_eq!(reader.offset(), 3);
        append(&path, b"y\ntail");
        assert_eq!(reader.next_line().unwrap(), Some(line(b"\xff\0xy", 8)));
        assert_eq!(reader.next_line().unwrap(), None);
        let torn = Torn {
            bytes: b"tail".to_vec(),
            start: 8,
            skipped: 0,
        };
        assert_eq!(reader.finish().unwrap(), Some(Piece::Torn(torn)));
        assert_eq!(reader.finish().unwrap(), None);
    }

    #[test]
    fn each_line_once_across_restarts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let texts: Vec<Vec<u8>> = (0..300)
            .map(|n| vec![b'a' + (n % 26) as u8; n * 7])
            .collect();
        let all = texts.join(&b'\n');
        let mut offset = 0;
        let mut seen = Vec::new();
        for part in all.chunks(1000) {
            append(&path, part);
            let mut reader = SpoolReader::new(&path, offset);
            while let Some(line) = reader.next_line().unwrap() {
                offset = line.end;
                seen.push(line.bytes);
            }
            assert_eq!(reader.offset(), offset);
        }
        append(&path, b"\n");
        let Some(Piece::Line(last)) = SpoolReader::new(&path, offset).finish().unwrap() else {
            panic!("a last line")
        };
        seen.push(last.bytes);
        assert_eq!(seen, texts);
    }

    #[test]
    fn too_long_lines_are_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let long = vec![b'x'; SpoolReader::LONGEST + 100];
        append(&path, &long);
        let mut reader = SpoolReader::new(&path, 0);
        assert_eq!(reader.next_line().unwrap(), None);
        append(&path, b"\nnext\n");
        let cut = reader.next_line().unwrap().unwrap();
        assert_eq!((cut.bytes.len(), cut.skipped), (SpoolReader::LONGEST, 100));
        assert_eq!(cut.end, long.len() as u64 + 1);
        assert_eq!(
            reader.next_line().unwrap(),
            Some(line(b"next", cut.end + 5))
        );
    }
}
