//! Named places at which a test can have this process die, as by `kill -9`. Inert in a release
//! build; crosses process borders, because a shim or a second command must be able to outlive it.
//! And what a test says of machines and leases: it has one of the former and no time for the latter.

use std::time::Duration;

/// Dies here if `REJOIN_FAIL` names this point.
pub fn point(name: &str) {
    if cfg!(debug_assertions) && std::env::var("REJOIN_FAIL").is_ok_and(|wanted| wanted == name) {
        let me = nix::unistd::Pid::this();
        let _dead = nix::sys::signal::kill(me, nix::sys::signal::Signal::SIGKILL);
        std::process::abort();
    }
}

/// The name of the machine that a test plays.
pub fn machine() -> Option<String> {
    let said = || std::env::var("REJOIN_FAKE_MACHINE").ok();
    if cfg!(debug_assertions) { said() } else { None }
}

/// True if a test wants what a user without privileges gets.
pub fn is_plain_user() -> bool {
    cfg!(debug_assertions) && std::env::var_os("REJOIN_FAKE_USER").is_some()
}

/// How long a lease lasts in a test.
pub fn lease() -> Option<Duration> {
    said("REJOIN_FAKE_LEASE")
}

/// How often a test has the session of a turn that runs captured.
pub fn every() -> Option<Duration> {
    said("REJOIN_FAKE_EVERY")
}

/// How long a test lets a request wait for a turn that was told to stop.
pub fn stops() -> Option<Duration> {
    said("REJOIN_FAKE_STOPS")
}

/// Blocks the thread while the file that `REJOIN_FAKE_HOLD` names exists, for five minutes at most: a disk
/// that does not answer.
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
