//! A home for one CLI that is derived from the user's own home, which must stay unchanged.

use std::path::PathBuf;

/// Produces a file from the user's own file, which may be missing.
pub type Rewrite = fn(Option<&[u8]>) -> Result<Vec<u8>, String>;

/// A home in which every entry of the user's folder is a link, except those listed in `apart`,
/// `mixed` and `rewritten`.
#[derive(Debug, Clone)]
pub struct Overlay {
    /// Folder of the user.
    pub from: PathBuf,
    /// Folder that the CLI receives.
    pub to: PathBuf,
    /// Entries that are not linked: each folder has its own.
    pub apart: &'static [&'static str],
    /// Folders that also hold files of rejoin. Their entries are linked one by one.
    pub mixed: &'static [&'static str],
    /// Files that are produced anew for every run, so that later changes by the user take effect.
    pub rewritten: &'static [(&'static str, Rewrite)],
    /// Further links, each with its target.
    pub links: Vec<(PathBuf, PathBuf)>,
}
