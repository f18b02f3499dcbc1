//! Garage, an S3 server for production use: it checks signatures. For the long run: one node and
//! one bucket on loopback, as long as the test lasts.

use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::clis::deps;
use crate::procs::wait_for;
use crate::s3::free_port;

const BUCKET: &str = "sessions";

pub struct Garage {
    process: Child,
    folder: tempfile::TempDir,
    program: PathBuf,
    pub endpoint: String,
    pub key_id: String,
    pub secret: String,
}

impl Garage {
    /// Starts Garage. Never returns `None`: a test without Garage fails. Only the long run needs
    /// it, and `scripts/test --long` installs it.
    pub fn start() -> Option<Self> {
        let program = deps().join("garage-2.5.0/bin/garage");
        assert!(
            program.exists(),
            "Garage is not installed; run ./scripts/test --long, which installs it"
        );
        let folder = tempfile::tempdir().unwrap();
        let (api, rpc) = (free_port(), free_port());
        let at = folder.path().display();
        let config = format!(
            "metadata_dir = \"{at}/meta\"\ndata_dir = \"{at}/data\"\ndb_engine = \"sqlite\"\n\
            replication_factor = 1\nrpc_bind_addr = \"127.0.0.1:{rpc}\"\n\
            rpc_public_addr = \"127.0.0.1:{rpc}\"\nrpc_secret = \"{}\"\n\
            [s3_api]\ns3_region = \"garage\"\napi_bind_addr = \"127.0.0.1:{api}\"\n",
            "5a".repeat(32)
        );
        std::fs::write(folder.path().join("garage.toml"), config).unwrap();
        let mut command = Command::new(&program);
        command
            .arg("-c")
            .arg(folder.path().join("garage.toml"))
            .arg("server");
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut garage = Self {
            process: command.spawn().unwrap(),
            folder,
            program,
            endpoint: format!("http://127.0.0.1:{api}"),
            key_id: String::new(),
            secret: String::new(),
        };
        wait_for("garage", 60, || TcpStream::connect(("127.0.0.1", api)).ok());
        garage.set_up();
        Some(garage)
    }

    fn set_up(&mut self) {
        let node = self.run(&["node", "id", "-q"]);
        let node = node.trim().split('@').next().unwrap().to_owned();
        self.run(&["layout", "assign", "-z", "here", "-c", "1G", &node]);
        self.run(&["layout", "apply", "--version", "1"]);
        self.run(&["bucket", "create", BUCKET]);
        let said = self.run(&["key", "create", "tests"]);
        let after = |label: &str| {
            let line = said
                .lines()
                .find(|line| line.trim_start().starts_with(label));
            line.unwrap().split_whitespace().last().unwrap().to_owned()
        };
        self.key_id = after("Key ID:");
        self.secret = after("Secret key:");
        self.run(&[
            "bucket", "allow", "--read", "--write", "--owner", BUCKET, "--key", "tests",
        ]);
    }

    fn run(&self, args: &[&str]) -> String {
        let mut command = Command::new(&self.program);
        command
            .arg("-c")
            .arg(self.folder.path().join("garage.toml"))
            .args(args);
        let done = command.output().unwrap();
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(done.status.success(), "{args:?}: {said} {done:?}");
        said
    }

    pub fn url(&self) -> String {
        format!("s3://{BUCKET}/some/prefix")
    }
}

impl Drop for Garage {
    fn drop(&mut self) {
        let _gone = self.process.kill();
        let _gone = self.process.wait();
    }
}
