//! Gemini CLI. Measured on 0.61.0 (agents/gemini.md).

use std::path::PathBuf;

use rejoin_core::{PermissionMode, Permissions, Runtime};

use crate::adapter::{Adapter, Env, IdForm, Login, NamedTools, Profile, ReadHome};
use crate::capability::{Adopt, Capabilities, Dialogue, Fork, Mentions, OverlayHome, Repair, Warm};
use crate::environment::EnvRules;
use crate::external::{HeaderReader, SessionStorage, UserSessions};
use crate::order::{CommandSpec, RunOrder};
use crate::overlay::Overlay;
use crate::session::{ChosenBy, Forking, Moving, Records, SessionAt, SessionPath, SessionReader};
use crate::stream::StreamParser;
use crate::turn_end::TurnEndReader;

mod acp;
mod classify;
mod command;
mod environment;
mod escape;
mod header;
mod home;
mod permission;
mod probe;
mod repository;
mod session;
mod stream;
mod terminal;
mod tool_note;
mod wire;

pub(crate) struct Gemini;

static PROFILE: Profile = Profile {
    name: "gemini",
    program: Some("gemini"),
    prelude: &[],
    install: "npm install -g @google/gemini-cli",
    login: Some(Login {
        variables: environment::LOGINS,
        file: "oauth_creds.json",
        how: "gemini (it asks at its first start), or export GEMINI_API_KEY=…",
    }),
    allows: permission::PERMISSION_TABLE,
    named_tools: NamedTools::Permit(&[
        "read",
        "search",
        "edit",
        "read_file",
        "read_many_files",
        "list_directory",
        "glob",
        "grep_search",
        "search_file_content",
        "replace",
        "write_file",
        "write_todos",
    ]),
    ids: IdForm::Uuid,
    chosen_by: ChosenBy::Us,
    records: Records::Lines,
    // Without a model the CLI would ask another model which model to use.
    keeps_model: false,
    deletes_after_days: None,
    totals: None,
    cannot_resume: None,
};

impl Adapter for Gemini {
    fn profile(&self) -> &Profile {
        &PROFILE
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            adopt: Some(self),
            aws_login: None,
            dialogue: Some(self),
            fork: Some(self),
            defer: None,
            in_use: None,
            limits: None,
            mentions: Some(self),
            overlay: Some(self),
            proof: Some(self),
            providers: None,
            repair: Some(self),
            repository: Some(self),
            sandbox: None,
            side_folders: None,
            terminal: Some(self),
            warm: Some(self),
            wrapper: None,
        }
    }

    fn runtime(&self, version_output: &str) -> Option<Runtime> {
        probe::runtime(version_output)
    }

    fn check_permissions(&self, permissions: &Permissions, _as_root: bool) -> Result<(), String> {
        permission::check(permissions)
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
        home::home(env)
    }

    fn place(&self, at: &SessionAt<'_>) -> SessionPath {
        home::place(at)
    }

    fn refuses(&self, line: &[u8]) -> Option<&'static str> {
        session::refuses(line)
    }

    fn moving(&self, at: &SessionAt<'_>, read: ReadHome<'_>) -> Moving {
        home::moving(at, read)
    }

    fn reader(&self, cursor: Option<&str>) -> Box<dyn SessionReader> {
        Box::new(session::Reader::new(cursor))
    }
}

impl Adopt for Gemini {
    /// Sessions outside rejoin's overlay. With the user's settings the CLI deletes sessions that
    /// were resumed (`home.rs`), so rejoin works on copies.
    fn own_sessions(&self, env: Env<'_>, _folder: Option<&str>) -> Option<UserSessions> {
        Some(UserSessions {
            home: home::own(env)?,
            kept: SessionStorage::Files {
                folders: vec!["tmp/*/chats".to_owned()],
                begins: "session-",
                ends: &[".jsonl", ".json"],
            },
            copied: true,
        })
    }

    fn header(
        &self,
        path: &str,
        _folder: Option<&str>,
        read: ReadHome<'_>,
    ) -> Box<dyn HeaderReader> {
        Box::new(header::Header::new(path, read))
    }

    fn as_lines(&self, session: &[u8]) -> Option<Vec<u8>> {
        header::as_lines(session)
    }
}

impl Dialogue for Gemini {
    fn dialogue_parser(&self, dialogue: &str) -> Box<dyn StreamParser> {
        Box::new(acp::Dialogue::new(dialogue))
    }
}

impl Fork for Gemini {
    fn forking(&self) -> Forking {
        Forking::FromFile(ChosenBy::TheCli)
    }

    /// A file is accepted as a session only in modes in which the CLI does not ask.
    fn forks(&self, permissions: &Permissions) -> bool {
        permissions.mode != PermissionMode::Ask
    }

    fn fork(&self, mut resume: CommandSpec, order: &RunOrder<'_>) -> Option<CommandSpec> {
        let at = resume.args.iter().position(|arg| arg == "--resume")?;
        let import = ["--session-file".to_owned(), order.origin?.to_owned()];
        resume.args.splice(at..=at + 1, import);
        Some(resume)
    }
}

impl Mentions for Gemini {
    fn mentions(&self, message: &str) -> Vec<String> {
        escape::paths(message)
    }
}

impl OverlayHome for Gemini {
    fn overlay(&self, env: Env<'_>) -> Option<Overlay> {
        home::overlay(env)
    }
}

impl Repair for Gemini {
    fn repair(&self, session: &[u8]) -> Option<Vec<u8>> {
        session::repair(session)
    }

    fn relocate_for(&self, path: &str, permissions: &Permissions) -> Option<String> {
        (permissions.mode == PermissionMode::Ask).then(|| home::undated_path(path))?
    }
}

impl Warm for Gemini {
    fn stays(&self, permissions: &Permissions, _extra_args: &[String]) -> bool {
        permissions.mode == PermissionMode::Ask
    }

    fn turn_end_reader(&self) -> Box<dyn TurnEndReader> {
        Box::<acp::TurnEnd>::default()
    }
}
