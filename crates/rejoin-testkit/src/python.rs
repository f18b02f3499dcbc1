//! Tools from the Python index that tests use, installed by `scripts/test`.

use std::path::PathBuf;

/// A program of that environment. None: it is not installed, which is a failure under CI.
pub fn python_tool(name: &str) -> Option<PathBuf> {
    let deps = std::env::var_os("REJOIN_TEST_CLIS").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.deps")),
        PathBuf::from,
    );
    let tool = deps.join("python/bin").join(name);
    if tool.exists() {
        return Some(tool);
    }
    assert!(
        std::env::var_os("CI").is_none(),
        "{name} is not installed; run ./scripts/test"
    );
    eprintln!("SKIPPED: {name} is not installed; run ./scripts/test");
    None
}
