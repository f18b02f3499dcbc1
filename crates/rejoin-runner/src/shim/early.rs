//! A shim that is started before it is known what it will run.
//!
//! To start a process takes a millisecond, most of it loading: time in which the runner looks,
//! decides and writes ahead. What to run is said in one line on stdin. Whoever started us and ends
//! before that line is whole has started nothing: we read its end and go.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Stands for the folder of a run that is told later.
pub(crate) const LATER: &str = "-";

/// The line. Both ends are the same executable, so it may change with every build.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Told {
    pub(crate) folder: PathBuf,
    /// What the command adds to the environment the shim was started with.
    pub(crate) env: Vec<(String, String)>,
}

impl Told {
    pub(crate) fn say(&self, line: &mut UnixStream) -> io::Result<()> {
        let mut text = serde_json::to_vec(self)?;
        text.push(b'\n');
        line.write_all(&text)
    }

    /// Waits for the line; `None` if it will not come any more.
    pub(super) fn hear(line: &mut UnixStream) -> io::Result<Option<Self>> {
        let mut text = Vec::new();
        let mut block = [0; 4096];
        while text.last() != Some(&b'\n') {
            match line.read(&mut block) {
                Ok(0) => return Ok(None),
                // Nothing follows the line: orders are given only after our hello.
                Ok(count) => text.extend_from_slice(&block[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Some(serde_json::from_slice(&text)?))
    }
}

/// The socket we were started with as stdin.
pub(super) fn line() -> io::Result<UnixStream> {
    Ok(UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn half_a_line_is_none() {
        let told = Told {
            folder: "/a\nb".into(),
            env: vec![("A".into(), "1\n2".into())],
        };
        let (mut near, mut far) = UnixStream::pair().unwrap();
        told.say(&mut near).unwrap();
        assert_eq!(Told::hear(&mut far).unwrap(), Some(told));
        near.write_all(br#"{"folder":"/a","env":[]}"#).unwrap();
        drop(near);
        assert_eq!(Told::hear(&mut far).unwrap(), None);
    }
}
