//! Cuts files into chunks by their content. Data appended to a file leaves the chunks before it
//! unchanged.

use std::fmt::{self, Write as _};
use std::io::Read;

use fastcdc::v2020::StreamCDC;
use rejoin_core::hex;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

const SMALLEST: usize = 8 * 1024;
const USUAL: usize = 32 * 1024;
/// Maximum length of a chunk.
pub const LARGEST: usize = 128 * 1024;

/// A chunk, identified by its content.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChunkRef {
    pub name: [u8; 32],
    pub length: u32,
}

impl fmt::Debug for ChunkRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", hex(&self.name), self.length)
    }
}

/// Cuts a stream into chunks.
pub(crate) fn cut<R: Read>(from: R) -> impl Iterator<Item = std::io::Result<Vec<u8>>> + use<R> {
    StreamCDC::new(from, SMALLEST, USUAL, LARGEST)
        .map(|chunk| chunk.map(|chunk| chunk.data).map_err(std::io::Error::from))
}

/// The chunks of a file, in order. Serialised as their names and lengths, concatenated.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChunkList(pub Vec<ChunkRef>);

const DIGITS: usize = 64 + 8;

impl ChunkList {
    /// Total length in bytes.
    pub fn length(&self) -> u64 {
        self.0.iter().map(|chunk| u64::from(chunk.length)).sum()
    }

    fn text(&self) -> String {
        let mut text = String::with_capacity(self.0.len() * DIGITS);
        for chunk in &self.0 {
            text.push_str(&hex(&chunk.name));
            let _infallible = write!(text, "{:08x}", chunk.length);
        }
        text
    }

    fn parse(text: &str) -> Option<Self> {
        let digits = text.as_bytes().chunks(DIGITS);
        let chunk = |digits: &[u8]| {
            let (name, length) = std::str::from_utf8(digits).ok()?.split_at_checked(64)?;
            let length = Some(length).filter(|length| length.len() == 8)?;
            Some(ChunkRef {
                name: *blake3::Hash::from_hex(name).ok()?.as_bytes(),
                length: u32::from_str_radix(length, 16).ok()?,
            })
        };
        digits.map(chunk).collect::<Option<_>>().map(Self)
    }
}

impl Serialize for ChunkList {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.text())
    }
}

impl<'de> Deserialize<'de> for ChunkList {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom("not a list of chunks"))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Returns the same bytes every time, without repetition.
    fn bytes(n: usize) -> Vec<u8> {
        let mut bytes = vec![0; n];
        blake3::Hasher::new().finalize_xof().fill(&mut bytes);
        bytes
    }

    fn pieces(bytes: &[u8]) -> Vec<Vec<u8>> {
        cut(bytes).collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn what_is_cut_is_all_there() {
        for n in [0, 1, SMALLEST - 1, SMALLEST, LARGEST, 1_000_000] {
            let all = bytes(n);
            let pieces = pieces(&all);
            assert_eq!(pieces.concat(), all);
            assert!(pieces.iter().all(|p| p.len() <= LARGEST));
        }
    }

    #[test]
    fn what_is_added_leaves_the_chunks_before_it() {
        let mut all = bytes(1_000_000);
        let before = pieces(&all);
        all.extend(bytes(200_000));
        let after = pieces(&all);
        let (_, whole) = before.split_last().unwrap();
        assert_eq!(&after[..whole.len()], whole);
        // So cutting can continue from there.
        let known: usize = whole.iter().map(Vec::len).sum();
        assert_eq!(pieces(&all[known..]), after[whole.len()..]);
    }

    #[test]
    fn a_list_says_and_reads_itself() {
        let list = ChunkList(vec![
            ChunkRef {
                name: [7; 32],
                length: 5,
            },
            ChunkRef {
                name: [0xab; 32],
                length: u32::MAX,
            },
        ]);
        let text = serde_json::to_string(&list).unwrap();
        assert_eq!(serde_json::from_str::<ChunkList>(&text).unwrap(), list);
        let empty = serde_json::from_str::<ChunkList>("\"\"").unwrap();
        assert_eq!(empty, ChunkList::default());
        for foreign in ["x", "zz", &"0".repeat(71), &"é".repeat(36), &"g".repeat(72)] {
            assert!(ChunkList::parse(foreign).is_none(), "{foreign}");
        }
    }
}
