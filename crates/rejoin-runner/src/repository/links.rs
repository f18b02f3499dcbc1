//! Memory files that are links out of the repository. The CLI would show the model the file behind the
//! link, which the agent might not be allowed to read: a key, or the environment of a process.

use std::path::Path;

use rejoin_agents::{Guard, Repository, RepositoryFile};

use super::{Found, Place, checkout_root};

/// Returns the hash of the place that a link leads to. None if there is nothing.
pub fn hash_of_target(link: &Path) -> Option<String> {
    let target = fs_err::canonicalize(link).ok()?;
    let hash = blake3::hash(target.as_os_str().as_encoded_bytes());
    Some(hash.to_hex().to_string())
}

/// Finds the memory files whose link leads out of the checkout, or out of their folder where there is no
/// checkout. Trust covers the place that a link leads to, not the file there.
pub(super) fn leading_out(repository: &dyn Repository, places: &[Place]) -> Vec<Found> {
    let root = checkout_root(places).map(Path::to_path_buf);
    let mut found = vec![];
    for place in places.iter().filter(|place| place.in_checkout) {
        let bound = root.as_deref().unwrap_or(&place.path);
        for name in repository.own_memory() {
            let path = place.path.join(name);
            let Ok(target) = fs_err::canonicalize(&path) else {
                continue;
            };
            if target.starts_with(bound) {
                continue;
            }
            let hash = hash_of_target(&path);
            let target = target.display();
            found.push(Found {
                path,
                hash,
                file: RepositoryFile {
                    path: (*name).to_owned(),
                    effects: vec![format!(
                        "shows the model {target}, outside of the repository"
                    )],
                    guard: Guard::Missing,
                },
            });
        }
    }
    found
}
