//! The coding CLIs under test, as `scripts/test` installed them.

use std::path::PathBuf;

pub const CLAUDE_OLD: &str = "2.1.197";
pub const CLAUDE_NEW: &str = "2.1.325";

/// The native binary of that version. Missing: the test fails under CI, and is loudly skipped
/// elsewhere.
pub fn claude(version: &str) -> Option<PathBuf> {
    let root = std::env::var_os("REJOIN_TEST_CLIS").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../.deps"),
        PathBuf::from,
    );
    let arch = if cfg!(target_arch = "aarch64") {
        "arm64"
    } else {
        "x64"
    };
    let native =
        format!("claude-{version}/node_modules/@anthropic-ai/claude-code-linux-{arch}/claude");
    let path = root.join(native);
    if path.exists() {
        return Some(path.canonicalize().unwrap());
    }
    let text = format!("SKIPPED: Claude Code {version} is not installed; run ./scripts/test");
    assert!(std::env::var_os("CI").is_none(), "{text}");
    eprintln!("{text}");
    None
}
