//! Named places at which a test can have this process die, as by `kill -9`. Inert in a release
//! build; crosses process borders, because a shim or a second command must be able to outlive it.

/// Dies here if `REJOIN_FAIL` names this point.
pub fn point(name: &str) {
    if cfg!(debug_assertions) && std::env::var("REJOIN_FAIL").is_ok_and(|wanted| wanted == name) {
        let me = nix::unistd::Pid::this();
        let _dead = nix::sys::signal::kill(me, nix::sys::signal::Signal::SIGKILL);
        std::process::abort();
    }
}
