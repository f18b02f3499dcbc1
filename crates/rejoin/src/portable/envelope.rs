//! A session as other tools hand it around: `{"sessionId","sessionBlob"}`, base64 of gzip of the file
//! of the session. Only the session travels so, not the conversation.

use std::io::{self, Read, Write};

use base64::Engine as _;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use rejoin_core::SessionId;
use serde::Deserialize;

use super::download::download;
use rejoin_errors::{CommandError, Result, codes};

/// More than that is no envelope.
const LONGEST: u64 = 96 * 1024 * 1024;
/// Nor is that a session which one would send so.
const LONGEST_SESSION: u64 = 512 * 1024 * 1024;
/// Bytes searched for the id of a session that came without one.
const BEGINNING: u64 = 1024 * 1024;

const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A parsed import.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Envelope {
    Session {
        id: SessionId,
        packed: Vec<u8>,
    },
    /// An id alone is no session: whoever goes on with it begins cold.
    IdOnly(SessionId),
    Nothing,
}

#[derive(Deserialize, Default)]
struct Wire {
    #[serde(default, rename = "sessionId", alias = "agentSessionId")]
    #[serde(alias = "AGENT_SESSION_ID")]
    id: Option<String>,
    #[serde(default, rename = "sessionBlob", alias = "agentSessionBlob")]
    #[serde(alias = "AGENT_SESSION_BLOB")]
    blob: Option<String>,
}

impl Envelope {
    /// From a file, `-`, a URL, or the variables that such tools set (`env`).
    pub(crate) async fn read(from: &str, var: impl Fn(&str) -> Option<String>) -> Result<Self> {
        if from == "env" {
            let id = var("AGENT_SESSION_ID");
            return match (var("AGENT_SESSION_BLOB"), var("SESSION_DOWNLOAD_URL")) {
                (Some(blob), _) if !blob.is_empty() => Self::of(id, Some(blob.into_bytes())),
                (_, Some(url)) if !url.is_empty() => {
                    Self::parse(download(&url, LONGEST).await?, id)
                }
                (_, _) => Self::of(id, None),
            };
        }
        if from.starts_with("http://") || from.starts_with("https://") {
            return Self::parse(download(from, LONGEST).await?, None);
        }
        let unreadable =
            |e: io::Error| CommandError::usage(format!("the envelope cannot be read: {e}"));
        let bytes = match from {
            "-" => bounded(&mut io::stdin().lock()),
            file => bounded(&mut fs_err::File::open(file).map_err(unreadable)?),
        };
        Self::parse(bytes.map_err(unreadable)?, None)
    }

    /// A document, the blob as text, or the blob itself.
    fn parse(bytes: Vec<u8>, id: Option<String>) -> Result<Self> {
        if bytes.len() as u64 > LONGEST {
            return Err(damaged("it is too long"));
        }
        if bytes.trim_ascii_start().first() != Some(&b'{') {
            return Self::of(id, Some(bytes));
        }
        let wire: Wire = serde_json::from_slice(&bytes)
            .map_err(|_| damaged("it is no document with `sessionId` and `sessionBlob`"))?;
        Self::of(wire.id.or(id), wire.blob.map(String::into_bytes))
    }

    fn of(id: Option<String>, blob: Option<Vec<u8>>) -> Result<Self> {
        let id = id.filter(|id| !id.is_empty());
        let id = id.map(|id| SessionId::new(id).map_err(|_| damaged("its id is none")));
        let id = id.transpose()?;
        let Some(mut blob) = blob.filter(|blob| !blob.trim_ascii().is_empty()) else {
            return Ok(id.map_or(Self::Nothing, Self::IdOnly));
        };
        let packed = if blob.starts_with(&[0x1f, 0x8b]) {
            blob
        } else {
            blob.retain(|byte| !byte.is_ascii_whitespace());
            LENIENT
                .decode(&blob)
                .map_err(|_| damaged("it is not base64"))?
        };
        // All of it is read once before anything is written.
        let mut own = None;
        let mut lines = Unpacked::of(&packed);
        let mut beginning = vec![];
        let read = (&mut lines).take(BEGINNING).read_to_end(&mut beginning);
        read.map_err(|e| damaged(&e.to_string()))?;
        io::copy(&mut lines, &mut io::sink()).map_err(|e| damaged(&e.to_string()))?;
        for line in beginning.split(|byte| *byte == b'\n') {
            let line = serde_json::from_slice::<serde_json::Value>(line).unwrap_or_default();
            own = own.or(line["sessionId"]
                .as_str()
                .and_then(|id| SessionId::new(id).ok()));
        }
        match (id, own) {
            (Some(id), Some(own)) if id != own => Err(damaged(&format!(
                "it says {id} and holds the session {own}"
            ))),
            (Some(id), _) | (None, Some(id)) => Ok(Self::Session { id, packed }),
            (None, None) => Err(damaged("it holds no session")),
        }
    }
}

/// Contents of a blob, limited to the size of a session.
pub(crate) struct Unpacked<'a> {
    from: flate2::read::GzDecoder<&'a [u8]>,
    left: u64,
}

impl<'a> Unpacked<'a> {
    pub(crate) fn of(packed: &'a [u8]) -> Self {
        Self {
            from: flate2::read::GzDecoder::new(packed),
            left: LONGEST_SESSION,
        }
    }
}

impl Read for Unpacked<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let got = self.from.read(to)?;
        let left = self.left.checked_sub(got as u64);
        self.left = left.ok_or_else(|| io::Error::other("its session is too long"))?;
        Ok(got)
    }
}

/// Writes one, a piece at a time: what is written into it is the session.
pub(crate) struct EnvelopeWriter<W: Write> {
    packing: flate2::write::GzEncoder<base64::write::EncoderWriter<'static, GeneralPurpose, W>>,
}

impl<W: Write> EnvelopeWriter<W> {
    pub(crate) fn begin(mut to: W, session: &SessionId) -> io::Result<Self> {
        write!(to, "{{\"sessionId\":\"{session}\",\"sessionBlob\":\"")?;
        let text =
            base64::write::EncoderWriter::new(to, &base64::engine::general_purpose::STANDARD);
        let packing = flate2::write::GzEncoder::new(text, flate2::Compression::default());
        Ok(Self { packing })
    }

    pub(crate) fn end(self) -> io::Result<()> {
        let mut text = self.packing.finish()?;
        let mut to = text.finish()?;
        writeln!(to, "\"}}")?;
        to.flush()
    }
}

impl<W: Write> Write for EnvelopeWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.packing.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn bounded(from: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut bytes = vec![];
    from.take(LONGEST + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

pub(crate) fn damaged(why: &str) -> CommandError {
    let text = format!("the envelope is damaged: {why}; nothing of it was taken");
    CommandError::new(codes::BAD_ARCHIVE, text)
        .try_this("the envelope, once more from where it came")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "b731fd0c-68de-4452-a02a-ef7d040b8069";

    fn session() -> Vec<u8> {
        format!("{{\"type\":\"user\",\"sessionId\":\"{ID}\"}}\n").into_bytes()
    }

    fn envelope(session: &[u8]) -> Vec<u8> {
        let mut out = vec![];
        let mut writer = EnvelopeWriter::begin(&mut out, &SessionId::new(ID).unwrap()).unwrap();
        writer.write_all(session).unwrap();
        writer.end().unwrap();
        out
    }

    fn unpacked(bytes: Vec<u8>) -> Option<Vec<u8>> {
        let Ok(Envelope::Session { packed, .. }) = Envelope::parse(bytes, None) else {
            return None;
        };
        let mut plain = vec![];
        Unpacked::of(&packed).read_to_end(&mut plain).unwrap();
        Some(plain)
    }

    /// B-06: base64 of gzip, and back.
    #[test]
    fn what_is_written_is_read() {
        assert_eq!(unpacked(envelope(&session())), Some(session()));
        let value: serde_json::Value = serde_json::from_slice(&envelope(&session())).unwrap();
        let blob = value["sessionBlob"].as_str().unwrap();
        let lines: Vec<String> = blob
            .as_bytes()
            .chunks(20)
            .map(|line| String::from_utf8(line.to_vec()).unwrap())
            .collect();
        assert_eq!(unpacked(lines.join("\n").into_bytes()), Some(session()));
        let packed = LENIENT.decode(blob).unwrap();
        assert_eq!(unpacked(packed), Some(session()));
    }

    /// B-07, B-14: every field may be missing; an id alone is said to be one.
    #[test]
    fn what_is_missing_is_told_apart() {
        let parse = |text: &str| Envelope::parse(text.as_bytes().to_vec(), None).unwrap();
        let only = Envelope::IdOnly(SessionId::new(ID).unwrap());
        assert_eq!(parse(&format!("{{\"sessionId\":\"{ID}\"}}")), only);
        let null = format!("{{\"agentSessionId\":\"{ID}\",\"agentSessionBlob\":null}}");
        assert_eq!(parse(&null), only);
        assert_eq!(parse("{\"sessionBlob\":\"\"}"), Envelope::Nothing);
        assert_eq!(parse("{}"), Envelope::Nothing);
    }

    /// B-29: damaged, cut short, too long, of another session.
    #[test]
    fn what_is_damaged_is_refused() {
        let value: serde_json::Value = serde_json::from_slice(&envelope(&session())).unwrap();
        let blob = value["sessionBlob"].as_str().unwrap().to_owned();
        for bad in [
            format!(
                "{{\"sessionId\":\"{ID}\",\"sessionBlob\":\"{}\"}}",
                &blob[..24]
            ),
            format!("{{\"sessionId\":\"../x\",\"sessionBlob\":\"{blob}\"}}"),
            format!("{{\"sessionId\":\"other\",\"sessionBlob\":\"{blob}\"}}"),
            "{\"sessionBlob\":\"%%%\"}".into(),
            "{\"sessionBlob\":\"aGVsbG8=\"}".into(),
            "{\"sessionBlob\":7}".into(),
            "{".into(),
            "not base64!".into(),
        ] {
            let refused = Envelope::parse(bad.clone().into_bytes(), None).unwrap_err();
            assert_eq!(refused.exit, 11, "{bad}");
        }
    }

    #[test]
    fn a_bomb_is_refused() {
        let mut packing = flate2::write::GzEncoder::new(vec![], flate2::Compression::best());
        let zeros = vec![0; 1024 * 1024];
        for _ in 0..=LONGEST_SESSION / zeros.len() as u64 {
            packing.write_all(&zeros).unwrap();
        }
        let packed = packing.finish().unwrap();
        assert!(packed.len() < 1024 * 1024, "{}", packed.len());
        let refused = Envelope::parse(packed, None).unwrap_err();
        assert!(refused.message.contains("too long"), "{}", refused.message);
    }
}
