//! Input of a shim (`spec.json`) and its result (`end.json`).
//!
//! Other builds of rejoin than the writer read both files: fields are only added, and a missing
//! field gets its default.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use fs_err::os::unix::fs::OpenOptionsExt;
use serde::{Deserialize, Serialize};

use crate::wall::Wall;

/// Description of one run of a CLI. Its environment is not included: it is the shim's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spec {
    pub version: u32,
    pub argv: Vec<String>,
    pub dir: PathBuf,
    pub stdin: String,
    /// Keep stdin open after `stdin` is written.
    pub hold_stdin: bool,
    /// Values of a top-level `type` (or, with the prefix `method:` or `id:`, of that member) of an
    /// output line after which a held stdin is closed.
    pub close_stdin_on: Vec<String>,
    /// Values of a top-level `type` of an output line after which the CLI has `linger_ms` to end.
    pub done_on: Vec<String>,
    pub linger_ms: u64,
    /// Name of the dialogue, for the process that reads the run; the shim ignores it. See
    /// `CommandSpec::dialogue`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dialogue: Option<String>,
    /// Folder of the process that the run goes through and that outlives it; the shim ignores it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warm: Option<PathBuf>,
    /// True if the CLI takes one prompt after the other and rests in between: see `Order::Rest`. If
    /// its clients leave it in the middle of a turn, it is interrupted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub rests: bool,
    /// True if the CLI's stdout is a terminal; its output is copied into `out`.
    pub pty: bool,
    /// Time without a client after which a held stdin is closed.
    pub orphan_ms: Option<u64>,
    pub wall_ms: Option<u64>,
    /// Longest time without growth of `out` or `err`.
    pub idle_ms: Option<u64>,
    /// Largest size of `out` and `err` together.
    pub spool_bytes: u64,
    /// Time between SIGINT and SIGTERM.
    pub grace_ms: u64,
    /// True if processes that the CLI left running may live when it ended by itself.
    pub keep_background: bool,
    pub min_free_bytes: u64,
    /// First lease, if the store is shared: see `Order::Lease`.
    pub lease_ms: Option<u64>,
    /// Wall that keeps folders from the run.
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

/// End of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShimEnd {
    /// Exit code of the CLI. If there is neither a code nor a signal, the end was not observed, or
    /// the CLI never started.
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub why: StopReason,
    pub error: Option<String>,
    /// Processes that the CLI left running.
    pub leftovers: Vec<Leftover>,
    /// Number of processes that were killed.
    pub killed: usize,
    /// Time that the CLI ran, in milliseconds, by a clock that cannot be set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ran_ms: Option<u64>,
}

impl Default for ShimEnd {
    fn default() -> Self {
        let why = StopReason::Exited;
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

impl ShimEnd {
    /// Writes `end.json` into the folder of a run whose shim cannot do it any more.
    pub(crate) fn save(&self, folder: &Path) -> io::Result<()> {
        put(&folder.join(END), &serde_json::to_vec(self)?)
    }

    pub(super) fn not_started(error: &io::Error) -> Self {
        Self {
            why: StopReason::NotStarted,
            error: Some(error.to_string()),
            ..Self::default()
        }
    }

    /// Returns the end of the turn in `folder`; None if it has not ended or its shim was killed.
    pub fn load(folder: &Path) -> io::Result<Option<Self>> {
        match fs_err::read(folder.join(END)) {
            // A file that a power cut damaged is ignored.
            Ok(text) => Ok(serde_json::from_slice(&text).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// First cause of the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    Exited,
    Wall,
    Idle,
    Stopped,
    Interrupted,
    SpoolFull,
    DiskFull,
    NotStarted,
    /// The lease was not renewed: as far as other machines know, this one is gone.
    LeaseRanOut,
}

/// Process that the CLI left running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftover {
    pub pid: i32,
    pub command: String,
}

/// Writes a private file atomically.
///
/// The file need not survive a power cut: that ends the run as well, and nothing here is trusted
/// after a reboot.
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

        let end = ShimEnd {
            signal: Some(9),
            why: StopReason::SpoolFull,
            ..ShimEnd::default()
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
        assert_eq!(ShimEnd::load(folder.path()).unwrap(), None);
        Spec { version: 2, ..spec }.save(folder.path()).unwrap();
        assert!(Spec::load(folder.path()).is_err());
    }
}
