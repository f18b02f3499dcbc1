//! Tools from the Python package index for tests, installed by `scripts/test`.

use std::path::PathBuf;

use crate::clis::{deps, needed};

/// Returns a program of that environment. Never returns `None`: a test without it fails.
pub fn python_tool(name: &str) -> Option<PathBuf> {
    Some(needed(deps().join("python/bin").join(name), name))
}
