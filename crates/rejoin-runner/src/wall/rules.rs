//! Landlock: rules that grant access, for a thread and everything that it starts.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use fs_err::os::unix::fs::OpenOptionsExt;
use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, RestrictionStatus,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use nix::fcntl::OFlag;

use super::Gap;

/// Required version: without it a file could not be moved from one folder to another.
const NEEDED: ABI = ABI::V2;
/// Version up to which rights are restricted, if the kernel knows them.
const KNOWN: ABI = ABI::V5;
/// Folder of control groups, which can stop and end processes. Builds have nothing to write in it.
const DEVICES: &str = "/sys";
/// Limit for the entries of a folder that get a rule each.
pub(super) const MOST_ENTRIES: usize = 4096;

/// Returns true if this kernel has Landlock in a version that is new enough.
pub(super) fn is_available() -> bool {
    let rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let rules = rules.handle_access(AccessFs::from_all(NEEDED));
    rules.and_then(Ruleset::create).is_ok()
}

/// Allows every access to files. Any Landlock rule still forbids to mount and unmount, and to
/// inspect processes outside through `/proc` or by tracing them.
pub(super) fn forbid_mounts() -> io::Result<()> {
    let rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    // This right is denied unless it is granted; the others are not restricted.
    let rules = rules.handle_access(AccessFs::Refer);
    let rules = rules.and_then(keep_signals).and_then(Ruleset::create);
    let root = PathBeneath::new(path(Path::new("/"))?, AccessFs::Refer);
    let rules = rules.and_then(|rules| rules.add_rule(root));
    // Programs that change the user must still work, because this runs as root.
    let rules = rules.map(|rules| rules.no_new_privs(false));
    enforced(rules.and_then(RulesetCreated::restrict_self))
}

/// Forbids signals to processes outside and tracing them, and nothing else, if the kernel can (6.12
/// or newer).
pub(super) fn isolate() -> io::Result<()> {
    let rules = keep_signals(Ruleset::default()).and_then(Ruleset::create);
    let rules = rules.map(|rules| rules.no_new_privs(false));
    let status = rules.and_then(RulesetCreated::restrict_self);
    status.map(drop).map_err(io::Error::other)
}

/// Forbids signals to processes outside, if the kernel can (6.12 or newer): an agent that stops or
/// kills its shim would outlive its turn and its limits.
fn keep_signals(rules: Ruleset) -> Result<Ruleset, RulesetError> {
    let rules = rules.set_compatibility(CompatLevel::BestEffort);
    rules.scope(Scope::Signal)
}

/// Allows every access except to these folders. Their names can still be listed, and nothing new
/// can be created directly in a folder that contains one of them.
pub(super) fn allow_all_but(closed: &[PathBuf], gaps: &[Gap]) -> io::Result<()> {
    let rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let rules = rules.handle_access(AccessFs::from_all(NEEDED));
    let rules = rules.map(|rules| rules.set_compatibility(CompatLevel::BestEffort));
    let rules = rules.and_then(|rules| rules.handle_access(AccessFs::from_all(KNOWN)));
    let rules = rules.and_then(keep_signals).and_then(Ruleset::create);
    let rules = rules.map_err(io::Error::other)?;
    let mut rules = rules.set_compatibility(CompatLevel::BestEffort);
    rules = grant(rules, path(Path::new("/"))?, AccessFs::ReadDir.into())?;
    for place in beside(closed)? {
        let Some((file, is_folder)) = entry(&place) else {
            continue;
        };
        let rights = if place == Path::new(DEVICES) {
            AccessFs::from_read(KNOWN)
        } else if is_folder {
            AccessFs::from_all(KNOWN)
        } else {
            AccessFs::from_file(KNOWN)
        };
        rules = grant(rules, file, rights)?;
    }
    for gap in gaps {
        let read = AccessFs::ReadFile | AccessFs::ReadDir;
        let file = path(&gap.path)?;
        let rights = if gap.write {
            AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate
        } else if file.metadata()?.is_dir() {
            read
        } else {
            AccessFs::ReadFile.into()
        };
        rules = grant(rules, file, rights)?;
    }
    enforced(rules.restrict_self())
}

/// Returns all entries beside the paths to the protected folders.
pub(super) fn beside(closed: &[PathBuf]) -> io::Result<Vec<PathBuf>> {
    let parents = |folder: &PathBuf| -> Vec<PathBuf> {
        folder.ancestors().skip(1).map(Path::to_owned).collect()
    };
    let on_the_way: BTreeSet<PathBuf> = closed.iter().flat_map(parents).collect();
    let mut found = vec![];
    for folder in &on_the_way {
        let entries = match fs_err::read_dir(folder) {
            Ok(entries) => entries,
            Err(error)
                if [ErrorKind::NotFound, ErrorKind::PermissionDenied].contains(&error.kind()) =>
            {
                continue;
            }
            Err(error) => return Err(error),
        };
        let mut count = 0;
        for entry in entries {
            let path = entry?.path();
            count += 1;
            if count > MOST_ENTRIES {
                let text = format!("{} has more than {MOST_ENTRIES} entries", folder.display());
                return Err(io::Error::other(text));
            }
            if !on_the_way.contains(&path) && !closed.contains(&path) {
                found.push(path);
            }
        }
    }
    Ok(found)
}

/// Opens an entry and tells if it is a folder. Returns None for links, which lead elsewhere, and
/// for entries that are gone.
fn entry(at: &Path) -> Option<(File, bool)> {
    let file = path(at).ok()?;
    let kind = file.metadata().ok()?.file_type();
    (!kind.is_symlink()).then_some((file, kind.is_dir()))
}

/// Opens a handle on the path itself, without following a link.
fn path(at: &Path) -> io::Result<File> {
    let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW;
    let mut options = fs_err::OpenOptions::new();
    options.read(true).custom_flags(flags.bits());
    Ok(options.open(at)?.into_file())
}

fn grant(
    rules: RulesetCreated,
    file: File,
    rights: BitFlags<AccessFs>,
) -> io::Result<RulesetCreated> {
    rules
        .add_rule(PathBeneath::new(file, rights))
        .map_err(io::Error::other)
}

fn enforced(status: Result<RestrictionStatus, RulesetError>) -> io::Result<()> {
    match status.map_err(io::Error::other)?.ruleset {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        RulesetStatus::NotEnforced => Err(io::Error::other("Landlock is not available")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_beside_the_way_but_nothing_on_it() {
        let dir = tempfile::tempdir().unwrap();
        let dir = fs_err::canonicalize(dir.path()).unwrap();
        for folder in ["a/closed/in", "a/open/in", "b"] {
            fs_err::create_dir_all(dir.join(folder)).unwrap();
        }
        let closed = ["a/closed", "missing/closed"].map(|name| dir.join(name));
        let mut found = beside(&closed).unwrap();
        found.retain(|path| path.starts_with(&dir));
        found.sort_unstable();
        assert_eq!(found, ["a/open", "b"].map(|name| dir.join(name)));
        for n in 0..=MOST_ENTRIES {
            fs_err::write(dir.join("a").join(n.to_string()), "").unwrap();
        }
        let why = beside(&closed).unwrap_err().to_string();
        assert!(why.contains("more than 4096 entries"), "{why}");
    }

    /// A link in a folder on the path must not open its target.
    #[test]
    fn links_are_not_granted() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("/", &link).unwrap();
        assert!(entry(&link).is_none());
        assert!(entry(dir.path()).is_some_and(|(_, is_folder)| is_folder));
    }
}
