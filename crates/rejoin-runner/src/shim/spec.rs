//! What a shim is told (`spec.json`) and what it leaves behind (`end.json`).
//!
//! Both are read by other builds of rejoin than the one that wrote them: fields are only added,
//! and a missing one has its default.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use fs_err::os::unix::fs::OpenOptionsExt;
use serde::{Deserialize, Serialize};

use crate::wall::Wall;

/// One run of a CLI. Its environment is not here: it is the shim's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spec {
    pub version: u32,
    pub argv: Vec<String>,
    pub dir: PathBuf,
    pub stdin: String,
    /// Keep stdin open after `stdin` is written.
    pub hold_stdin: bool,
    /// A held stdin is closed after an output line with one of these as top-level `type`, or, behind
    /// `method:` or `id:`, as that member.
    pub close_stdin_on: Vec<String>,
    /// After an output line with one of these as top-level `type` the CLI has `linger_ms` to end.
    pub done_on: Vec<String>,
    pub linger_ms: u64,
    /// Not for the shim: for whoever reads the run. See `CommandSpec::dialogue`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dialogue: Option<String>,
    /// Not for the shim either: the run goes through the process in this folder, which outlives it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warm: Option<PathBuf>,
    /// It takes one prompt after the other, and rests in between: see `Order::Rest`. Whoever leaves it
    /// alone in the middle ends it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub rests: bool,
    /// Its stdout is a terminal, of which `out` gets what it would show.
    pub pty: bool,
    /// A held stdin is closed when nobody has been connected for this long.
    pub orphan_ms: Option<u64>,
    pub wall_ms: Option<u64>,
    /// Longest time without growth of `out` or `err`.
    pub idle_ms: Option<u64>,
    /// Most that `out` and `err` may hold together.
    pub spool_bytes: u64,
    /// Time between SIGINT and SIGTERM.
    pub grace_ms: u64,
    /// Let processes live that the CLI left running when it ended by itself.
    pub keep_background: bool,
    pub min_free_bytes: u64,
    /// The first lease, if the store is shared: see `Order::Lease`.
    pub lease_ms: Option<u64>,
    /// Folders that are kept from the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall: Option<Wall>,
}

impl Default for Spec {
    fn default() -> Self {
        Self {
            version: Self::VERSION,
            argv: Vec::new(),
            dir: PathBuf::from("/"),
            stdin: String::new(),
            hold_stdin: false,
            close_stdin_on: Vec::new(),
            done_on: Vec::new(),
            linger_ms: 1000,
            dialogue: None,
            warm: None,
            rests: false,
            pty: false,
            orphan_ms: None,
            wall_ms: None,
            idle_ms: None,
            spool_bytes: 1 << 30,
            grace_ms: 5000,
            keep_background: false,
            min_free_bytes: 16 << 20,
            lease_ms: None,
            wall: None,
        }
    }
}

impl Spec {
    pub const VERSION: u32 = 1;

    /// Writes `spec.json` into the turn's folder, readable by us alone.
    pub fn save(&self, folder: &Path) -> io::Result<()> {
        put(&folder.join("spec.json"), &serde_json::to_vec(self)?)
    }

    pub fn load(folder: &Path) -> io::Result<Self> {
        let spec: Self = serde_json::from_slice(&fs_err::read(folder.join("spec.json"))?)?;
        if spec.version > Self::VERSION {
            let text = format!("spec.json has version {}, known is 1", spec.version);
            return Err(io::Error::new(io::ErrorKind::Unsupported, text));
        }
        Ok(spec)
    }
}

/// Name of the file that says how a run ended.
pub const END: &str = "end.json";

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct End {
    /// Exit code of the CLI. Neither code nor signal: it ended unseen, or never started.
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub why: Why,
    pub error: Option<String>,
    /// What the CLI left running.
    pub leftovers: Vec<Leftover>,
    /// How many of those were killed.
    pub killed: usize,
    /// How long the CLI ran, in milliseconds, by a clock that nobody sets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ran_ms: Option<u64>,
}

impl Default for End {
    fn default() -> Self {
        let why = Why::Exited;
        Self {
            code: None,
            signal: None,
            why,
            error: None,
            leftovers: Vec::new(),
            killed: 0,
            ran_ms: None,
        }
    }
}

impl End {
    /// Writes `end.json` into the folder of a run whose shim cannot do it any more.
    pub(crate) fn save(&self, folder: &Path) -> io::Result<()> {
        put(&folder.join(END), &serde_json::to_vec(self)?)
    }

    pub(super) fn not_started(error: &io::Error) -> Self {
        Self {
            why: Why::NotStarted,
            error: Some(error.to_string()),
            ..Self::default()
        }
    }

    /// The end of the turn in `folder`; `None` if it has not ended or its shim was killed.
    pub fn load(folder: &Path) -> io::Result<Option<Self>> {
        match fs_err::read(folder.join(END)) {
            // What a power cut left of it says nothing.
            Ok(text) => Ok(serde_json::from_slice(&text).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The first cause of the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    Exited,
    Wall,
    Idle,
    Stopped,
    Interrupted,
    SpoolFull,
    DiskFull,
    NotStarted,
    /// Nobody renewed its lease: as far as others know, this machine is gone.
    LeaseRanOut,
}

/// A process that the CLI left running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftover {
    pub pid: i32,
    pub command: String,
}

/// Writes a private file so that it is seen whole or not at all.
///
/// Not made to outlast a power cut: that ends the run as well, and nothing here is believed after
/// the machine was started anew.
pub(super) fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temp = path.with_extension("tmp");
    let mut options = fs_err::OpenOptions::new();
    let mut file = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temp)?;
    file.write_all(bytes)?;
    drop(file);
    fs_err::rename(&temp, path)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_files_are_frozen() {
        let spec = Spec {
            argv: vec!["a".to_owned()],
            ..Spec::default()
        };
        let json = r#"{"version":1,"argv":["a"],"dir":"/","stdin":"","hold_stdin":false,"close_stdin_on":[],"done_on":[],"linger_ms":1000,"pty":false,"orphan_ms":null,"wall_ms":null,"idle_ms":null,"spool_bytes":1073741824,"grace_ms":5000,"keep_background":false,"min_free_bytes":16777216,"lease_ms":null}"#;
        assert_eq!(serde_json::to_string(&spec).unwrap(), json);
        assert_eq!(
            serde_json::from_str::<Spec>(r#"{"argv":["a"],"new":1}"#).unwrap(),
            spec
        );

        let end = End {
            signal: Some(9),
            why: Why::SpoolFull,
            ..End::default()
        };
        let json =
            r#"{"code":null,"signal":9,"why":"spool_full","error":null,"leftovers":[],"killed":0}"#;
        assert_eq!(serde_json::to_string(&end).unwrap(), json);
    }

    #[test]
    fn saved_for_us_alone() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let spec = Spec {
            stdin: "x".to_owned(),
            ..Spec::default()
        };
        spec.save(folder.path()).unwrap();
        assert_eq!(Spec::load(folder.path()).unwrap(), spec);
        let mode = fs_err::metadata(folder.path().join("spec.json"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(End::load(folder.path()).unwrap(), None);
        Spec { version: 2, ..spec }.save(folder.path()).unwrap();
        assert!(Spec::load(folder.path()).is_err());
    }
}
