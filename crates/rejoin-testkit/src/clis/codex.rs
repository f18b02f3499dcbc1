//! Codex CLI, by its native program.

use std::path::PathBuf;

use super::{Cli, files_below};
use crate::world::World;

pub struct Codex(&'static str);

pub static CODEX_166: Codex = Codex("0.166.0");

/// Model with the tools of the scripts. Newer models call tools only from JavaScript.
pub const CODEX_TOOLS: &str = "gpt-5.5";

impl Cli for Codex {
    fn agent(&self) -> &'static str {
        "codex"
    }

    fn version(&self) -> &'static str {
        self.0
    }

    fn program(&self) -> String {
        let (arch, target) = if cfg!(target_arch = "aarch64") {
            ("arm64", "aarch64")
        } else {
            ("x64", "x86_64")
        };
        format!("@openai/codex-linux-{arch}/vendor/{target}-unknown-linux-musl/bin/codex")
    }

    /// Two models of one family. For a model of another family it compacts.
    fn models(&self) -> [&'static str; 2] {
        ["gpt-5.6-sol", "gpt-5.6-luna"]
    }

    fn point_at(&self, world: &mut World, url: &str) {
        world.set("SCRIPTED_KEY", "sk-dummy");
        world.set("NO_PROXY", "127.0.0.1,localhost");
        let folder = world.home().join(".codex");
        std::fs::create_dir_all(&folder).unwrap();
        let config = CONFIG.replace("URL", url);
        std::fs::write(folder.join("config.toml"), config).unwrap();
    }

    fn sessions(&self, world: &World) -> Vec<PathBuf> {
        files_below(&world.home().join(".codex/sessions"), ".jsonl")
    }

    fn resumed(&self, command: &[String]) -> Option<String> {
        super::after(command, "resume")
            .is_some()
            .then(|| command[command.len() - 2].clone())
    }

    fn begun(&self, _command: &[String]) -> Option<String> {
        None
    }

    fn alone(&self, session: Option<&str>, text: &str) -> Vec<String> {
        let before = ["exec", "-s", "read-only", "--skip-git-repo-check"];
        let resume = session.map(|session| ["resume", session]);
        let args = before.into_iter().chain(resume.into_iter().flatten());
        args.chain([text]).map(str::to_owned).collect()
    }

    fn by_hand(&self, session: &str, text: &str) -> Vec<String> {
        let before = ["exec", "-s", "read-only", "--skip-git-repo-check"];
        let args = before.into_iter().chain(["resume", session, text]);
        args.map(str::to_owned).collect()
    }
}

/// Configuration without outside connections and retries. A killed sandbox leaves empty folders
/// (`.git` and others) in every folder that it may write to, so the shared folder for temporary
/// files is excluded.
const CONFIG: &str = r#"
model = "gpt-5.6-sol"
model_provider = "scripted"
check_for_update_on_startup = false

[model_providers.scripted]
name = "scripted"
base_url = "URL/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
request_max_retries = 0
stream_max_retries = 0

[features]
plugins = false
apps = false
remote_plugin = false
plugin_discovery_prefetch = false
api_key_model_discovery = false

[analytics]
enabled = false

[sandbox_workspace_write]
exclude_slash_tmp = true
exclude_tmpdir_env_var = true
"#;
