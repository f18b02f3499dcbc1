//! Decides before a turn if a wall can be built around it, and with which mechanism.

use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::aliases::aliases;
use super::{Mechanism, Wall, WallConfig, WallMode, in_thread, namespace, real, rules};
use crate::config::RunnerConfig;

const HOME: &str = "the folder of the agent";
/// Bit of CAP_SYS_ADMIN in the mask of capabilities.
const SYS_ADMIN: u32 = 21;

/// Places that a run works in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Site<'a> {
    /// Working folder.
    pub(crate) folder: &'a Path,
    /// Program of the CLI.
    pub(crate) program: &'a Path,
    /// Folder in which the CLI keeps its sessions.
    pub(crate) home: &'a Path,
    /// `HOME` and `TMPDIR` of its environment.
    pub(crate) user: Option<&'a str>,
    pub(crate) temporary: Option<&'a str>,
    /// True if the CLI mounts folders itself, to build a sandbox.
    pub(crate) mounts: bool,
}

/// Wall of a run, or the reason why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WallPlan {
    Built(Wall),
    Off,
    /// The machine or the layout of folders does not allow a wall.
    Impossible(String),
}

impl WallPlan {
    pub fn wall(&self) -> Option<&Wall> {
        match self {
            Self::Built(wall) => Some(wall),
            Self::Off | Self::Impossible(_) => None,
        }
    }

    /// Returns the reason to refuse a turn that requires a wall.
    pub(crate) fn refusal(&self, mode: WallMode) -> Option<String> {
        match (self, mode) {
            (Self::Impossible(why), WallMode::Required) => Some(format!(
                "[wall] mode is `required`, and no wall can be built: {why}"
            )),
            (Self::Built(_) | Self::Off | Self::Impossible(_), _) => None,
        }
    }

    /// Returns a row for the turn's checks. It decides nothing.
    pub(crate) fn check(&self) -> serde_json::Value {
        let ok = self.wall().map(|_| true);
        serde_json::json!({"check": "wall", "ok": ok, "evidence": self.to_string()})
    }
}

impl fmt::Display for WallPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Built(wall) => f.write_str(wall.mechanism.about()),
            Self::Off => f.write_str("none: [wall] mode is `off`"),
            Self::Impossible(why) => write!(f, "none: {why}"),
        }
    }
}

impl Mechanism {
    /// Returns the name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Namespace => "namespace",
            Self::BareNamespace => "bare_namespace",
            Self::Landlock => "landlock",
        }
    }

    fn about(self) -> &'static str {
        match self {
            Self::Namespace => "data and configuration of rejoin hidden by a mount namespace",
            Self::BareNamespace => {
                "data and configuration of rejoin hidden by a mount namespace, which root outside \
                 the agent's own sandbox could undo"
            }
            Self::Landlock => "data and configuration of rejoin closed by Landlock",
        }
    }
}

/// Plans the wall of a run.
pub(crate) fn plan(config: &WallConfig, site: &Site<'_>) -> WallPlan {
    if config.mode == WallMode::Off {
        return WallPlan::Off;
    }
    if config.mode == WallMode::Required
        && let Some(link) = replaceable_link(&config.folders)
    {
        let shown = link.display();
        return WallPlan::Impossible(format!(
            "{shown} is a link, which an agent could replace; name the folder behind it"
        ));
    }
    let closed = closed(&config.folders);
    match fits(&closed, site) {
        Ok(mechanism) => WallPlan::Built(Wall {
            mechanism,
            closed,
            gaps: vec![],
        }),
        Err(why) => WallPlan::Impossible(why),
    }
}

/// Returns the wall that this machine builds around a run whose folders are not in the way.
pub fn here(config: &RunnerConfig) -> WallPlan {
    let temporary = config.var("TMPDIR");
    let nowhere = Site {
        folder: Path::new("/proc"),
        program: Path::new("/proc"),
        home: Path::new("/proc"),
        user: None,
        temporary: temporary.as_deref(),
        mounts: false,
    };
    plan(&config.wall, &nowhere)
}

/// Returns a link on the way to one of these folders in a folder in which this user may write. Mounts
/// and Landlock protect the folder behind it, not the link itself.
fn replaceable_link(folders: &[PathBuf]) -> Option<&Path> {
    let user = nix::unistd::geteuid();
    let is_link = |path: &&Path| {
        let is_ours = |folder: &Path| {
            fs_err::metadata(folder).is_ok_and(|meta| user.is_root() || meta.uid() == user.as_raw())
        };
        path.is_symlink() && path.parent().is_some_and(is_ours)
    };
    folders
        .iter()
        .flat_map(|folder| folder.ancestors())
        .find(is_link)
}

fn closed(folders: &[PathBuf]) -> Vec<PathBuf> {
    let real: Vec<PathBuf> = folders.iter().map(|folder| real(folder)).collect();
    let others = real.iter().flat_map(|folder| aliases(folder));
    let mut all: Vec<PathBuf> = real.iter().cloned().chain(others).collect();
    // After sorting, a folder comes directly before those in it.
    all.sort_unstable();
    all.dedup_by(|later, earlier| later.starts_with(earlier));
    all
}

fn fits(closed: &[PathBuf], site: &Site<'_>) -> Result<Mechanism, String> {
    let temporary = site.temporary.map(|path| real(Path::new(path)));
    let own = [
        ("the working folder", real(site.folder)),
        (HOME, real(site.home)),
        (
            "the temporary folder",
            temporary.unwrap_or_else(|| PathBuf::from("/tmp")),
        ),
    ];
    let program = ("the program of the agent", real(site.program));
    let user = site.user.map(|user| ("the home", real(Path::new(user))));
    let needed: Vec<_> = own.iter().chain([&program]).chain(&user).collect();
    for folder in closed {
        let shown = folder.display();
        if let Some((name, path)) = needed.iter().find(|(_, path)| path.starts_with(folder)) {
            return Err(format!("{name} {} is inside {shown}", path.display()));
        }
    }
    if !rules::is_available() {
        return Err("this kernel has no Landlock of version 2 or newer".to_owned());
    }
    if may_mount(closed) {
        let bare = site.mounts;
        return Ok(if bare {
            Mechanism::BareNamespace
        } else {
            Mechanism::Namespace
        });
    }
    if site.mounts {
        return Err(
            "the agent mounts folders for its own sandbox, which only root may do behind a wall"
                .to_owned(),
        );
    }
    if !site.home.is_dir() {
        let shown = site.home.display();
        return Err(format!(
            "{shown} does not exist yet, and Landlock would keep the agent from making it"
        ));
    }
    // A described agent may keep files anywhere in the user's home; existing files stay usable.
    let is_user = |path: &Path| site.user.is_some_and(|user| real(Path::new(user)) == path);
    for folder in closed {
        let shown = folder.display();
        let mut holders = own.iter().filter(|(_, path)| folder.starts_with(path));
        if let Some((name, path)) = holders.find(|(name, path)| *name != HOME || !is_user(path)) {
            return Err(format!(
                "{name} {} contains {shown}, and Landlock would keep the agent from making files in it",
                path.display()
            ));
        }
    }
    rules::beside(closed).map_err(|error| error.to_string())?;
    Ok(Mechanism::Landlock)
}

/// Returns true if this process may mount. Tries it, because a container may forbid an operation
/// that the capability allows.
fn may_mount(closed: &[PathBuf]) -> bool {
    let existing = closed.iter().filter(|folder| folder.is_dir());
    let existing: Vec<PathBuf> = existing.cloned().collect();
    !rejoin_hub::fault::is_plain_user()
        && has_capability(SYS_ADMIN)
        && in_thread(|| namespace::cover(&existing, &[]).and_then(|()| namespace::lock())).is_ok()
}

fn has_capability(bit: u32) -> bool {
    let status = fs_err::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << bit) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_in_folders_are_closed_with_them() {
        let dir = tempfile::tempdir().unwrap();
        let dir = fs_err::canonicalize(dir.path()).unwrap();
        fs_err::create_dir_all(dir.join("a/b")).unwrap();
        std::os::unix::fs::symlink(dir.join("a"), dir.join("link")).unwrap();
        let folders = ["link/b", "a", "missing/x", "ab"].map(|name| dir.join(name));
        let expected = ["a", "ab", "missing/x"].map(|name| dir.join(name));
        assert_eq!(closed(&folders), expected);
    }

    #[test]
    fn a_run_inside_a_protected_folder_has_no_wall() {
        let dir = tempfile::tempdir().unwrap();
        let config = WallConfig {
            mode: WallMode::Required,
            folders: vec![dir.path().to_owned()],
        };
        let site = Site {
            folder: &dir.path().join("work"),
            program: Path::new("/proc"),
            home: Path::new("/proc"),
            user: None,
            temporary: None,
            mounts: false,
        };
        let program = Site {
            folder: Path::new("/proc"),
            program: &dir.path().join("agent"),
            ..site
        };
        let why = plan(&config, &program).to_string();
        assert!(why.contains("the program of the agent"), "{why}");
        let standing = plan(&config, &site);
        let why = standing.refusal(WallMode::Required).unwrap();
        assert!(why.contains("the working folder"), "{why}");
        assert_eq!(standing.refusal(WallMode::Auto), None);
        assert_eq!(standing.check()["ok"], serde_json::Value::Null);
        let off = WallConfig::default();
        assert_eq!(plan(&off, &site), WallPlan::Off);
    }
}
