//! A proxy on loopback that injects faults: one for each request, in order, and then none.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Passes the request on unchanged.
    None,
    /// Reads the request and closes the connection without an answer.
    Refuse,
    /// The request reaches the server, but its answer gets lost.
    LoseAnswer,
    /// Answers with this status instead.
    Status(u16),
    /// Sends half of the answer's body, then closes the connection.
    Truncate,
    /// Flips a bit in the answer's body.
    Flip,
    /// Sends no answer as long as the client waits.
    Stall,
}

pub struct Faulty {
    pub endpoint: String,
    faults: Arc<Mutex<VecDeque<Fault>>>,
    /// First lines of the received requests.
    seen: Arc<Mutex<Vec<String>>>,
}

impl Faulty {
    /// Starts a proxy in front of the server at `endpoint`.
    pub fn before(endpoint: &str) -> Self {
        let upstream = endpoint.trim_start_matches("http://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let faults = Arc::new(Mutex::new(VecDeque::new()));
        let seen = Arc::new(Mutex::new(vec![]));
        let shared = (Arc::clone(&faults), Arc::clone(&seen));
        // Ends with the test's process.
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (faults, seen) = (Arc::clone(&shared.0), Arc::clone(&shared.1));
                let upstream = upstream.clone();
                thread::spawn(move || serve(client, &upstream, &faults, &seen));
            }
        });
        Self {
            endpoint,
            faults,
            seen,
        }
    }

    /// Adds faults for the next requests, one each.
    pub fn then(&self, faults: &[Fault]) {
        self.faults.lock().unwrap().extend(faults);
    }

    /// Returns the requests since the last call.
    pub fn seen(&self) -> Vec<String> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }

    /// Drops the faults that no request has met yet.
    pub fn clear(&self) {
        self.faults.lock().unwrap().clear();
    }
}

fn serve(
    mut client: TcpStream,
    upstream: &str,
    faults: &Mutex<VecDeque<Fault>>,
    seen: &Mutex<Vec<String>>,
) {
    let Some((head, body)) = request(&mut client) else {
        return;
    };
    seen.lock()
        .unwrap()
        .push(head.lines().next().unwrap_or_default().to_owned());
    let fault = faults.lock().unwrap().pop_front().unwrap_or(Fault::None);
    match fault {
        Fault::Refuse => return,
        Fault::Status(status) => {
            let answer = format!(
                "HTTP/1.1 {status} Fault\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            );
            let _gone = client.write_all(answer.as_bytes());
            return;
        }
        Fault::Stall => {
            // Waits until the client gives up.
            let _gone = client.read(&mut [0; 1]);
            return;
        }
        Fault::None | Fault::LoseAnswer | Fault::Truncate | Fault::Flip => {}
    }
    let Some(mut answer) = passed_on(upstream, &head, &body) else {
        return;
    };
    let begins = answer
        .windows(4)
        .position(|w| w == b"\r\n\r\n")
        .map_or(0, |at| at + 4);
    let middle = begins + (answer.len() - begins) / 2;
    match fault {
        Fault::LoseAnswer => return,
        Fault::Truncate => answer.truncate(middle),
        Fault::Flip => {
            if let Some(byte) = answer.get_mut(middle) {
                *byte ^= 1;
            }
        }
        Fault::None | Fault::Refuse | Fault::Status(_) | Fault::Stall => {}
    }
    let _gone = client.write_all(&answer);
    let _gone = client.shutdown(Shutdown::Both);
}

/// Returns the whole answer of the server.
fn passed_on(upstream: &str, head: &str, body: &[u8]) -> Option<Vec<u8>> {
    let mut server = TcpStream::connect(upstream).ok()?;
    let lines = head.trim_end().split("\r\n");
    let kept = lines.filter(|line| !line.to_ascii_lowercase().starts_with("connection:"));
    let head = kept.collect::<Vec<_>>().join("\r\n") + "\r\nConnection: close\r\n\r\n";
    server.write_all(head.as_bytes()).ok()?;
    server.write_all(body).ok()?;
    let mut answer = vec![];
    server.read_to_end(&mut answer).ok()?;
    Some(answer)
}

fn request(client: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = vec![];
    let mut piece = [0; 16 * 1024];
    let ends = loop {
        if let Some(at) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            break at + 4;
        }
        match client.read(&mut piece) {
            Ok(n) if n > 0 => bytes.extend_from_slice(&piece[..n]),
            Ok(_) | Err(_) => return None,
        }
    };
    let mut body = bytes.split_off(ends);
    let head = String::from_utf8(bytes).ok()?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse::<usize>().ok())?
    });
    while body.len() < length.unwrap_or(0) {
        match client.read(&mut piece) {
            Ok(n) if n > 0 => body.extend_from_slice(&piece[..n]),
            Ok(_) | Err(_) => return None,
        }
    }
    Some((head, body))
}
