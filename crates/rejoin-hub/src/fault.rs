//! Named points at which a test lets this process die, as by `kill -9`. Disabled in release builds.
//! Environment variables carry them across processes, because a shim or a second command must be
//! able to outlive this one. The same variables fake machines and lease times: a test has one
//! machine and no time to wait for leases.

use std::time::Duration;

/// Kills this process if `REJOIN_FAIL` names this point.
pub fn point(name: &str) {
    if cfg!(debug_assertions) && std::env::var("REJOIN_FAIL").is_ok_and(|wanted| wanted == name) {
        let me = nix::unistd::Pid::this();
        let _dead = nix::sys::signal::kill(me, nix::sys::signal::Signal::SIGKILL);
        std::process::abort();
    }
}

/// Name of the machine that a test pretends to be.
pub fn machine() -> Option<String> {
    let said = || std::env::var("REJOIN_FAKE_MACHINE").ok();
    if cfg!(debug_assertions) { said() } else { None }
}

/// Returns true if a test asks for the behaviour of a user without privileges.
pub fn is_plain_user() -> bool {
    cfg!(debug_assertions) && std::env::var_os("REJOIN_FAKE_USER").is_some()
}

/// Duration of a lease in a test.
pub fn lease() -> Option<Duration> {
    said("REJOIN_FAKE_LEASE")
}

/// Interval of captures during a running turn in a test.
pub fn every() -> Option<Duration> {
    said("REJOIN_FAKE_EVERY")
}

/// Time that a request waits for a stopping turn in a test.
pub fn stops() -> Option<Duration> {
    said("REJOIN_FAKE_STOPS")
}

/// Blocks the thread while the file named by `REJOIN_FAKE_HOLD` exists, for five minutes at most.
/// Simulates a disk that does not respond.
pub fn hold() {
    let held = || std::env::var_os("REJOIN_FAKE_HOLD").map(std::path::PathBuf::from);
    let Some(file) = (if cfg!(debug_assertions) { held() } else { None }) else {
        return;
    };
    for _ in 0..30_000 {
        if !file.exists() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn said(name: &str) -> Option<Duration> {
    let said = || std::env::var(name).ok();
    let said = if cfg!(debug_assertions) { said() } else { None };
    said?.parse().ok().map(Duration::from_millis)
}
