//! OpenCode. Measured on 1.18.33 (agents/opencode.md); what a constant says of the CLI's behaviour
//! was seen there unless it says otherwise.
//!
//! Each session lies in a database of its own beneath the CLI's data folder, so that it can be
//! hashed, copied and put back as one file, and the user's own database is never touched.

use std::path::{Path, PathBuf};

use rejoin_core::{Envelope, PermissionMode, Runtime, SessionId};

use crate::adapter::{Adapter, Allows, Login, ProofEnv, ProofSetup};
use crate::environment::EnvRules;
use crate::order::{CommandSpec, RunOrder};
use crate::outside::{HeadReader, Kept, OwnSessions};
use crate::repository::{RepositoryFile, RepositoryFolder};
use crate::session::{ChosenBy, Forking, Moving, Place, Records, SessionAt, SessionReader};
use crate::stay::StayReader;
use crate::stream::StreamParser;
use crate::terminal::TerminalOrder;

mod classify;
mod command;
mod dialogue;
mod environment;
mod head;
mod permission;
mod probe;
mod repository;
pub mod serve;
mod session;
mod stream;
mod terminal;
mod tool;

/// `ses_` and 26 letters and digits; other versions may take fewer or more.
const ID_BEGINS: &str = "ses_";
const ID_LENGTH: std::ops::RangeInclusive<usize> = 12..=64;

pub(crate) struct OpenCode;

impl Adapter for OpenCode {
    fn name(&self) -> &'static str {
        "opencode"
    }

    fn program(&self) -> Option<&'static str> {
        Some("opencode")
    }

    fn install(&self) -> &'static str {
        "npm install -g opencode-ai"
    }

    fn login(&self) -> Option<Login> {
        Some(Login {
            variables: environment::LOGINS,
            file: "auth.json",
            how: "opencode auth login, or export the key of your model's vendor",
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
        Some(environment::proof(at))
    }

    fn allows(&self) -> &'static [Allows] {
        permission::ALLOWS
    }

    fn express(&self, envelope: &Envelope, _as_root: bool) -> Result<(), String> {
        permission::express(envelope)
    }

    fn repository_files(&self, folder: &RepositoryFolder<'_>) -> Vec<RepositoryFile> {
        repository::files(folder)
    }

    fn hostile_repository(&self, marker: &str) -> Vec<(String, String)> {
        repository::hostile(marker)
    }

    /// The working folder's own is named in every run.
    fn unread_memory(&self, is_workdir: bool) -> &'static [&'static [&'static str]] {
        if is_workdir { &[] } else { &[&["AGENTS.md"]] }
    }

    fn command(&self, order: &RunOrder<'_>) -> CommandSpec {
        command::command(order)
    }

    /// Arguments for `run` mean nothing to its server.
    fn stays(&self, envelope: &Envelope, extra_args: &[String]) -> bool {
        envelope.mode == PermissionMode::Ask || extra_args.is_empty()
    }

    fn stay_reader(&self) -> Option<Box<dyn StayReader>> {
        Some(Box::<serve::Stays>::default())
    }

    fn forking(&self) -> Forking {
        Forking::Within(session::ALONE)
    }

    fn fork(&self, mut resume: CommandSpec, _order: &RunOrder<'_>) -> Option<CommandSpec> {
        if resume.dialogue.is_some() {
            return serve::forked(resume);
        }
        resume.args.push("--fork".into());
        Some(resume)
    }

    fn terminal(&self, order: &TerminalOrder<'_>) -> Result<CommandSpec, String> {
        Ok(terminal::command(order))
    }

    fn parser(&self) -> Box<dyn StreamParser> {
        Box::new(stream::Stream::default())
    }

    fn in_dialogue(&self, dialogue: &str) -> Box<dyn StreamParser> {
        Box::new(dialogue::Dialogue::of(dialogue))
    }

    fn environment(&self) -> EnvRules {
        environment::rules()
    }

    fn aws_login(
        &self,
        env: &dyn Fn(&str) -> Option<String>,
        read: &dyn Fn(&Path) -> Option<Vec<u8>>,
    ) -> bool {
        crate::bedrock::opencode(env, read)
    }

    fn home(&self, env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
        let set = |name| env(name).filter(|value| !value.is_empty());
        let data = match set("XDG_DATA_HOME") {
            Some(folder) => PathBuf::from(folder),
            None => Path::new(&set("HOME")?).join(".local/share"),
        };
        Some(data.join("opencode"))
    }

    fn chosen_by(&self) -> ChosenBy {
        ChosenBy::TheCli
    }

    /// Given an empty id the CLI starts afresh, silently.
    fn is_session_id(&self, id: &SessionId) -> bool {
        let id = id.as_str();
        let rest = id.strip_prefix(ID_BEGINS).unwrap_or_default();
        ID_LENGTH.contains(&id.len())
            && !rest.is_empty()
            && rest.chars().all(|c| c.is_ascii_alphanumeric())
    }

    fn unknown_session(&self, minted: &SessionId) -> SessionId {
        let plain: String = minted
            .as_str()
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .collect();
        SessionId::new(format!("{ID_BEGINS}{}", &plain[..26.min(plain.len())]))
            .unwrap_or_else(|_| minted.clone())
    }

    fn place(&self, at: &SessionAt<'_>) -> Place {
        Place::At(format!("rejoin/{}.db", at.pin))
    }

    /// `-s` from another folder than the session's hangs for ever, without a word; which project it
    /// is in does not matter.
    fn moving(&self, _at: &SessionAt<'_>, _read: &dyn Fn(&str) -> Option<Vec<u8>>) -> Moving {
        Moving::Rewrite(session::MOVE)
    }

    fn records(&self) -> Records {
        Records::Database {
            lines: session::LINES,
            ready: session::READY,
        }
    }

    /// SQLite's shared memory: a connection holds a lock on it for as long as it is open.
    fn lock_at(&self, place: &str) -> Option<String> {
        Some(format!("{place}-shm"))
    }

    /// All in one database; ours each have one, in a folder of their own.
    fn own_sessions(
        &self,
        env: &dyn Fn(&str) -> Option<String>,
        _folder: Option<&str>,
    ) -> Option<OwnSessions> {
        Some(OwnSessions {
            home: self.home(env)?,
            kept: Kept::Rows {
                begins: "opencode",
                ends: ".db",
                heads: head::HEADS,
                copy: head::COPY,
                whole: "migration",
            },
            copied: true,
        })
    }

    fn head(
        &self,
        _path: &str,
        _folder: Option<&str>,
        _read: &dyn Fn(&str) -> Option<Vec<u8>>,
    ) -> Box<dyn HeadReader> {
        Box::new(head::Head::default())
    }

    fn reader(&self, cursor: Option<&str>) -> Box<dyn SessionReader> {
        Box::new(session::Reader::new(cursor))
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
        let is = |id: &str| SessionId::new(id).is_ok_and(|id| OpenCode.is_session_id(&id));
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
