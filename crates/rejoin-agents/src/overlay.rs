//! A home made for one CLI out of the user's own, where that must not be changed.

use std::path::PathBuf;

/// Makes a file out of the user's own one, which may be missing.
pub type Rewrite = fn(Option<&[u8]>) -> Result<Vec<u8>, String>;

/// Everything of the user's folder is linked into it, but for what stays apart.
#[derive(Debug, Clone)]
pub struct Overlay {
    /// The user's folder.
    pub from: PathBuf,
    /// The one the CLI gets.
    pub to: PathBuf,
    /// Entries that are the CLI's own in each.
    pub apart: &'static [&'static str],
    /// Folders that hold files of ours beside the user's: those are linked one by one.
    pub mixed: &'static [&'static str],
    /// Made anew for every run, so that later changes of the user's count.
    pub rewritten: &'static [(&'static str, Rewrite)],
    /// Further links, with what they point to.
    pub links: Vec<(PathBuf, PathBuf)>,
}
