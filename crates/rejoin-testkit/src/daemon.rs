//! A real daemon, and an HTTP client for it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::world::World;

/// Timeout of every operation here.
const PATIENCE: Duration = Duration::from_mins(2);

/// A `rejoin serve` process with its own world.
pub struct Daemon {
    child: Child,
    /// Address such as `127.0.0.1:PORT`.
    pub address: String,
    pub token: String,
    log: PathBuf,
}

/// An HTTP response.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    #[track_caller]
    pub fn ok(self) -> Value {
        assert!((200..300).contains(&self.status), "{self:?}");
        self.json()
    }
}

/// A streamed event.
#[derive(Debug, Clone, PartialEq)]
pub struct Streamed {
    pub id: i64,
    pub kind: String,
    pub data: Value,
}

impl World {
    /// Starts the daemon. The first one creates a token with all rights.
    #[track_caller]
    pub fn serve(&self, more: &[&str]) -> Daemon {
        self.serve_logging(&self.data().join("test-log"), more)
    }

    /// Starts the daemon with its log in another file.
    #[track_caller]
    pub fn serve_logging(&self, log: &Path, more: &[&str]) -> Daemon {
        let token = self.data().join("test-token");
        if !token.exists() {
            let made = self
                .run(&[
                    "token",
                    "create",
                    "test",
                    "--scope",
                    "admin",
                    "--max-permission",
                    "full",
                    "--json",
                ])
                .ok();
            std::fs::write(&token, made.json()["token"].as_str().unwrap()).unwrap();
        }
        let token = std::fs::read_to_string(token).unwrap();
        let mut args = vec!["serve", "--listen", "127.0.0.1:0"];
        args.extend(more);
        let mut command = self.command(&args);
        let writes = std::fs::File::options().create(true).append(true).open(log);
        let mut child = command.stderr(writes.unwrap()).spawn().unwrap();
        let mut line = String::new();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        said.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on http://");
        let said = || std::fs::read_to_string(log).unwrap_or_default();
        let address = address
            .unwrap_or_else(|| panic!("{line:?} {}", said()))
            .to_owned();
        Daemon {
            child,
            address,
            token,
            log: log.to_owned(),
        }
    }
}

impl Daemon {
    /// Returns the stderr output of the daemons of this world so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Kills the daemon as an out-of-memory killer would.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits until the daemon has ended by itself.
    #[track_caller]
    pub fn wait_until_gone(mut self) {
        crate::wait_for("the daemon to end", 30, || {
            self.child.try_wait().unwrap().map(drop)
        });
    }

    /// Stops the daemon as systemd would. Returns its exit code.
    pub fn stop(mut self) -> i32 {
        crate::running::kill(self.pid(), "TERM");
        self.child.wait().unwrap().code().unwrap_or(-1)
    }

    #[track_caller]
    pub fn get(&self, path: &str) -> Answer {
        self.call("GET", path, &[], None)
    }

    #[track_caller]
    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.call("POST", path, &[], Some(body))
    }

    /// Sends a request with further header lines. A given header replaces the default one of that
    /// name.
    #[track_caller]
    pub fn call(&self, method: &str, path: &str, headers: &[&str], body: Option<&Value>) -> Answer {
        let body = body.map(ToString::to_string);
        let head = self.head(method, path, headers, body.as_deref());
        let mut request = head.into_bytes();
        request.extend(body.unwrap_or_default().into_bytes());
        self.raw(&request)
    }

    fn head(&self, method: &str, path: &str, headers: &[&str], body: Option<&str>) -> String {
        let mut lines = vec![
            format!("{method} {path} HTTP/1.1"),
            "Connection: close".to_owned(),
        ];
        let own = [
            format!("Host: {}", self.address),
            format!("Authorization: Bearer {}", self.token),
        ];
        let name = |line: &str| line.split(':').next().unwrap().to_lowercase();
        let given: Vec<String> = headers.iter().map(|line| name(line)).collect();
        lines.extend(own.into_iter().filter(|line| !given.contains(&name(line))));
        lines.extend(
            headers
                .iter()
                .filter(|h| !h.ends_with(": -"))
                .map(ToString::to_string),
        );
        if let Some(body) = body {
            lines.push(format!("Content-Length: {}", body.len()));
        }
        lines.join("\r\n") + "\r\n\r\n"
    }

    /// Sends the bytes unchanged.
    #[track_caller]
    pub fn raw(&self, request: &[u8]) -> Answer {
        let mut stream = self.connect();
        // The daemon may have answered and closed the connection before reading everything.
        let _heard = stream.write_all(request);
        let mut answer = vec![];
        let _until_it_hangs_up = stream.read_to_end(&mut answer);
        let text = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|s| s.parse().ok());
        let chunked = head.to_lowercase().contains("transfer-encoding: chunked");
        Answer {
            status: status.unwrap_or(0),
            head: head.to_owned(),
            body: if chunked {
                unchunked(body)
            } else {
                body.to_owned()
            },
        }
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends a message and waits for the end of its turn.
    #[track_caller]
    pub fn say(&self, key: &str, text: &str, more: &[(&str, Value)]) -> Value {
        let mut body = serde_json::json!({"key": key, "text": text});
        for (name, value) in more {
            body[*name] = value.clone();
        }
        self.post("/api/send?wait=true", &body).ok()
    }

    /// Watches events, from `after` on, or only new ones.
    pub fn watch(&self, path: &str, after: Option<i64>) -> Watching {
        let last = after.map(|id| format!("Last-Event-ID: {id}"));
        let headers: Vec<&str> = last.iter().map(String::as_str).collect();
        let request = self.head("GET", path, &headers, None);
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let (send, events) = channel();
        let mut lines = BufReader::new(stream.try_clone().unwrap());
        // From here on, new events are received.
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(lines.read_line(&mut head).unwrap_or(0) > 0, "{head}");
        }
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        std::thread::spawn(move || {
            let (mut id, mut kind) = (0, String::new());
            let mut line = String::new();
            while matches!(lines.read_line(&mut line), Ok(n) if n > 0) {
                let text = line.trim_end();
                if let Some(found) = text.strip_prefix("id: ") {
                    id = found.parse().unwrap();
                } else if let Some(found) = text.strip_prefix("event: ") {
                    found.clone_into(&mut kind);
                } else if let Some(found) = text.strip_prefix("data: ") {
                    let data = serde_json::from_str(found).unwrap();
                    let kind = std::mem::take(&mut kind);
                    if send.send(Streamed { id, kind, data }).is_err() {
                        return;
                    }
                }
                line.clear();
            }
        });
        Watching { events, stream }
    }
}

impl Drop for Daemon {
    /// Stops the daemon regularly, including its idle processes. Kills it if it does not stop.
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            crate::running::kill(self.pid(), "TERM");
        }
        let deadline = Instant::now() + Duration::from_secs(20);
        while let Ok(None) = self.child.try_wait() {
            if Instant::now() > deadline {
                let _gone = self.child.kill();
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// A client that receives events.
pub struct Watching {
    events: Receiver<Streamed>,
    stream: TcpStream,
}

impl Watching {
    /// Returns the next event.
    #[track_caller]
    pub fn next(&self) -> Streamed {
        self.events.recv_timeout(PATIENCE).unwrap()
    }

    /// Returns all events up to the first that fits, inclusive.
    #[track_caller]
    pub fn until(&self, fits: impl Fn(&Streamed) -> bool) -> Vec<Streamed> {
        let mut seen = vec![];
        loop {
            seen.push(self.next());
            if seen.last().is_some_and(&fits) {
                return seen;
            }
        }
    }

    /// Returns all events until the daemon closes the connection, or none comes for that time.
    pub fn rest(&self, within: Duration) -> Vec<Streamed> {
        let mut seen = vec![];
        loop {
            match self.events.recv_timeout(within) {
                Ok(event) => seen.push(event),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return seen,
            }
        }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        drop(self.stream.shutdown(std::net::Shutdown::Both));
    }
}

fn unchunked(body: &str) -> String {
    let (mut rest, mut whole) = (body, String::new());
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        if size == 0 || !after.is_char_boundary(size) || after.len() < size {
            break;
        }
        whole.push_str(&after[..size]);
        rest = after[size..].trim_start_matches("\r\n");
    }
    whole
}
