//! Claude Code. Measured on 2.1.197 and 2.1.325 (agents/claude.md). Statements about the CLI's
//! behaviour hold for both versions unless they name one.

use std::path::{Path, PathBuf};

use rejoin_core::{Permissions, Runtime, SessionId};
use serde::Deserialize;

use crate::adapter::{Adapter, CostLimit, Env, IdForm, Login, NamedTools, Profile, ReadHome};
use crate::capability::{
    Adopt, AwsLogin, Capabilities, Fork, InUse, LiveMark, Mentions, Sandbox, SideFolders, Trace,
    Warm,
};
use crate::environment::EnvRules;
use crate::external::{HeaderReader, SessionStorage, UserSessions};
use crate::order::{CommandSpec, RunOrder};
use crate::session::{ChosenBy, Forking, Moving, Records, SessionAt, SessionPath, SessionReader};
use crate::stream::StreamParser;
use crate::turn_end::TurnEndReader;

mod classify;
mod command;
mod encode;
mod environment;
mod escape;
mod header;
mod hook;
mod permission;
mod probe;
mod repository;
mod session;
mod stream;
mod terminal;
mod tool_note;
mod turn_end;
mod wire;

pub(crate) struct Claude;

static PROFILE: Profile = Profile {
    name: "claude",
    program: Some("claude"),
    prelude: &[],
    install: "npm install -g @anthropic-ai/claude-code",
    login: Some(Login {
        variables: environment::LOGINS,
        file: ".credentials.json",
        how: "claude /login, or export ANTHROPIC_API_KEY=…",
    }),
    allows: permission::PERMISSION_TABLE,
    // The editing tools are not listed: in `edit` the CLI writes inside the folder only, and a named
    // tool is permitted everywhere.
    named_tools: NamedTools::Permit(&["read", "search", "Read", "Glob", "Grep", "LS", "TodoWrite"]),
    ids: IdForm::Uuid,
    chosen_by: ChosenBy::Us,
    records: Records::Lines,
    keeps_model: true,
    // Default of the user's setting `cleanupPeriodDays`.
    deletes_after_days: Some(30),
    totals: None,
    cannot_resume: None,
};

impl Adapter for Claude {
    fn profile(&self) -> &Profile {
        &PROFILE
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            adopt: Some(self),
            aws_login: Some(self),
            dialogue: None,
            fork: Some(self),
            defer: Some(self),
            in_use: Some(self),
            limits: Some(self),
            mentions: Some(self),
            overlay: None,
            proof: Some(self),
            providers: None,
            repair: None,
            repository: Some(self),
            sandbox: Some(self),
            side_folders: Some(self),
            terminal: Some(self),
            warm: Some(self),
            wrapper: None,
        }
    }

    fn runtime(&self, version_output: &str) -> Option<Runtime> {
        probe::runtime(version_output)
    }

    fn check_permissions(&self, permissions: &Permissions, as_root: bool) -> Result<(), String> {
        permission::check(permissions, as_root)
    }

    fn forbidden_offer<'t>(
        &self,
        permissions: &Permissions,
        offered: &'t [String],
    ) -> Option<&'t str> {
        permission::forbidden_offer(permissions, offered)
    }

    fn cost_limit(&self, _permissions: &Permissions) -> CostLimit {
        CostLimit::OfTheCli
    }

    fn environment(&self) -> EnvRules {
        environment::rules()
    }

    fn command(&self, order: &RunOrder<'_>) -> CommandSpec {
        command::command(order)
    }

    fn parser(&self) -> Box<dyn StreamParser> {
        Box::new(stream::Stream::default())
    }

    fn home(&self, env: Env<'_>) -> Option<PathBuf> {
        crate::probe::folder(env, "CLAUDE_CONFIG_DIR", ".claude")
    }

    fn place(&self, at: &SessionAt<'_>) -> SessionPath {
        let folder = encode::folder(at.folder);
        SessionPath::At(format!(
            "{}/{folder}/{}.jsonl",
            header::PROJECTS,
            at.session
        ))
    }

    fn refuses(&self, line: &[u8]) -> Option<&'static str> {
        session::refuses(line)
    }

    fn moving(&self, at: &SessionAt<'_>, _read: ReadHome<'_>) -> Moving {
        self.place(at).moving()
    }

    fn reader(&self, cursor: Option<&str>) -> Box<dyn SessionReader> {
        Box::new(session::Reader::new(cursor))
    }
}

impl Adopt for Claude {
    fn own_sessions(&self, env: Env<'_>, folder: Option<&str>) -> Option<UserSessions> {
        let name = folder.map_or_else(|| "*".to_owned(), encode::folder);
        Some(UserSessions {
            home: self.home(env)?,
            kept: SessionStorage::Files {
                folders: vec![format!("{}/{name}", header::PROJECTS)],
                begins: "",
                ends: &[".jsonl"],
            },
            copied: false,
        })
    }

    fn header(
        &self,
        path: &str,
        folder: Option<&str>,
        _read: ReadHome<'_>,
    ) -> Box<dyn HeaderReader> {
        Box::new(header::Header::new(path, folder))
    }
}

impl AwsLogin for Claude {
    fn selects_aws(&self, env: Env<'_>, read: &dyn Fn(&Path) -> Option<Vec<u8>>) -> bool {
        crate::bedrock::claude(env, self.home(env), read)
    }
}

impl Fork for Claude {
    /// The CLI forks from a file anywhere on the disk into the folder of its sessions. The file
    /// stays unchanged.
    fn forking(&self) -> Forking {
        Forking::FromFile(ChosenBy::Us)
    }

    fn forks(&self, _permissions: &Permissions) -> bool {
        true
    }

    fn fork(&self, mut resume: CommandSpec, order: &RunOrder<'_>) -> Option<CommandSpec> {
        let at = resume.args.iter().position(|arg| arg == "--resume")?;
        let asked = resume.args.get_mut(at + 1)?;
        order.origin?.clone_into(asked);
        let own = ["--fork-session", "--session-id", order.new_session.as_str()];
        resume.args.extend(own.map(str::to_owned));
        Some(resume)
    }
}

impl InUse for Claude {
    fn trace(&self, _session: &SessionId, _place: Option<&str>) -> Option<Trace> {
        Some(Trace::Notes {
            folder: "sessions",
            parse: live_mark,
        })
    }
}

impl Mentions for Claude {
    fn mentions(&self, message: &str) -> Vec<String> {
        escape::paths(message)
    }
}

impl Sandbox for Claude {
    /// The sandbox is bubblewrap, and off unless the user's settings switch it on.
    fn mounts(&self, _permissions: &Permissions, read: ReadHome<'_>) -> bool {
        let settings = read("settings.json").unwrap_or_default();
        let settings: serde_json::Value = serde_json::from_slice(&settings).unwrap_or_default();
        settings["sandbox"]["enabled"] == true
    }

    fn mcp_servers(&self, _read: ReadHome<'_>) -> Vec<String> {
        vec![]
    }

    fn sandbox_dirs(&self) -> &'static [&'static str] {
        &[]
    }
}

impl SideFolders for Claude {
    /// Folders with details that the session refers to: messages of sub-agents, long tool results,
    /// the task list, earlier versions of files (2.1.197). None of them is needed to resume.
    fn parts(&self, at: &SessionAt<'_>) -> Vec<(&'static str, String)> {
        let folder = encode::folder(at.folder);
        vec![
            (
                "session",
                format!("{}/{folder}/{}", header::PROJECTS, at.session),
            ),
            ("tasks", format!("tasks/{}", at.session)),
            ("file-history", format!("file-history/{}", at.session)),
        ]
    }
}

impl Warm for Claude {
    fn stays(&self, _permissions: &Permissions, _extra_args: &[String]) -> bool {
        true
    }

    fn turn_end_reader(&self) -> Box<dyn TurnEndReader> {
        Box::<turn_end::Reader>::default()
    }
}

/// Parses a file of `sessions/`.
fn live_mark(bytes: &[u8]) -> Option<LiveMark> {
    let mark: Mark = serde_json::from_slice(bytes).ok()?;
    let session = SessionId::new(mark.session_id).ok()?;
    Some(LiveMark {
        pid: mark.pid,
        session,
    })
}

/// Content of `sessions/<pid>.json`, which exists while a process runs, and after a kill until the
/// next start.
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
        assert_eq!(live_mark(mark).map(|m| m.pid), Some(42));
        for bad in [
            &b""[..],
            b"{}",
            br#"{"pid":-1,"sessionId":"x"}"#,
            br#"{"pid":1,"sessionId":"../x"}"#,
        ] {
            assert_eq!(live_mark(bad), None);
        }
    }
}
