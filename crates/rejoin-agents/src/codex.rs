//! Codex CLI. Measured on 0.166.0 (agents/codex.md). Statements about the CLI's behaviour were
//! observed on that version.

use std::path::{Path, PathBuf};

use rejoin_core::{PermissionMode, Permissions, Runtime, SessionId};

use crate::adapter::{Adapter, CostLimit, Env, IdForm, Login, NamedTools, Profile, ReadHome};
use crate::capability::{
    Adopt, AwsLogin, Capabilities, Dialogue, Fork, InUse, Sandbox, Trace, Warm,
};
use crate::environment::EnvRules;
use crate::external::{Ancestor, HeaderReader, SessionStorage, UserSessions};
use crate::order::{CommandSpec, RunOrder};
use crate::session::{ChosenBy, Forking, Moving, Records, SessionAt, SessionPath, SessionReader};
use crate::stream::StreamParser;
use crate::turn_end::TurnEndReader;

mod classify;
mod command;
mod config;
mod dialogue;
mod environment;
mod escape;
mod header;
mod permission;
mod probe;
mod repository;
mod rollout;
mod session;
mod session_path;
mod stream;
mod terminal;
mod tool_log;
mod wire;
mod wrapper;

pub(crate) struct Codex;

static PROFILE: Profile = Profile {
    name: "codex",
    program: Some("codex"),
    prelude: &[],
    install: "npm install -g @openai/codex",
    login: Some(Login {
        variables: environment::LOGINS,
        file: "auth.json",
        how: "codex login, or export CODEX_API_KEY=…",
    }),
    allows: permission::PERMISSION_TABLE,
    // The sandbox depends on the mode alone.
    named_tools: NamedTools::Restrict,
    ids: IdForm::Uuid,
    chosen_by: ChosenBy::TheCli,
    records: Records::Lines,
    // A model of another family makes the CLI compact the session first (0.166.0), so the model is
    // passed.
    keeps_model: false,
    deletes_after_days: None,
    totals: None,
    cannot_resume: None,
};

impl Adapter for Codex {
    fn profile(&self) -> &Profile {
        &PROFILE
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            adopt: Some(self),
            aws_login: Some(self),
            dialogue: Some(self),
            fork: Some(self),
            defer: None,
            in_use: Some(self),
            limits: None,
            mentions: None,
            overlay: None,
            proof: Some(self),
            providers: Some(self),
            repair: None,
            repository: Some(self),
            sandbox: Some(self),
            side_folders: None,
            terminal: Some(self),
            warm: Some(self),
            wrapper: Some(self),
        }
    }

    fn runtime(&self, version_output: &str) -> Option<Runtime> {
        probe::runtime(version_output)
    }

    fn check_permissions(&self, permissions: &Permissions, _as_root: bool) -> Result<(), String> {
        permission::check(permissions)
    }

    /// `exec` reports tokens only when the turn is complete.
    fn cost_limit(&self, permissions: &Permissions) -> CostLimit {
        if permissions.mode == PermissionMode::Ask {
            return CostLimit::Tokens;
        }
        CostLimit::None("codex reports its tokens during a turn only with --permission ask".into())
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
        crate::probe::folder(env, "CODEX_HOME", ".codex")
    }

    fn place(&self, at: &SessionAt<'_>) -> SessionPath {
        session_path::place(at.session)
    }

    /// A session continues in any folder that the command names.
    fn moving(&self, _at: &SessionAt<'_>, _read: ReadHome<'_>) -> Moving {
        Moving::Stays
    }

    fn reader(&self, cursor: Option<&str>) -> Box<dyn SessionReader> {
        Box::new(session::Reader::new(cursor))
    }
}

impl Adopt for Codex {
    /// Archived sessions are not listed, because the CLI does not resume them (0.166.0).
    fn own_sessions(&self, env: Env<'_>, _folder: Option<&str>) -> Option<UserSessions> {
        Some(UserSessions {
            home: self.home(env)?,
            kept: SessionStorage::Files {
                folders: vec![session_path::ANYWHERE.to_owned()],
                begins: session_path::BEGINS,
                ends: &[".jsonl"],
            },
            copied: false,
        })
    }

    fn header(
        &self,
        _path: &str,
        _folder: Option<&str>,
        _read: ReadHome<'_>,
    ) -> Box<dyn HeaderReader> {
        Box::new(header::Header::default())
    }

    fn ancestor(&self, first: &[u8]) -> Option<Ancestor> {
        header::ancestor(first)
    }
}

impl AwsLogin for Codex {
    fn selects_aws(&self, env: Env<'_>, read: &dyn Fn(&Path) -> Option<Vec<u8>>) -> bool {
        crate::bedrock::codex(self.home(env), read)
    }
}

impl Dialogue for Codex {
    fn dialogue_parser(&self, dialogue: &str) -> Box<dyn StreamParser> {
        Box::new(dialogue::Reader::led_by(dialogue))
    }
}

impl Fork for Codex {
    /// A session made by the CLI's own `fork` needs the parent's file forever, and the CLI reads
    /// that file while it may be written. A copy under another id is independent and keeps its
    /// token counts.
    fn forking(&self) -> Forking {
        Forking::ByCopy(rollout::rename_header)
    }

    fn forks(&self, _permissions: &Permissions) -> bool {
        true
    }

    fn fork(&self, mut resume: CommandSpec, order: &RunOrder<'_>) -> Option<CommandSpec> {
        if resume.dialogue.is_some() {
            return Some(resume);
        }
        let at = resume.args.iter().position(|arg| arg == "resume")?;
        let id = order.plan.session()?.id().as_str();
        let asked = resume.args.iter_mut().skip(at).find(|arg| *arg == id)?;
        *asked = order.new_session.to_string();
        Some(resume)
    }
}

impl InUse for Codex {
    /// The file is held by `flock` for as long as a process has the session open.
    fn trace(&self, session: &SessionId, _place: Option<&str>) -> Option<Trace> {
        Some(Trace::Lock(format!("thread-writer-locks/{session}.lock")))
    }
}

impl Sandbox for Codex {
    /// The sandbox is bubblewrap (0.166.0, which refuses the older sandbox without mounts).
    fn mounts(&self, permissions: &Permissions, _read: ReadHome<'_>) -> bool {
        permissions.mode != PermissionMode::Full
    }

    fn mcp_servers(&self, read: ReadHome<'_>) -> Vec<String> {
        config::mcp_servers(read)
    }

    /// Each is created as a mount point for a read-only mount. They remain after an interrupt.
    fn sandbox_dirs(&self) -> &'static [&'static str] {
        &[".agents", ".aws", ".codex", ".git"]
    }
}

impl Warm for Codex {
    fn stays(&self, permissions: &Permissions, _extra_args: &[String]) -> bool {
        permissions.mode == PermissionMode::Ask
    }

    fn turn_end_reader(&self) -> Box<dyn TurnEndReader> {
        Box::<dialogue::TurnEnd>::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_home_is_where_the_cli_looks() {
        let home = |pairs: &[(&str, &str)]| {
            let found = |name: &str| pairs.iter().find(|(n, _)| *n == name);
            Codex.home(&|name| found(name).map(|(_, v)| (*v).to_owned()))
        };
        assert_eq!(home(&[("HOME", "/h")]), Some(PathBuf::from("/h/.codex")));
        assert_eq!(
            home(&[("HOME", "/h"), ("CODEX_HOME", "/c")]),
            Some(PathBuf::from("/c"))
        );
        assert_eq!(
            home(&[("HOME", "/h"), ("CODEX_HOME", "")]),
            Some(PathBuf::from("/h/.codex"))
        );
        assert_eq!(home(&[]), None);
    }
}
