//! Claude Code, in two versions that count their costs differently, and one that writes its
//! sessions in another way.

use std::path::PathBuf;

use super::{CLAUDE_NEW, CLAUDE_OLD, Cli, files_below};
use crate::world::World;

pub struct Claude(&'static str);

/// A version that splits a prompt when it resumes: a script for Node, as all of them were.
pub static CLAUDE_20: Claude = Claude("2.1.20");
pub static CLAUDE_197: Claude = Claude(CLAUDE_OLD);
pub static CLAUDE_325: Claude = Claude(CLAUDE_NEW);

pub(super) fn of(version: &str) -> &'static dyn Cli {
    if version == CLAUDE_OLD {
        &CLAUDE_197
    } else {
        &CLAUDE_325
    }
}

impl Cli for Claude {
    fn agent(&self) -> &'static str {
        "claude"
    }

    fn version(&self) -> &'static str {
        self.0
    }

    fn program(&self) -> String {
        if self.0 == CLAUDE_20.0 {
            return "@anthropic-ai/claude-code/cli.js".into();
        }
        let arch = if cfg!(target_arch = "aarch64") {
            "arm64"
        } else {
            "x64"
        };
        format!("@anthropic-ai/claude-code-linux-{arch}/claude")
    }

    fn models(&self) -> [&'static str; 2] {
        ["sonnet", "opus"]
    }

    fn set_up(&self, world: &mut World) {
        let url = world.model.url.clone();
        self.point_at(world, &url);
        world.set("ANTHROPIC_API_KEY", "sk-ant-dummy");
        world.set("CLAUDE_CODE_MAX_RETRIES", "1");
        for off in [
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
            "DISABLE_TELEMETRY",
            "DISABLE_AUTOUPDATER",
            "DISABLE_ERROR_REPORTING",
        ] {
            world.set(off, "1");
        }
    }

    fn point_at(&self, world: &mut World, url: &str) {
        world.set("ANTHROPIC_BASE_URL", url);
    }

    fn sessions(&self, world: &World) -> Vec<PathBuf> {
        files_below(&world.home().join(".claude/projects"), ".jsonl")
    }

    fn by_hand(&self, session: &str, text: &str) -> Vec<String> {
        ["-p", "--resume", session, text].map(str::to_owned).into()
    }

    fn alone(&self, session: Option<&str>, text: &str) -> Vec<String> {
        let resume = session.map(|session| ["--resume", session]);
        let args = ["-p", "--model", "sonnet"].into_iter();
        let args = args.chain(resume.into_iter().flatten()).chain([text]);
        args.map(str::to_owned).collect()
    }

    fn knows_money(&self) -> bool {
        true
    }

    fn streaming(&self) -> Option<&'static str> {
        Some("text_delta")
    }
}
