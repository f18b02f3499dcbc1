//! Copies the output of the CLI, and looks for the last line of the turn.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use rejoin_agents::{TurnEndReader, TurnState};

/// Length beyond which a line is ignored: no turn that leaves a process worth keeping ends with
/// one.
const LONGEST: usize = 32 << 20;

pub(super) struct Copy {
    out: File,
    err: File,
    block: Vec<u8>,
    lines: Lines,
    reader: Box<dyn TurnEndReader>,
}

impl Copy {
    pub(super) fn new(
        folder: &Path,
        from: u64,
        reader: Box<dyn TurnEndReader>,
    ) -> io::Result<Self> {
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

    pub(super) fn stdin_line(&mut self, line: &str) {
        self.reader.stdin_line(line.as_bytes());
    }

    /// Copies the available output and returns the state of the turn.
    pub(super) fn on(&mut self) -> io::Result<TurnState> {
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
        let standing = self.reader.state();
        let torn = standing == TurnState::Ended(true) && !self.lines.line.is_empty();
        Ok(if torn {
            TurnState::Ended(false)
        } else {
            standing
        })
    }
}

/// Assembles lines from blocks.
#[derive(Default)]
struct Lines {
    line: Vec<u8>,
    too_long: bool,
}

impl Lines {
    fn take(&mut self, bytes: &[u8], reader: &mut dyn TurnEndReader) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.too_long |= self.line.len() + piece.len() > LONGEST;
            if self.too_long {
                self.line.clear();
            } else {
                self.line.extend_from_slice(piece);
            }
            if piece.ends_with(b"\n") {
                // The content of a line that is too long is unknown; the reader gets an empty one.
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

    impl TurnEndReader for Heard {
        fn line(&mut self, line: &[u8]) {
            self.0.push(String::from_utf8_lossy(line).into_owned());
        }

        fn stdin_line(&mut self, _line: &[u8]) {}

        fn state(&self) -> TurnState {
            TurnState::Running
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
