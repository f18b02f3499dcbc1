//! Reads a session, and looks for lines by which it would reach out of its conversation.

use std::io::{self, Write};

use rejoin_agents::{Adapter, Reading, SessionReader};

use crate::marks::Line;

/// Reader of a session that notes the first reason why it is not continued.
pub(crate) struct Checked {
    adapter: &'static dyn Adapter,
    reader: Box<dyn SessionReader>,
    refused: Option<&'static str>,
}

impl Checked {
    pub(crate) fn new(adapter: &'static dyn Adapter, cursor: Option<&str>) -> Self {
        Self {
            adapter,
            reader: adapter.reader(cursor),
            refused: None,
        }
    }

    pub(crate) fn line(&mut self, line: &[u8]) {
        self.refused = self.refused.or_else(|| self.adapter.refuses(line));
        self.reader.line(line);
    }

    pub(crate) fn finish(self) -> Reading {
        Reading {
            refused: self.refused,
            ..self.reader.finish()
        }
    }
}

/// Passes the bytes of a session on, and notes the first reason why it is not continued.
pub(crate) struct Looked<'a> {
    adapter: &'static dyn Adapter,
    to: &'a mut (dyn Write + Send),
    line: Line,
    refused: Option<&'static str>,
}

impl<'a> Looked<'a> {
    pub(crate) fn new(adapter: &'static dyn Adapter, to: &'a mut (dyn Write + Send)) -> Self {
        Self {
            adapter,
            to,
            line: Line::default(),
            refused: None,
        }
    }

    fn take(&mut self) {
        let (adapter, refused) = (self.adapter, &mut self.refused);
        self.line
            .take(&mut |line: &[u8]| *refused = refused.or_else(|| adapter.refuses(line)));
    }

    pub(crate) fn finish(mut self) -> Option<&'static str> {
        if !self.line.is_empty() {
            self.take();
        }
        self.refused
    }
}

impl Write for Looked<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let wrote = self.to.write(bytes)?;
        for piece in bytes[..wrote].split_inclusive(|byte| *byte == b'\n') {
            self.line.add(piece);
            if piece.ends_with(b"\n") {
                self.take();
            }
        }
        Ok(wrote)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}
