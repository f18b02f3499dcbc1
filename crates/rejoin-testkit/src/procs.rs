//! Waits for conditions, and searches processes that should be gone.

use std::time::{Duration, Instant};

/// Waits until `ready` returns a value, for at least 90 seconds or `seconds` if that is more.
#[track_caller]
pub fn wait_for<T>(what: &str, seconds: u64, mut ready: impl FnMut() -> Option<T>) -> T {
    // A busy machine is slow, not wrong.
    let deadline = Instant::now() + Duration::from_secs(seconds.max(90));
    loop {
        if let Some(value) = ready() {
            return value;
        }
        assert!(Instant::now() < deadline, "gave up waiting for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Returns the live processes (pid, command line) whose environment contains `NAME=VALUE`.
pub fn marked(name_value: &str) -> Vec<(i32, String)> {
    let wanted = name_value.as_bytes();
    let mut found = vec![];
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|n| n.parse::<i32>().ok())
        else {
            continue;
        };
        let env = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        if env.split(|b| *b == 0).any(|v| v == wanted) {
            let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            found.push((pid, String::from_utf8_lossy(&command).replace('\0', " ")));
        }
    }
    found
}
