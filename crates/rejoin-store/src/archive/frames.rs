//! The outer format of an archive: frames of kind, length and bytes, and a hash at the end.

use std::io::{Read, Write};

use serde::Serialize;

use super::{BadArchive, damaged};
use crate::chunks::LARGEST;

const FORM: u32 = 1;
const MAGIC: &str = "rejoin archive ";
/// Maximum length of the magic line.
const LINE: usize = 32;
/// Maximum length of a row. The manifest of a session of 4 GiB is one too.
const ROW: usize = 48 * 1024 * 1024;
/// Maximum length of a chunk with its name and length. Incompressible data grows a little.
const CHUNK: usize = LARGEST + LARGEST / 128 + 1024;
/// Bytes of a frame before its content.
const HEAD: usize = 5;
const HASH: usize = 32;

/// Content of a frame. Frames come in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Header,
    Chunk,
    Conversation,
    Message,
    Version,
    Turn,
    Attempt,
    Pin,
    Epoch,
    Change,
    Snapshot,
    Totals,
    End,
}

const KINDS: [(Kind, u8); 13] = [
    (Kind::Header, b'H'),
    (Kind::Chunk, b'K'),
    (Kind::Conversation, b'C'),
    (Kind::Message, b'M'),
    (Kind::Version, b'V'),
    (Kind::Turn, b'T'),
    (Kind::Attempt, b'A'),
    (Kind::Pin, b'P'),
    (Kind::Epoch, b'E'),
    (Kind::Change, b'X'),
    (Kind::Snapshot, b'S'),
    (Kind::Totals, b'N'),
    (Kind::End, b'Z'),
];

impl Kind {
    fn letter(self) -> u8 {
        KINDS
            .iter()
            .find(|(kind, _)| *kind == self)
            .map_or(0, |(_, letter)| *letter)
    }

    fn of(letter: u8) -> Option<Self> {
        KINDS
            .iter()
            .find(|(_, known)| *known == letter)
            .map(|(kind, _)| *kind)
    }

    fn longest(self) -> usize {
        match self {
            Self::Chunk => CHUNK,
            Self::End => HASH,
            Self::Header | Self::Totals | Self::Epoch => 64 * 1024,
            Self::Conversation
            | Self::Message
            | Self::Version
            | Self::Turn
            | Self::Attempt
            | Self::Pin
            | Self::Change
            | Self::Snapshot => ROW,
        }
    }
}

#[derive(Debug)]
pub(super) struct Frame {
    pub(super) kind: Kind,
    pub(super) bytes: Vec<u8>,
}

/// Writes an archive.
pub(super) struct ArchiveWriter<W> {
    to: W,
    hasher: blake3::Hasher,
    written: u64,
}

impl<W: Write> ArchiveWriter<W> {
    pub(super) fn begin(to: W) -> std::io::Result<Self> {
        let mut writer = Self {
            to,
            hasher: blake3::Hasher::new(),
            written: 0,
        };
        writer.put(format!("{MAGIC}{FORM}\n").as_bytes())?;
        Ok(writer)
    }

    pub(super) fn row(&mut self, kind: Kind, row: &impl Serialize) -> std::io::Result<()> {
        let bytes = serde_json::to_vec(row).map_err(std::io::Error::other)?;
        self.frame(kind, &bytes)
    }

    pub(super) fn frame(&mut self, kind: Kind, bytes: &[u8]) -> std::io::Result<()> {
        if bytes.len() > kind.longest() {
            let text = format!("a {kind:?} of {} bytes is too long", bytes.len());
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, text));
        }
        self.put(&[kind.letter()])?;
        self.put(&(bytes.len() as u32).to_le_bytes())?;
        self.put(bytes)
    }

    /// Writes the hash. Returns the target, that hash and the total number of bytes.
    pub(super) fn end(mut self) -> std::io::Result<(W, [u8; 32], u64)> {
        let hash = *self.hasher.finalize().as_bytes();
        self.frame(Kind::End, &hash)?;
        self.to.flush()?;
        Ok((self.to, hash, self.written))
    }

    fn put(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.hasher.update(bytes);
        self.written += bytes.len() as u64;
        self.to.write_all(bytes)
    }
}

/// Reads an archive. Checks that the hash matches and that nothing follows [`Kind::End`].
pub(super) struct ArchiveReader<R> {
    from: R,
    hasher: blake3::Hasher,
    last: Option<Kind>,
}

impl<R: Read> ArchiveReader<R> {
    pub(super) fn begin(mut from: R) -> Result<Self, BadArchive> {
        let mut line = vec![];
        while line.last() != Some(&b'\n') {
            let mut byte = [0];
            if line.len() == LINE || from.read(&mut byte)? == 0 {
                return Err(BadArchive::NotOne);
            }
            line.push(byte[0]);
        }
        let form = std::str::from_utf8(&line)
            .ok()
            .and_then(|line| line.trim_end().strip_prefix(MAGIC)?.parse::<u32>().ok());
        match form {
            Some(FORM) => {}
            Some(found) if found > FORM => {
                return Err(BadArchive::Newer { found, known: FORM });
            }
            Some(_) | None => return Err(BadArchive::NotOne),
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update(&line);
        Ok(Self {
            from,
            hasher,
            last: None,
        })
    }

    /// Returns the next frame, which must be in order. `None` after the end.
    pub(super) fn next(&mut self) -> Result<Option<Frame>, BadArchive> {
        if self.last == Some(Kind::End) {
            return Ok(None);
        }
        let mut head = [0; HEAD];
        self.fill(&mut head)?;
        let length = u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let kind = Kind::of(head[0]).ok_or_else(|| damaged("a frame of no known kind"))?;
        if length > kind.longest() {
            return Err(damaged(format!("a frame of {length} bytes is too long")));
        }
        if !follows(self.last, kind) {
            return Err(damaged("its frames are out of order"));
        }
        // The buffer grows with the bytes received, not with the announced length.
        let mut bytes = vec![];
        (&mut self.from)
            .take(length as u64)
            .read_to_end(&mut bytes)?;
        if bytes.len() < length {
            return Err(BadArchive::Truncated);
        }
        self.last = Some(kind);
        if kind != Kind::End {
            self.hasher.update(&head);
            self.hasher.update(&bytes);
            return Ok(Some(Frame { kind, bytes }));
        }
        if bytes != *self.hasher.finalize().as_bytes() {
            return Err(damaged("its bytes are not those that were written"));
        }
        let mut more = [0];
        if self.from.read(&mut more)? > 0 {
            return Err(damaged("something follows its end"));
        }
        Ok(Some(Frame { kind, bytes }))
    }

    fn fill(&mut self, to: &mut [u8]) -> Result<(), BadArchive> {
        self.from.read_exact(to).map_err(|error| {
            if error.kind() == std::io::ErrorKind::UnexpectedEof {
                BadArchive::Truncated
            } else {
                error.into()
            }
        })
    }
}

/// Returns true if `kind` may follow `last`: versions follow their message, attempts their turn,
/// and the rest the order of kinds.
fn follows(last: Option<Kind>, kind: Kind) -> bool {
    let once = matches!(
        kind,
        Kind::Header | Kind::Conversation | Kind::Totals | Kind::End
    );
    match (last, kind) {
        (None, kind) => kind == Kind::Header,
        (Some(Kind::Version), Kind::Message) | (Some(Kind::Attempt), Kind::Turn) => true,
        (Some(Kind::Header | Kind::Chunk), kind) => {
            matches!(kind, Kind::Chunk | Kind::Conversation)
        }
        (Some(last), Kind::Version) => matches!(last, Kind::Message | Kind::Version),
        (Some(last), Kind::Attempt) => matches!(last, Kind::Turn | Kind::Attempt),
        (Some(last), Kind::End) => last == Kind::Totals,
        (Some(last), kind) => last < kind || (last == kind && !once),
    }
}

/// Returns the last bytes of an archive, which identify it: two complete archives with the same end
/// are equal.
pub fn end_of(from: &mut (impl Read + std::io::Seek)) -> Result<[u8; 32], BadArchive> {
    ArchiveReader::begin(&mut *from)?;
    let mut end = [0; HEAD + HASH];
    let back = end.len() as i64;
    from.seek(std::io::SeekFrom::End(-back))
        .map_err(|_| BadArchive::Truncated)?;
    from.read_exact(&mut end)?;
    let mut hash = [0; HASH];
    hash.copy_from_slice(&end[HEAD..]);
    if end[0] == Kind::End.letter() && end[1..HEAD] == (HASH as u32).to_le_bytes() {
        Ok(hash)
    } else {
        Err(BadArchive::Truncated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Vec<u8> {
        let mut writer = ArchiveWriter::begin(vec![]).unwrap();
        for kind in [
            Kind::Header,
            Kind::Chunk,
            Kind::Chunk,
            Kind::Conversation,
            Kind::Message,
            Kind::Version,
            Kind::Message,
            Kind::Totals,
        ] {
            writer.frame(kind, b"{}").unwrap();
        }
        writer.end().unwrap().0
    }

    fn read(bytes: &[u8]) -> Result<usize, BadArchive> {
        let mut reader = ArchiveReader::begin(bytes)?;
        let mut frames = 0;
        while reader.next()?.is_some() {
            frames += 1;
        }
        Ok(frames)
    }

    #[test]
    fn what_is_written_is_read() {
        assert_eq!(read(&small()).unwrap(), 9);
        let bytes = small();
        let hash = end_of(&mut std::io::Cursor::new(&bytes)).unwrap();
        assert_eq!(bytes[bytes.len() - 32..], hash);
    }

    #[test]
    fn every_cut_and_every_flipped_bit_is_seen() {
        let whole = small();
        for cut in 0..whole.len() {
            assert!(read(&whole[..cut]).is_err(), "cut at {cut}");
        }
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut other = whole.clone();
                other[at] ^= 1 << bit;
                assert!(read(&other).is_err(), "bit {bit} of {at}");
            }
        }
        let mut longer = whole;
        longer.push(0);
        assert!(matches!(read(&longer), Err(BadArchive::Damaged(_))));
    }

    #[test]
    fn a_frame_that_promises_too_much_is_refused_before_it_is_read() {
        let mut bytes = b"rejoin archive 1\nH".to_vec();
        bytes.extend(u32::MAX.to_le_bytes());
        assert!(matches!(read(&bytes), Err(BadArchive::Damaged(_))));
    }

    #[test]
    fn other_forms_are_told_apart() {
        assert!(matches!(
            read(b"rejoin archive 2\nwhatever"),
            Err(BadArchive::Newer { found: 2, .. })
        ));
        for other in [
            &b""[..],
            b"rejoin archive 0\n",
            b"rejoin archive x\n",
            b"{\"sessionId\":1}\n",
            &[b'x'; 100],
            b"rejoin archive 99999999999999999999\n",
        ] {
            assert!(matches!(read(other), Err(BadArchive::NotOne)), "{other:?}");
        }
    }

    #[test]
    fn frames_out_of_order_are_refused() {
        for kinds in [
            &[Kind::Conversation][..],
            &[Kind::Header, Kind::Message],
            &[Kind::Header, Kind::Header],
            &[Kind::Header, Kind::Conversation, Kind::Conversation],
            &[Kind::Header, Kind::Conversation, Kind::Version],
            &[Kind::Header, Kind::Conversation, Kind::Chunk],
            &[Kind::Header, Kind::Conversation, Kind::Attempt],
            &[Kind::Header, Kind::Conversation, Kind::Turn, Kind::Message],
        ] {
            let mut writer = ArchiveWriter::begin(vec![]).unwrap();
            for kind in kinds {
                writer.frame(*kind, b"{}").unwrap();
            }
            writer.frame(Kind::Totals, b"{}").unwrap();
            let bytes = writer.end().unwrap().0;
            assert!(read(&bytes).is_err(), "{kinds:?}");
        }
    }
}
