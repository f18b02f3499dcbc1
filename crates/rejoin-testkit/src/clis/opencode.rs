//! OpenCode, with a model whose tokens have a price.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::{Cli, after, files_below};
use crate::world::World;

pub struct OpenCode(&'static str);

pub static OPENCODE: OpenCode = OpenCode("1.18.33");

impl Cli for OpenCode {
    fn agent(&self) -> &'static str {
        "opencode"
    }

    fn version(&self) -> &'static str {
        self.0
    }

    fn program(&self) -> String {
        let arch = if cfg!(target_arch = "aarch64") {
            "arm64"
        } else {
            "x64"
        };
        format!("opencode-linux-{arch}/bin/opencode")
    }

    fn models(&self) -> [&'static str; 2] {
        ["scripted/m1", "scripted/m2"]
    }

    fn set_up(&self, world: &mut World) {
        let url = world.model.url.clone();
        self.point_at(world, &url);
        let config = config_file(world);
        world.set("OPENCODE_CONFIG", config.to_str().unwrap());
        for off in [
            "OPENCODE_DISABLE_AUTOUPDATE",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS",
            "OPENCODE_DISABLE_LSP_DOWNLOAD",
            "OPENCODE_DISABLE_MODELS_FETCH",
        ] {
            world.set(off, "1");
        }
        // It installs a package at every start, regardless of these settings.
        world.set("npm_config_offline", "true");
        // Reading a list of unused models took two fifths of a turn's time.
        let models = world.root().join("models.json");
        std::fs::write(&models, "{}").unwrap();
        world.set("OPENCODE_MODELS_PATH", models.to_str().unwrap());
    }

    fn point_at(&self, world: &mut World, url: &str) {
        let model = |name: &str| {
            json!({
                "name": name,
                "limit": {"context": 200_000, "output": 8000},
                "cost": {"input": 3, "output": 15, "cache_read": 0.3},
            })
        };
        let config = json!({
            "provider": {"scripted": {
                "npm": "@ai-sdk/openai-compatible",
                "name": "scripted",
                "options": {"baseURL": format!("{url}/v1"), "apiKey": "sk-dummy"},
                "models": {"m1": model("m1"), "m2": model("m2")},
            }},
            "enabled_providers": ["scripted"],
            "model": "scripted/m1",
            "small_model": "scripted/m1",
            "share": "disabled",
        });
        std::fs::write(config_file(world), config.to_string()).unwrap();
    }

    fn sessions(&self, world: &World) -> Vec<PathBuf> {
        files_below(&world.home().join(".local/share/opencode/rejoin"), ".db")
    }

    /// Returns true if the file contains the session's id. The file name is ours.
    fn is_of(&self, file: &Path, session: &str) -> bool {
        let bytes = std::fs::read(file).unwrap();
        let log = std::fs::read(format!("{}-wal", file.display())).unwrap_or_default();
        let holds = |bytes: &[u8]| {
            bytes
                .windows(session.len())
                .any(|w| w == session.as_bytes())
        };
        holds(&bytes) || holds(&log)
    }

    fn resumed(&self, command: &[String]) -> Option<String> {
        after(command, "-s")
    }

    fn begun(&self, _command: &[String]) -> Option<String> {
        None
    }

    fn by_hand(&self, session: &str, text: &str) -> Vec<String> {
        ["run", "-s", session, "-m", self.models()[0], text]
            .map(str::to_owned)
            .into()
    }

    fn by_hand_env(&self, world: &World, session: &str) -> Vec<(String, String)> {
        let mut files = self.sessions(world).into_iter();
        let file = files.find(|file| self.is_of(file, session)).unwrap();
        vec![("OPENCODE_DB".into(), file.to_str().unwrap().into())]
    }

    fn alone(&self, session: Option<&str>, text: &str) -> Vec<String> {
        let begun = ["--title", "by hand"];
        let which = session.map_or(begun, |session| ["-s", session]);
        let args = ["run"].into_iter().chain(which);
        let args = args.chain(["-m", self.models()[0], text]);
        args.map(str::to_owned).collect()
    }

    fn knows_money(&self) -> bool {
        true
    }
}

fn config_file(world: &World) -> PathBuf {
    world.root().join("opencode.json")
}
