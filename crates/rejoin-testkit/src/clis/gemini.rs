//! Gemini CLI. Its sessions are in an overlay of the private home.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{Cli, files_below};
use crate::world::World;

pub struct Gemini(&'static str);

pub static GEMINI_061: Gemini = Gemini("0.61.0");

/// Settings without outside connections and retries.
const SETTINGS: &str = r#"// of the test
{
  "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false, "maxAttempts": 1},
  "privacy": {"usageStatisticsEnabled": false},
  "security": {"auth": {"selectedType": "gemini-api-key"}}, /* by key */
  "telemetry": {"enabled": false}
}
"#;

impl Cli for Gemini {
    fn agent(&self) -> &'static str {
        "gemini"
    }

    fn version(&self) -> &'static str {
        self.0
    }

    fn program(&self) -> String {
        "@google/gemini-cli/bundle/gemini.js".into()
    }

    fn models(&self) -> [&'static str; 2] {
        ["gemini-2.5-flash", "gemini-2.5-pro"]
    }

    fn set_up(&self, world: &mut World) {
        let url = world.model.url.clone();
        self.point_at(world, &url);
        world.set("GEMINI_API_KEY", "dummy");
        let own = world.home().join(".gemini");
        std::fs::create_dir_all(&own).unwrap();
        std::fs::write(own.join("settings.json"), SETTINGS).unwrap();
    }

    fn point_at(&self, world: &mut World, url: &str) {
        world.set("GOOGLE_GEMINI_BASE_URL", url);
    }

    /// Returns the sessions without the stubs that later resumes leave beside them.
    fn sessions(&self, world: &World) -> Vec<PathBuf> {
        let mut files = files_below(&overlay(world).join(".gemini/tmp"), ".jsonl");
        files.sort();
        let mut seen = BTreeSet::new();
        files.retain(|file| {
            let name = file.file_stem().and_then(|stem| stem.to_str());
            let id = name.and_then(|name| name.rsplit('-').next());
            seen.insert((file.parent().map(Path::to_path_buf), id.map(str::to_owned)))
        });
        files
    }

    fn is_of(&self, file: &Path, session: &str) -> bool {
        let name = file.file_stem().and_then(|stem| stem.to_str());
        name.is_some_and(|name| name.ends_with(&session[..8]))
    }

    /// Returns the session that a command begins. In a run that asks, the CLI receives an id for
    /// its own file and chooses the session's id itself.
    fn begun(&self, command: &[String]) -> Option<String> {
        let asks = command.iter().any(|arg| arg == "--acp");
        super::after(command, "--session-id").filter(|_| !asks)
    }

    fn by_hand(&self, session: &str, text: &str) -> Vec<String> {
        let model = self.models()[0];
        ["--resume", session, "-m", model, "-p", text]
            .map(str::to_owned)
            .into()
    }

    fn by_hand_env(&self, world: &World, _session: &str) -> Vec<(String, String)> {
        let home = overlay(world).to_str().unwrap().to_owned();
        [
            ("GEMINI_CLI_HOME", home),
            ("GEMINI_CLI_TRUST_WORKSPACE", "true".to_owned()),
            ("GEMINI_CLI_NO_RELAUNCH", "true".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    fn alone(&self, session: Option<&str>, text: &str) -> Vec<String> {
        let resume = session.map(|session| ["--resume", session]);
        let args = resume.into_iter().flatten();
        let args = args.chain(["-m", self.models()[0], "-p", text]);
        args.map(str::to_owned).collect()
    }

    fn alone_env(&self) -> Vec<(String, String)> {
        let names = ["GEMINI_CLI_TRUST_WORKSPACE", "GEMINI_CLI_NO_RELAUNCH"];
        names
            .map(|name| (name.to_owned(), "true".to_owned()))
            .into()
    }

    fn streaming(&self) -> Option<&'static str> {
        Some("\"delta\":true")
    }
}

fn overlay(world: &World) -> PathBuf {
    world.home().join(".gemini/rejoin")
}
