//! Claude Code. Measured on 2.1.197 and 2.1.325 (agents/claude.md); what a constant says of the
//! CLI's behaviour was seen on both unless it names one.

use std::path::{Path, PathBuf};

use rejoin_core::{Envelope, Runtime, SessionId};
use serde::Deserialize;

use crate::adapter::{Adapter, Allows, LiveMark, Login, ProofEnv, ProofSetup};
use crate::environment::EnvRules;
use crate::order::{CommandSpec, GoOnOrder, Hook, RunOrder};
use crate::outside::{HeadReader, Kept, OwnSessions};
use crate::repository::{RepositoryFile, RepositoryFolder};
use crate::session::{ChosenBy, Forking, Place, SessionAt, SessionReader};
use crate::stay::StayReader;
use crate::stream::StreamParser;
use crate::terminal::TerminalOrder;

mod classify;
mod command;
mod encode;
mod environment;
mod head;
pub mod hook;
mod neutral;
mod note;
mod permission;
mod probe;
mod repository;
mod session;
mod stay;
mod stream;
mod terminal;
mod wire;

pub(crate) struct Claude;

impl Adapter for Claude {
    fn name(&self) -> &'static str {
        "claude"
    }

    fn program(&self) -> Option<&'static str> {
        Some("claude")
    }

    fn install(&self) -> &'static str {
        "npm install -g @anthropic-ai/claude-code"
    }

    fn login(&self) -> Option<Login> {
        Some(Login {
            variables: environment::LOGINS,
            file: ".credentials.json",
            how: "claude /login, or export ANTHROPIC_API_KEY=…",
        })
    }

    fn runtime(&self, version_output: &str) -> Option<Runtime> {
        probe::runtime(version_output)
    }

    fn probe(&self) -> Option<Vec<String>> {
        Some(probe::arguments())
    }

    fn judge_probe(&self, stdout: &str, stderr: &str) -> Option<String> {
        probe::judge(stdout, stderr)
    }

    fn proof(&self, at: &ProofEnv<'_>) -> Option<ProofSetup> {
        Some(ProofSetup {
            env: environment::proof(at),
            ..ProofSetup::default()
        })
    }

    fn allows(&self) -> &'static [Allows] {
        permission::ALLOWS
    }

    fn express(&self, envelope: &Envelope, as_root: bool) -> Result<(), String> {
        permission::express(envelope, as_root)
    }

    /// Its sandbox is bubblewrap, and off unless the user's settings switch it on.
    fn mounts(&self, _envelope: &Envelope, read: &dyn Fn(&str) -> Option<Vec<u8>>) -> bool {
        let settings = read("settings.json").unwrap_or_default();
        let settings: serde_json::Value = serde_json::from_slice(&settings).unwrap_or_default();
        settings["sandbox"]["enabled"] == true
    }

    fn nested_folder(&self) -> Option<&'static str> {
        Some(repository::NESTED)
    }

    fn nested_files(&self, folder: &RepositoryFolder<'_>) -> Vec<RepositoryFile> {
        repository::definitions(folder)
    }

    fn repository_files(&self, folder: &RepositoryFolder<'_>) -> Vec<RepositoryFile> {
        repository::files(folder)
    }

    fn hostile_repository(&self, marker: &str) -> Vec<(String, String)> {
        repository::hostile(marker)
    }

    fn unread_memory(&self, is_workdir: bool) -> &'static [&'static [&'static str]] {
        if is_workdir {
            repository::HERE
        } else {
            repository::ABOVE
        }
    }

    fn mentions(&self, message: &str) -> Vec<String> {
        neutral::paths(message)
    }

    fn command(&self, order: &RunOrder<'_>) -> CommandSpec {
        command::command(order)
    }

    fn stays(&self, _envelope: &Envelope, _extra_args: &[String]) -> bool {
        true
    }

    fn stay_reader(&self) -> Option<Box<dyn StayReader>> {
        Some(Box::<stay::Reader>::default())
    }

    fn hooked(&self, command: CommandSpec, hook: &Hook<'_>) -> Option<CommandSpec> {
        hook::hooked(command, hook)
    }

    fn go_on(&self, order: &GoOnOrder<'_>) -> Option<CommandSpec> {
        Some(command::go_on(order))
    }

    /// From a file, which may lie anywhere, into the folder of its sessions; the file stays as it is.
    fn forking(&self) -> Forking {
        Forking::FromFile(ChosenBy::Us)
    }

    fn fork(&self, mut resume: CommandSpec, order: &RunOrder<'_>) -> Option<CommandSpec> {
        let at = resume.args.iter().position(|arg| arg == "--resume")?;
        let asked = resume.args.get_mut(at + 1)?;
        order.origin?.clone_into(asked);
        let own = ["--fork-session", "--session-id", order.new_session.as_str()];
        resume.args.extend(own.map(str::to_owned));
        Some(resume)
    }

    fn terminal(&self, order: &TerminalOrder<'_>) -> Result<CommandSpec, String> {
        Ok(terminal::command(order))
    }

    fn parser(&self) -> Box<dyn StreamParser> {
        Box::new(stream::Stream::default())
    }

    fn environment(&self) -> EnvRules {
        environment::rules()
    }

    fn aws_login(
        &self,
        env: &dyn Fn(&str) -> Option<String>,
        read: &dyn Fn(&Path) -> Option<Vec<u8>>,
    ) -> bool {
        crate::bedrock::claude(env, self.home(env), read)
    }

    fn home(&self, env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
        let set = |name| env(name).filter(|value| !value.is_empty());
        match set("CLAUDE_CONFIG_DIR") {
            Some(folder) => Some(PathBuf::from(folder)),
            None => set("HOME").map(|home| Path::new(&home).join(".claude")),
        }
    }

    fn place(&self, at: &SessionAt<'_>) -> Place {
        let folder = encode::folder(at.folder);
        Place::At(format!("{}/{folder}/{}.jsonl", head::PROJECTS, at.session))
    }

    /// Unless its user said otherwise (`cleanupPeriodDays`).
    fn deletes_after_days(&self) -> Option<u32> {
        Some(30)
    }

    /// None of it is needed to go on, but what the model was told of lies there: what its sub-agents
    /// said, long results of tools, its list of tasks, files as they were (2.1.197).
    fn parts(&self, at: &SessionAt<'_>) -> Vec<(&'static str, String)> {
        let folder = encode::folder(at.folder);
        vec![
            (
                "session",
                format!("{}/{folder}/{}", head::PROJECTS, at.session),
            ),
            ("tasks", format!("tasks/{}", at.session)),
            ("file-history", format!("file-history/{}", at.session)),
        ]
    }

    fn reader(&self, cursor: Option<&str>) -> Box<dyn SessionReader> {
        Box::new(session::Reader::new(cursor))
    }

    fn own_sessions(
        &self,
        env: &dyn Fn(&str) -> Option<String>,
        folder: Option<&str>,
    ) -> Option<OwnSessions> {
        let name = folder.map_or_else(|| "*".to_owned(), encode::folder);
        Some(OwnSessions {
            home: self.home(env)?,
            kept: Kept::Files {
                folders: vec![format!("{}/{name}", head::PROJECTS)],
                begins: "",
                ends: &[".jsonl"],
            },
            copied: false,
        })
    }

    fn head(
        &self,
        path: &str,
        folder: Option<&str>,
        _read: &dyn Fn(&str) -> Option<Vec<u8>>,
    ) -> Box<dyn HeadReader> {
        Box::new(head::Head::new(path, folder))
    }

    fn live_marks(&self) -> Option<&'static str> {
        Some("sessions")
    }

    fn live_mark(&self, bytes: &[u8]) -> Option<LiveMark> {
        let mark: Mark = serde_json::from_slice(bytes).ok()?;
        let session = SessionId::new(mark.session_id).ok()?;
        Some(LiveMark {
            pid: mark.pid,
            session,
        })
    }
}

/// `sessions/<pid>.json`: there while a process runs, and after a kill until the next start.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Mark {
    pid: u32,
    session_id: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_home_is_where_the_cli_looks() {
        let home = |pairs: &[(&str, &str)]| {
            let pairs: Vec<_> = pairs
                .iter()
                .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
                .collect();
            Claude.home(&move |name| {
                pairs
                    .iter()
                    .find(|(n, _)| n == name)
                    .map(|(_, v)| v.clone())
            })
        };
        assert_eq!(home(&[("HOME", "/h")]), Some(PathBuf::from("/h/.claude")));
        assert_eq!(
            home(&[("HOME", "/h"), ("CLAUDE_CONFIG_DIR", "/c")]),
            Some(PathBuf::from("/c"))
        );
        assert_eq!(
            home(&[("HOME", "/h"), ("CLAUDE_CONFIG_DIR", "")]),
            Some(PathBuf::from("/h/.claude"))
        );
        assert_eq!(home(&[]), None);
    }

    #[test]
    fn a_live_mark_is_read_or_ignored() {
        let mark = br#"{"pid":42,"sessionId":"b731fd0c-68de-4452-a02a-ef7d040b8069","cwd":"/w","kind":"sdk"}"#;
        assert_eq!(Claude.live_mark(mark).map(|m| m.pid), Some(42));
        for bad in [
            &b""[..],
            b"{}",
            br#"{"pid":-1,"sessionId":"x"}"#,
            br#"{"pid":1,"sessionId":"../x"}"#,
        ] {
            assert_eq!(Claude.live_mark(bad), None);
        }
    }
}
