//! Working folders: checks that they exist and that a caller may use them.

use std::path::{Path, PathBuf};

use rejoin_errors::CommandError;
use rejoin_runner::{Error, folder};

use crate::guard::Caller;
use crate::problem::{Refusal, Result};
use crate::state::{App, Shared};

/// Returns the real path of the folder, if the caller may use it. A caller that is limited to roots
/// learns nothing about folders outside of them: a missing one is refused like one that exists.
pub(crate) fn allowed(app: &App, caller: &Caller, dir: &str) -> Result<String> {
    if !Path::new(dir).is_absolute() {
        return Err(Refusal::usage(format!(
            "the working folder `{}` is not an absolute path",
            shown(dir)
        )));
    }
    let roots = roots(app, caller);
    let beneath = |real: &Path| roots.is_empty() || roots.iter().any(|root| real.starts_with(root));
    match folder::look(Path::new(dir)) {
        Ok(looked) if beneath(Path::new(&looked.path)) => Ok(looked.path),
        Err(error) if nearest(Path::new(dir)).is_some_and(|real| beneath(&real)) => {
            Err(CommandError::folder(&shown(dir), &error).into())
        }
        Ok(_) | Err(_) => Err(Refusal::from(Error::OutsideRoots)),
    }
}

/// Returns the real paths of the folders that a caller is limited to; empty means any folder.
pub(crate) fn roots(app: &App, caller: &Caller) -> Vec<String> {
    // A caller on the socket has a shell anyway.
    if caller.local {
        return vec![];
    }
    configured(app)
}

/// Returns the real paths of the configured roots.
pub(crate) fn configured(app: &Shared) -> Vec<String> {
    let real = |root: &PathBuf| {
        // Nothing is below a root that does not exist.
        let real = fs_err::canonicalize(root).unwrap_or_else(|_| root.clone());
        real.to_string_lossy().into_owned()
    };
    app.options.roots.iter().map(real).collect()
}

/// Returns the real path of the nearest existing folder above a missing one. Returns None for a
/// path with `..`, which could name a folder anywhere.
fn nearest(dir: &Path) -> Option<PathBuf> {
    let plain = |part: std::path::Component<'_>| part != std::path::Component::ParentDir;
    let mut above = dir.ancestors().skip(1);
    let found = above.find_map(|folder| {
        // A link whose target is missing is not followed further.
        match fs_err::symlink_metadata(folder) {
            Ok(_) => Some(fs_err::canonicalize(folder).ok()),
            Err(_) => None,
        }
    });
    let itself = fs_err::symlink_metadata(dir);
    let link = itself.is_ok_and(|meta| meta.is_symlink());
    found
        .flatten()
        .filter(|_| !link && dir.components().all(plain))
}

fn shown(dir: &str) -> String {
    dir.chars().filter(|c| !c.is_control()).take(200).collect()
}
