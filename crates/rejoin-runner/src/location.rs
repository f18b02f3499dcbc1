//! Identifies the place of the turns' folders: one home on one machine. Only a process in that
//! place can inspect a turn; all others rely on its lease.

use std::fmt;
use std::io::{self, Write as _};
use std::path::Path;
use std::str::FromStr;

use fs_err::os::unix::fs::OpenOptionsExt as _;
use rejoin_hub::fault;

use crate::holder::Holder;

/// Home on a machine. Its name has no meaning; it is only compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HomeLocation {
    /// Hash of machine id, host name and pid namespace: a container counts as a machine of its own.
    machine: String,
    home: String,
}

/// Holder of a turn: the process and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HolderAt {
    /// Location of the home; None from a build that did not record it.
    pub place: Option<HomeLocation>,
    pub process: Holder,
}

/// File in the home that identifies it for as long as the file exists.
const ID: &str = "id";
const LETTERS: usize = 16;

impl HomeLocation {
    pub fn of(home: &Path) -> io::Result<Self> {
        Ok(Self {
            machine: here(),
            home: id_of(home)?,
        })
    }

    /// Reads the place without creating the home's id. A home without an id matches no place.
    pub fn seen_from(home: &Path) -> Self {
        let home = read_id(&home.join(ID)).ok().flatten();
        Self {
            machine: here(),
            home: home.unwrap_or_default(),
        }
    }

    pub fn is_same_home(&self, other: &Self) -> bool {
        self.home == other.home
    }
}

fn here() -> String {
    if let Some(played) = fault::machine() {
        return digest(&[&played]);
    }
    let read = |path: &str| fs_err::read_to_string(path).unwrap_or_default();
    let processes = fs_err::read_link("/proc/self/ns/pid").unwrap_or_default();
    digest(&[
        &read("/etc/machine-id"),
        &read("/proc/sys/kernel/hostname"),
        &processes.to_string_lossy(),
    ])
}

fn digest(parts: &[&str]) -> String {
    let mut hash = blake3::Hasher::new();
    for part in parts {
        hash.update(&(part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().to_hex()[..LETTERS].to_owned()
}

/// Returns the id of the home and creates it at first use. It is random: another home at the same
/// path has another id.
fn id_of(home: &Path) -> io::Result<String> {
    let path = home.join(ID);
    if let Some(id) = read_id(&path)? {
        return Ok(id);
    }
    let random = rejoin_hub::Clock.foreign_id().map_err(io::Error::other)?;
    let random = random.as_str().replace('-', "");
    let temp = home.join(format!("{ID}.{random}"));
    let mut options = fs_err::OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temp)?;
    file.write_all(&random.as_bytes()[..LETTERS])?;
    drop(file);
    // Created atomically, and never replaces the id of a faster process.
    match fs_err::hard_link(&temp, &path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            // The file system has no links.
            fs_err::rename(&temp, &path)?;
        }
        Ok(()) | Err(_) => fs_err::remove_file(&temp)?,
    }
    let gone = || io::Error::other(format!("{} is gone again", path.display()));
    read_id(&path)?.ok_or_else(gone)
}

fn read_id(path: &Path) -> io::Result<Option<String>> {
    match fs_err::read_to_string(path) {
        Ok(text) if is_id(text.trim()) => Ok(Some(text.trim().to_owned())),
        Ok(_) => Err(io::Error::other(format!(
            "{} is not what rejoin wrote; remove it",
            path.display()
        ))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_id(text: &str) -> bool {
    text.len() == LETTERS && text.bytes().all(|b| b.is_ascii_hexdigit())
}

impl fmt::Display for HomeLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.machine, self.home)
    }
}

impl FromStr for HomeLocation {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (machine, home) = text.split_once('.').ok_or(())?;
        if !(is_id(machine) && is_id(home)) {
            return Err(());
        }
        Ok(Self {
            machine: machine.to_owned(),
            home: home.to_owned(),
        })
    }
}

impl fmt::Display for HolderAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{place} {}", self.process),
            None => self.process.fmt(f),
        }
    }
}

impl FromStr for HolderAt {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (place, process) = match text.split_once(' ') {
            Some((place, process)) => (Some(place.parse()?), process),
            None => (None, text),
        };
        Ok(Self {
            place,
            process: process.parse().map_err(drop)?,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_home_is_itself_and_no_other() {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [one, two] = dirs
            .each_ref()
            .map(|dir| HomeLocation::of(dir.path()).unwrap());
        assert_eq!(HomeLocation::of(dirs[0].path()).unwrap(), one);
        assert!(one.machine == two.machine && !one.is_same_home(&two));
        // Another home at the same path.
        fs_err::remove_file(dirs[0].path().join(ID)).unwrap();
        assert!(!HomeLocation::of(dirs[0].path()).unwrap().is_same_home(&one));
        let left: Vec<_> = fs_err::read_dir(dirs[0].path()).unwrap().collect();
        assert_eq!(left.len(), 1);
    }

    #[test]
    fn many_at_once_agree() {
        let dir = tempfile::tempdir().unwrap();
        let places: Vec<HomeLocation> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| HomeLocation::of(dir.path()).unwrap()))
                .collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert!(places.windows(2).all(|pair| pair[0] == pair[1]));
    }

    #[test]
    fn holders_say_and_read_themselves() {
        let dir = tempfile::tempdir().unwrap();
        let process = Holder::me().unwrap();
        for place in [None, HomeLocation::of(dir.path()).ok()] {
            let process = process.clone();
            let holder = HolderAt { place, process };
            assert_eq!(holder.to_string().parse(), Ok(holder));
        }
        for text in [
            "",
            " ",
            "x b:1:1",
            "x.y b:1:1",
            "0123456789abcdef.0123456789abcdef x",
        ] {
            assert!(text.parse::<HolderAt>().is_err(), "{text}");
        }
    }
}
