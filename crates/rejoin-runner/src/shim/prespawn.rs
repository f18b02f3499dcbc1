//! A shim that is started before its run is known.
//!
//! Starting a process takes a millisecond, most of it loading: time in which the runner gathers
//! facts, decides and writes ahead. The run arrives as one line on stdin. If the process that started
//! us ends before that line is complete, we read EOF and exit, and nothing was started.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Placeholder for the folder of a run that is named later.
pub(crate) const LATER: &str = "-";

/// The line that names the run. Both ends are the same executable, so its format may change with
/// every build.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunAssignment {
    pub(crate) folder: PathBuf,
    /// Variables that the command adds to the environment with which the shim was started.
    pub(crate) env: Vec<(String, String)>,
}

impl RunAssignment {
    pub(crate) fn say(&self, line: &mut UnixStream) -> io::Result<()> {
        let mut text = serde_json::to_vec(self)?;
        text.push(b'\n');
        line.write_all(&text)
    }

    /// Waits for the line. Returns None if stdin ends first.
    pub(super) fn hear(line: &mut UnixStream) -> io::Result<Option<Self>> {
        let mut text = Vec::new();
        let mut block = [0; 4096];
        while text.last() != Some(&b'\n') {
            match line.read(&mut block) {
                Ok(0) => return Ok(None),
                // Nothing follows the line: orders are sent only after our hello.
                Ok(count) => text.extend_from_slice(&block[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Some(serde_json::from_slice(&text)?))
    }
}

/// Returns the socket that we were started with as stdin.
pub(super) fn line() -> io::Result<UnixStream> {
    Ok(UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn half_a_line_is_none() {
        let told = RunAssignment {
            folder: "/a\nb".into(),
            env: vec![("A".into(), "1\n2".into())],
        };
        let (mut near, mut far) = UnixStream::pair().unwrap();
        told.say(&mut near).unwrap();
        assert_eq!(RunAssignment::hear(&mut far).unwrap(), Some(told));
        near.write_all(br#"{"folder":"/a","env":[]}"#).unwrap();
        drop(near);
        assert_eq!(RunAssignment::hear(&mut far).unwrap(), None);
    }
}
