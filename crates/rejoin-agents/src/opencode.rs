//! OpenCode. Measured on 1.18.33 (agents/opencode.md). Statements about the CLI's behaviour were
//! observed on that version unless they say otherwise.
//!
//! Each session has a database of its own beneath the CLI's data folder, so that it can be hashed,
//! copied and restored as one file, and the user's own database is never touched.

use std::path::{Path, PathBuf};

use rejoin_core::{PermissionMode, Permissions, Runtime, SessionId};

use crate::adapter::{Adapter, CostLimit, Env, IdForm, Login, NamedTools, Profile, ReadHome};
use crate::capability::{Adopt, AwsLogin, Capabilities, Dialogue, Fork, InUse, Trace, Warm};
use crate::environment::EnvRules;
use crate::external::{HeaderReader, SessionStorage, UserSessions};
use crate::order::{CommandSpec, RunOrder};
use crate::session::{ChosenBy, Forking, Moving, Records, SessionAt, SessionPath, SessionReader};
use crate::stream::StreamParser;
use crate::turn_end::TurnEndReader;

mod classify;
mod command;
mod dialogue;
mod environment;
mod header;
mod permission;
mod probe;
mod repository;
pub mod serve;
mod session;
mod stream;
mod terminal;
mod tool;

/// Form of session ids. Other versions may use fewer or more digits. Given an empty id, the CLI
/// silently starts a new session.
const IDS: IdForm = IdForm::Prefixed {
    prefix: "ses_",
    length: (12, 64),
    digits: 26,
};

pub(crate) struct OpenCode;

static PROFILE: Profile = Profile {
    name: "opencode",
    program: Some("opencode"),
    prelude: &[],
    install: "npm install -g opencode-ai",
    login: Some(Login {
        variables: environment::LOGINS,
        file: "auth.json",
        how: "opencode auth login, or export the key of your model's vendor",
    }),
    allows: permission::PERMISSION_TABLE,
    named_tools: NamedTools::Permit(&["read", "search", "edit", "glob", "grep", "list"]),
    ids: IDS,
    chosen_by: ChosenBy::TheCli,
    records: Records::Database {
        lines: session::LINES,
        ready: session::READY,
        foreign: session::FOREIGN,
    },
    keeps_model: true,
    deletes_after_days: None,
    totals: None,
    cannot_resume: None,
};

impl Adapter for OpenCode {
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
            providers: None,
            repair: None,
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

    fn cost_limit(&self, _permissions: &Permissions) -> CostLimit {
        CostLimit::Dollars
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
        let data = crate::probe::folder(env, "XDG_DATA_HOME", ".local/share")?;
        Some(data.join("opencode"))
    }

    fn place(&self, at: &SessionAt<'_>) -> SessionPath {
        SessionPath::At(format!("rejoin/{}.db", at.pin))
    }

    /// `-s` from another folder than the session's hangs forever without a message. The project of
    /// the session does not matter.
    fn moving(&self, _at: &SessionAt<'_>, _read: ReadHome<'_>) -> Moving {
        Moving::Rewrite(session::MOVE)
    }

    fn reader(&self, cursor: Option<&str>) -> Box<dyn SessionReader> {
        Box::new(session::Reader::new(cursor))
    }
}

impl Adopt for OpenCode {
    /// All sessions of the user are in one database. Each of rejoin's has its own, in a separate
    /// folder.
    fn own_sessions(&self, env: Env<'_>, _folder: Option<&str>) -> Option<UserSessions> {
        Some(UserSessions {
            home: self.home(env)?,
            kept: SessionStorage::Rows {
                begins: "opencode",
                ends: ".db",
                heads: header::HEADS,
                copy: header::COPY,
                whole: "migration",
            },
            copied: true,
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
}

impl AwsLogin for OpenCode {
    fn selects_aws(&self, env: Env<'_>, read: &dyn Fn(&Path) -> Option<Vec<u8>>) -> bool {
        crate::bedrock::opencode(env, read)
    }
}

impl Dialogue for OpenCode {
    fn dialogue_parser(&self, dialogue: &str) -> Box<dyn StreamParser> {
        Box::new(dialogue::Dialogue::of(dialogue))
    }
}

impl Fork for OpenCode {
    fn forking(&self) -> Forking {
        Forking::Within(session::ALONE)
    }

    fn forks(&self, _permissions: &Permissions) -> bool {
        true
    }

    fn fork(&self, mut resume: CommandSpec, _order: &RunOrder<'_>) -> Option<CommandSpec> {
        if resume.dialogue.is_some() {
            return serve::forked(resume);
        }
        resume.args.push("--fork".into());
        Some(resume)
    }
}

impl InUse for OpenCode {
    /// Shared memory of SQLite: a connection holds a lock on it for as long as it is open.
    fn trace(&self, _session: &SessionId, place: Option<&str>) -> Option<Trace> {
        Some(Trace::Lock(format!("{}-shm", place?)))
    }
}

impl Warm for OpenCode {
    /// Arguments for `run` have no meaning for the server.
    fn stays(&self, permissions: &Permissions, extra_args: &[String]) -> bool {
        permissions.mode == PermissionMode::Ask || extra_args.is_empty()
    }

    fn turn_end_reader(&self) -> Box<dyn TurnEndReader> {
        Box::<serve::TurnEnd>::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_home_is_where_the_cli_looks() {
        let home = |pairs: &[(&str, &str)]| {
            let pairs: Vec<(String, String)> = pairs
                .iter()
                .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
                .collect();
            OpenCode.home(&move |name| {
                let found = pairs.iter().find(|(n, _)| n == name);
                found.map(|(_, value)| value.clone())
            })
        };
        let at = |path: &str| Some(PathBuf::from(path));
        assert_eq!(home(&[("HOME", "/h")]), at("/h/.local/share/opencode"));
        let both = [("HOME", "/h"), ("XDG_DATA_HOME", "/d")];
        assert_eq!(home(&both), at("/d/opencode"));
        let empty = [("HOME", "/h"), ("XDG_DATA_HOME", "")];
        assert_eq!(home(&empty), at("/h/.local/share/opencode"));
        assert_eq!(home(&[]), None);
    }

    #[test]
    fn only_its_own_ids_are_passed_on() {
        let is = |id: &str| SessionId::new(id).is_ok_and(|id| IDS.accept(&id));
        assert!(is("ses_e21a13099ffesPgMJlFhtDvy9X"));
        assert!(is("ses_rejoinSynthetic0001"));
        for other in [
            "",
            "ses_",
            "ses_short",
            "b731fd0c-68de-4452-a02a-ef7d040b8069",
            "ses_e21a13099ffe/../../x",
            "ses_e21a13099ffes PgMJlFhtDvy9X",
            "--continue",
            "ses-e21a13099ffesPgMJlFhtDvy9X",
        ] {
            assert!(!is(other), "{other}");
        }
    }
}
