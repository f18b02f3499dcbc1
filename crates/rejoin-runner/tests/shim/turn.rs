//! A turn folder with a shim on it, cleaned up whatever happens.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rejoin_runner::holder::Holder;
use rejoin_runner::process::{ShimChild, ShimExit, spawn_shim};
use rejoin_runner::shim::{Begun, ShimEnd, Spec, begun};
use rejoin_runner::stray_processes;
use tempfile::TempDir;

pub(crate) const SHIM: &str = env!("CARGO_BIN_EXE_rejoin-shim");

pub(crate) struct Turn {
    _temp: TempDir,
    pub(crate) folder: PathBuf,
    pub(crate) id: String,
    pub(crate) shim: Option<ShimChild>,
}

impl Turn {
    /// A folder with a spec, nothing started.
    pub(crate) fn prepared(spec: &Spec) -> Self {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().to_owned();
        spec.save(&folder).unwrap();
        let id = folder.file_name().unwrap().to_str().unwrap().to_owned();
        Self {
            _temp: temp,
            folder,
            id,
            shim: None,
        }
    }

    pub(crate) fn start(spec: &Spec) -> Self {
        let mut turn = Self::prepared(spec);
        turn.shim = Some(turn.spawn());
        turn
    }

    pub(crate) fn spawn(&self) -> ShimChild {
        spawn_shim(Path::new(SHIM), &self.folder, self.env()).unwrap()
    }

    pub(crate) fn env(&self) -> [(OsString, OsString); 2] {
        [
            ("PATH".into(), std::env::var_os("PATH").unwrap()),
            ("REJOIN_TURN".into(), self.id.clone().into()),
        ]
    }

    pub(crate) fn file(&self, name: &str) -> String {
        let bytes = fs_err::read(self.folder.join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Waits until the CLI has printed this.
    pub(crate) fn until_out(&self, text: &str) {
        until(&format!("{text} in out"), || {
            self.file("out").contains(text)
        });
    }

    pub(crate) fn cli(&self) -> Holder {
        until("cli.json", || self.folder.join("cli.json").exists());
        serde_json::from_str(&self.file("cli.json")).unwrap()
    }

    pub(crate) fn shim_holder(&self) -> Holder {
        until("begin", || matches!(begun(&self.folder), Ok(Begun::By(_))));
        let Ok(Begun::By(holder)) = begun(&self.folder) else {
            panic!("begun by nobody")
        };
        holder
    }

    pub(crate) fn signal_shim(&self, signal: Signal) {
        kill(Pid::from_raw(self.shim_holder().pid), signal).unwrap();
    }

    /// Waits for the end of CLI and shim.
    pub(crate) fn end(&mut self) -> ShimEnd {
        until("end.json", || self.folder.join("end.json").exists());
        if let Some(shim) = &mut self.shim {
            until("the shim's end", || shim.try_wait().unwrap().is_some());
            assert_eq!(shim.try_wait().unwrap(), Some(ShimExit::Code(0)));
        }
        assert!(!self.folder.join("s").exists() || self.shim.is_none());
        ShimEnd::load(&self.folder).unwrap().unwrap()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let ended = stray_processes::end_marked(&self.id);
        if !thread::panicking() {
            ended.unwrap();
        }
    }
}

pub(crate) fn sh(script: &str) -> Spec {
    Spec {
        argv: vec!["sh".into(), "-c".into(), script.into()],
        ..Spec::default()
    }
}

pub(crate) fn python(script: &str) -> Spec {
    let argv = vec!["python3".into(), "-Suc".into(), script.into()];
    Spec {
        argv,
        ..Spec::default()
    }
}

/// Waits for a condition, with a deadline.
pub(crate) fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < deadline, "still waiting for {what}");
        thread::sleep(Duration::from_millis(3));
    }
}

pub(crate) fn is_running(pid: i32) -> bool {
    Holder::of(pid).is_ok_and(|it| it.is_alive())
}
