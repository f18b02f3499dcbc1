//! Files of a repository that configure the CLIs: finds them, compares them with the files that the
//! user trusts, and keeps them from the CLI or refuses the turn.

mod links;
mod nested;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rejoin_agents::{
    Adapter, Guard, Memory, MemoryFile, ReadFile, Repository, RepositoryConfig, RepositoryFile,
    RepositoryFolder, RepositoryIsolation,
};
use rejoin_core::PermissionMode;

pub use self::links::hash_of_target;
use crate::foreign_file;
use crate::trust::{TrustList, TrustState};

/// Largest size of a configuration file; no sensible one is larger.
const LARGEST: u64 = 1 << 20;
/// Longest text of memory files that is passed on: a single argument may hold 128 KiB.
const LONGEST_MEMORY: usize = 96 << 10;
/// Longest effect in a sentence, in characters.
const SENTENCE: usize = 200;

/// Next step for a user whose turn was refused because of a repository's file.
pub const TRUST_HINT: &str = "see it with rejoin trust --dry-run, then trust it";

/// File that an agent would obey.
#[derive(Debug, Clone)]
pub struct Found {
    pub path: PathBuf,
    /// Hash of the file's bytes. None if it cannot be read; then it cannot be trusted.
    pub hash: Option<String>,
    pub file: RepositoryFile,
}

impl Found {
    pub fn state(&self, trust: &TrustList) -> TrustState {
        let hash = self.hash.as_deref();
        hash.map_or(TrustState::Untrusted, |hash| trust.state(&self.path, hash))
    }
}

/// Effect of a repository's configuration on a turn.
#[derive(Debug, Default)]
pub struct RepositoryEffect {
    pub config: RepositoryConfig,
    /// Reason to refuse the turn, if there is one.
    pub refused: Option<String>,
    /// Files that are kept from the CLI, for a note.
    pub ignored: Vec<PathBuf>,
}

/// Finds every file from `folder` upward that the agent would obey. Files in `home`, the user's
/// home, are the user's own and do not count.
pub fn scan(adapter: &dyn Adapter, folder: &Path, home: Option<&Path>) -> Vec<Found> {
    let places = places(folder, home);
    let Some(repository) = adapter.capabilities().repository else {
        return vec![];
    };
    let found = places.iter().flat_map(|place| {
        let Place { path, in_checkout } = place;
        let files = at(path, path == folder, |folder| {
            repository.repository_files(folder)
        });
        // Flags apply everywhere. Without them Gemini CLI 0.61.0 reads `.env` above a checkout, and
        // OpenCode 1.18.33 plugins above one that git refuses.
        let counts = |found: &Found| *in_checkout || found.file.guard == Guard::Missing;
        files.into_iter().filter(counts)
    });
    found
        .chain(links::leading_out(repository, &places))
        .collect()
}

/// Finds the definitions below `folder` that the agent would load while it works there. If there
/// are too many folders, `folder` itself is listed: it cannot be read, and so not be trusted.
pub fn scan_nested(adapter: &dyn Adapter, folder: &Path) -> Vec<Found> {
    let repository = adapter.capabilities().repository;
    let Some(definitions) = repository.and_then(Repository::nested) else {
        return vec![];
    };
    let (holders, whole) = nested::holders(folder, definitions.folder, nested::MOST);
    let found = holders.iter();
    let mut found: Vec<Found> = found
        .flat_map(|path| at(path, false, definitions.files))
        .collect();
    if !whole {
        found.push(Found {
            path: folder.to_path_buf(),
            hash: None,
            file: RepositoryFile {
                path: String::new(),
                effects: vec![format!(
                    "has more than {} folders: definitions beneath it are not all looked at",
                    nested::MOST
                )],
                guard: Guard::Flags,
            },
        });
    }
    found
}

/// Finds files in one folder, with their hashes.
fn at(
    folder: &Path,
    is_workdir: bool,
    find: impl FnOnce(&RepositoryFolder<'_>) -> Vec<RepositoryFile>,
) -> Vec<Found> {
    let read = |file: &str| read_file(&folder.join(file));
    let list = |name: &str| names(&folder.join(name));
    let files = find(&RepositoryFolder {
        is_workdir,
        read: &read,
        list: &list,
    });
    let found = files.into_iter().map(|file| {
        let path = folder.join(&file.path);
        let bytes = read_file(&path).and_then(Result::ok);
        Found {
            hash: bytes.map(|bytes| blake3::hash(&bytes).to_hex().to_string()),
            path,
            file,
        }
    });
    found.collect()
}

/// Shortens an effect for a sentence or a list; `rejoin trust --dry-run` shows the whole.
pub fn shortened(effect: &str) -> String {
    match effect.char_indices().nth(SENTENCE) {
        Some((end, _)) => format!("{}…", &effect[..end]),
        None => effect.to_owned(),
    }
}

/// Decides on the effect of the repository's configuration on a turn with this permission mode.
/// `nested` finds the files below the working folder, which matter only if all others are trusted.
pub fn standing(
    adapter: &dyn Adapter,
    mode: PermissionMode,
    contained: Option<RepositoryIsolation>,
    mut found: Vec<Found>,
    trust: impl FnOnce() -> TrustList,
    nested: impl FnOnce() -> Vec<Found>,
) -> RepositoryEffect {
    if found.is_empty() {
        return RepositoryEffect::default();
    }
    let trust = trust();
    let trusted = |file: &Found| file.state(&trust) == TrustState::Trusted;
    if found.iter().all(trusted) {
        found.extend(nested());
    }
    let states: Vec<TrustState> = found.iter().map(|file| file.state(&trust)).collect();
    if states.iter().all(|state| *state == TrustState::Trusted) {
        return RepositoryEffect {
            config: RepositoryConfig::Obeyed,
            ..RepositoryEffect::default()
        };
    }
    let held = |file: &Found| {
        file.file.guard == Guard::Flags && contained == Some(RepositoryIsolation::Proven)
    };
    let loose = found
        .iter()
        .zip(&states)
        .find(|(file, state)| !held(file) && **state != TrustState::Trusted);
    let refused = loose.filter(|_| mode != PermissionMode::Full).map(|(file, state)| {
        let changed = match state {
            TrustState::Changed => ", which has changed since you trusted it",
            TrustState::NotNeeded | TrustState::Trusted | TrustState::Untrusted => "",
        };
        let effect = file.file.effects.first();
        let effect = effect.map(|effect| shortened(effect)).unwrap_or_default();
        let path = file.path.display();
        let name = adapter.name();
        format!("{name} would obey {path}{changed} ({effect}), whatever the turn may do; {TRUST_HINT}, or allow everything (--permission full)")
    });
    let ignored = found.iter().filter(|file| held(file));
    let skills = ignored.clone().any(|file| file.file.is_skill());
    RepositoryEffect {
        config: if skills {
            RepositoryConfig::IgnoredWithSkills
        } else {
            RepositoryConfig::Ignored
        },
        refused,
        ignored: ignored.map(|file| file.path.clone()).collect(),
    }
}

/// Reads the memory files that the CLI does not read in a run that ignores the repository's
/// configuration, from the outermost folder inward, as the CLI itself orders them. `cli_home` is
/// the folder of the CLI's own configuration.
pub fn unread_memory(
    adapter: &dyn Adapter,
    folder: &Path,
    home: Option<&Path>,
    cli_home: &Path,
) -> Memory {
    let Some(repository) = adapter.capabilities().repository else {
        return Memory::default();
    };
    let mut files = vec![];
    let mut left = LONGEST_MEMORY;
    let places = places(folder, home).into_iter();
    let places: Vec<Place> = places.take_while(|place| place.in_checkout).collect();
    let root = checkout_root(&places);
    for Place { path: place, .. } in &places {
        // A link may lead within the checkout, but not to files that the agent could not read
        // itself.
        let bound = root.unwrap_or(place);
        for group in repository.unread_memory(place == folder) {
            let mut existing = group.iter().map(|name| place.join(name));
            let found = existing.find_map(|path| {
                let real = fs_err::canonicalize(&path).ok()?;
                let real = Some(real).filter(|real| real.starts_with(bound))?;
                Some((read_file(&real)?.ok()?, path))
            });
            let Some((bytes, path)) = found else {
                continue;
            };
            let text = String::from_utf8_lossy(&bytes).replace('\0', "");
            let text = text.trim();
            if text.is_empty() || text.len() > left {
                continue;
            }
            left -= text.len();
            files.push(MemoryFile {
                path: path.display().to_string(),
                text: text.to_owned(),
            });
        }
    }
    files.reverse();
    let read = |file: &str| read_file(&cli_home.join(file))?.ok();
    let own = (!files.is_empty()).then(|| repository.displaced_memory(&read));
    Memory {
        own: own.flatten(),
        files,
    }
}

/// Returns the outermost checkout. None outside of a checkout.
fn checkout_root(places: &[Place]) -> Option<&Path> {
    let paths = places.iter().filter(|place| place.in_checkout);
    let mut paths = paths.map(|place| place.path.as_path()).rev();
    paths.find(|path| path.join(".git").exists())
}

/// Folder whose files a CLI may take for the project's.
struct Place {
    path: PathBuf,
    /// False if the folder is above the outermost checkout.
    in_checkout: bool,
}

/// Returns the working folder and those above it, up to the root. If the user's home is among them,
/// it and the folders above it are left out, even if the home is itself a checkout. Outside of a
/// checkout every folder counts as part of one.
fn places(folder: &Path, home: Option<&Path>) -> Vec<Place> {
    let home = home.and_then(|home| fs_err::canonicalize(home).ok());
    let above: Vec<&Path> = folder
        .ancestors()
        .filter(|place| place.parent().is_some())
        .collect();
    // CLIs differ in their definition of a checkout: an empty `.git` stops some of them.
    let root = above.iter().rposition(|place| place.join(".git").exists());
    let count = root.map_or(above.len(), |root| root + 1);
    let places = above.iter().enumerate().map(|(at, place)| Place {
        path: place.to_path_buf(),
        in_checkout: at < count,
    });
    places
        .take_while(|place| Some(place.path.as_path()) != home.as_deref())
        .collect()
}

/// Reads a regular file. Returns None if there is none or a folder has its name, and an error for
/// anything else.
fn read_file(path: &Path) -> Option<ReadFile> {
    match foreign_file::read_regular(path, LARGEST) {
        Ok(bytes) => Some(Ok(bytes)),
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => None,
        Err(_) if path.is_dir() => None,
        Err(_) => Some(Err("it is not a regular file of at most 1 MiB".to_owned())),
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs_err::read_dir(folder).into_iter().flatten();
    let names = entries.flatten().map(|entry| entry.file_name());
    let mut names: Vec<String> = names
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests;
