//! Copies what the CLI prints, and looks for the last line of the turn.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use rejoin_agents::{Standing, StayReader};

/// A line that is longer is not the last one of a turn that leaves a process worth keeping.
const LONGEST: usize = 32 << 20;

pub(super) struct Copy {
    out: File,
    err: File,
    block: Vec<u8>,
    lines: Lines,
    reader: Box<dyn StayReader>,
}

impl Copy {
    pub(super) fn new(folder: &Path, from: u64, reader: Box<dyn StayReader>) -> io::Result<Self> {
        let mut out = fs_err::File::open(folder.join("out"))?.into_file();
        out.seek(SeekFrom::Start(from))?;
        let mut err = fs_err::File::open(folder.join("err"))?.into_file();
        if from > 0 {
            err.seek(SeekFrom::End(0))?;
        }
        Ok(Self {
            out,
            err,
            block: vec![0; 64 * 1024],
            lines: Lines::default(),
            reader,
        })
    }

    pub(super) fn told(&mut self, line: &str) {
        self.reader.told(line.as_bytes());
    }

    /// Copies what there is, and says how far the turn has come.
    pub(super) fn on(&mut self) -> io::Result<Standing> {
        loop {
            let count = self.err.read(&mut self.block)?;
            if count == 0 {
                break;
            }
            io::stderr().write_all(&self.block[..count])?;
        }
        let mut stdout = io::stdout().lock();
        loop {
            let count = self.out.read(&mut self.block)?;
            if count == 0 {
                break;
            }
            stdout.write_all(&self.block[..count])?;
            self.lines.take(&self.block[..count], self.reader.as_mut());
        }
        stdout.flush()?;
        let standing = self.reader.standing();
        let torn = standing == Standing::Over(true) && !self.lines.line.is_empty();
        Ok(if torn {
            Standing::Over(false)
        } else {
            standing
        })
    }
}

/// Puts lines together.
#[derive(Default)]
struct Lines {
    line: Vec<u8>,
    too_long: bool,
}

impl Lines {
    fn take(&mut self, bytes: &[u8], reader: &mut dyn StayReader) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.too_long |= self.line.len() + piece.len() > LONGEST;
            if self.too_long {
                self.line.clear();
            } else {
                self.line.extend_from_slice(piece);
            }
            if piece.ends_with(b"\n") {
                // Of one that is too long nothing is known.
                reader.line(&self.line);
                self.line.clear();
                self.too_long = false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Heard(Vec<String>);

    impl StayReader for Heard {
        fn line(&mut self, line: &[u8]) {
            self.0.push(String::from_utf8_lossy(line).into_owned());
        }

        fn told(&mut self, _line: &[u8]) {}

        fn standing(&self) -> Standing {
            Standing::Runs
        }
    }

    #[test]
    fn lines_come_in_any_pieces() {
        for size in [1, 3, 100] {
            let (mut lines, mut heard) = (Lines::default(), Heard::default());
            for piece in b"one\ntwo\n\nthr".chunks(size) {
                lines.take(piece, &mut heard);
            }
            assert_eq!(heard.0, ["one\n", "two\n", "\n"]);
            assert_eq!(lines.line, b"thr");
        }
    }
}
