//! An S3 server on loopback, for the duration of a test.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::clis::tool;
use crate::procs::wait_for;

/// Key that s3rver knows. It does not check signatures; Garage does, in the long run.
const KEY: &str = "S3RVER";
const BUCKET: &str = "chunks-of-tests";

/// A server with one bucket.
pub struct S3 {
    process: Child,
    folder: tempfile::TempDir,
    pub endpoint: String,
}

impl S3 {
    /// Starts the server. Never returns `None`: a test without it fails.
    pub fn start() -> Option<Self> {
        let program = tool("s3rver-3.7.1", ".bin/s3rver");
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let mut command = Command::new(program);
        command
            .args([
                "--silent",
                "--address",
                "127.0.0.1",
                "--port",
                &port.to_string(),
            ])
            .args(["--configure-bucket", BUCKET, "--directory"])
            .arg(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let process = command.spawn().unwrap();
        wait_for("the S3 server", 30, || {
            TcpStream::connect(("127.0.0.1", port)).ok()
        });
        Some(Self {
            process,
            folder,
            endpoint: format!("http://127.0.0.1:{port}"),
        })
    }

    pub fn url(&self) -> String {
        format!("s3://{BUCKET}/some/prefix")
    }

    /// Returns the variables that make rejoin use it at that endpoint: its own, or a proxy in front
    /// of it.
    pub fn variables(&self, endpoint: &str) -> [(&'static str, String); 4] {
        [
            ("REJOIN_BLOBS_URL", self.url()),
            ("REJOIN_BLOBS_ENDPOINT", endpoint.to_owned()),
            ("REJOIN_BLOBS_ACCESS_KEY_ID", KEY.to_owned()),
            ("REJOIN_BLOBS_SECRET_ACCESS_KEY", KEY.to_owned()),
        ]
    }

    /// Returns the files of its objects' bodies.
    pub fn bodies(&self) -> Vec<PathBuf> {
        let mut found = vec![];
        files(self.folder.path(), &mut found);
        found.retain(|path| path.to_str().unwrap().ends_with("._S3rver_object"));
        found.sort();
        found
    }
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// Returns a port that is free now.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

impl Drop for S3 {
    fn drop(&mut self) {
        let _gone = self.process.kill();
        let _gone = self.process.wait();
    }
}
