//! Gemini CLI. Measured on 0.61.0 (agents/gemini.md).

use std::path::PathBuf;

use rejoin_core::{Envelope, PermissionMode, Runtime};

use crate::adapter::{Adapter, Allows, Login, ProofEnv, ProofSetup};
use crate::environment::EnvRules;
use crate::order::{CommandSpec, RunOrder};
use crate::outside::{HeadReader, Kept, OwnSessions};
use crate::overlay::Overlay;
use crate::repository::{RepositoryFile, RepositoryFolder};
use crate::session::{ChosenBy, Forking, Moving, Place, SessionAt, SessionReader};
use crate::stay::StayReader;
use crate::stream::StreamParser;
use crate::terminal::TerminalOrder;

mod acp;
mod classify;
mod command;
mod environment;
mod head;
mod home;
mod neutral;
mod note;
mod permission;
mod probe;
mod repository;
mod session;
mod stream;
mod terminal;
mod wire;

pub(crate) struct Gemini;

impl Adapter for Gemini {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn program(&self) -> Option<&'static str> {
        Some("gemini")
    }

    fn install(&self) -> &'static str {
        "npm install -g @google/gemini-cli"
    }

    fn login(&self) -> Option<Login> {
        Some(Login {
            variables: environment::LOGINS,
            file: "oauth_creds.json",
            how: "gemini (it asks at its first start), or export GEMINI_API_KEY=…",
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

    fn mentions(&self, message: &str) -> Vec<String> {
        neutral::paths(message)
    }

    fn repository_files(&self, folder: &RepositoryFolder<'_>) -> Vec<RepositoryFile> {
        repository::files(folder)
    }

    fn leaves_stubs(&self) -> bool {
        true
    }

    fn command(&self, order: &RunOrder<'_>) -> CommandSpec {
        command::command(order)
    }

    fn stays(&self, envelope: &Envelope, _extra_args: &[String]) -> bool {
        envelope.mode == PermissionMode::Ask
    }

    fn stay_reader(&self) -> Option<Box<dyn StayReader>> {
        Some(Box::<acp::Stays>::default())
    }

    fn forking(&self) -> Forking {
        Forking::FromFile(ChosenBy::TheCli)
    }

    /// A file is taken for a session only where the CLI does not ask.
    fn forks(&self, envelope: &Envelope) -> bool {
        envelope.mode != PermissionMode::Ask
    }

    fn fork(&self, mut resume: CommandSpec, order: &RunOrder<'_>) -> Option<CommandSpec> {
        let at = resume.args.iter().position(|arg| arg == "--resume")?;
        let import = ["--session-file".to_owned(), order.origin?.to_owned()];
        resume.args.splice(at..=at + 1, import);
        Some(resume)
    }

    fn terminal(&self, order: &TerminalOrder<'_>) -> Result<CommandSpec, String> {
        Ok(terminal::command(order))
    }

    fn parser(&self) -> Box<dyn StreamParser> {
        Box::new(stream::Stream::default())
    }

    fn in_dialogue(&self, dialogue: &str) -> Box<dyn StreamParser> {
        Box::new(acp::Dialogue::new(dialogue))
    }

    fn environment(&self) -> EnvRules {
        environment::rules()
    }

    fn home(&self, env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
        home::home(env)
    }

    fn overlay(&self, env: &dyn Fn(&str) -> Option<String>) -> Option<Overlay> {
        home::overlay(env)
    }

    fn place(&self, at: &SessionAt<'_>) -> Place {
        home::place(at)
    }

    fn moving(&self, at: &SessionAt<'_>, read: &dyn Fn(&str) -> Option<Vec<u8>>) -> Moving {
        home::moving(at, read)
    }

    fn out_of_the_way(&self, path: &str, envelope: &Envelope) -> Option<String> {
        (envelope.mode == PermissionMode::Ask).then(|| home::of_no_minute(path))?
    }

    /// It would ask a model which model to take.
    fn keeps_model(&self) -> bool {
        false
    }

    fn reader(&self, cursor: Option<&str>) -> Box<dyn SessionReader> {
        Box::new(session::Reader::new(cursor))
    }

    /// Not those in our overlay. With the user's settings the CLI deletes sessions that were resumed
    /// (`home.rs`), so ours are copies.
    fn own_sessions(
        &self,
        env: &dyn Fn(&str) -> Option<String>,
        _folder: Option<&str>,
    ) -> Option<OwnSessions> {
        Some(OwnSessions {
            home: home::own(env)?,
            kept: Kept::Files {
                folders: vec!["tmp/*/chats".to_owned()],
                begins: "session-",
                ends: &[".jsonl", ".json"],
            },
            copied: true,
        })
    }

    fn head(
        &self,
        path: &str,
        _folder: Option<&str>,
        read: &dyn Fn(&str) -> Option<Vec<u8>>,
    ) -> Box<dyn HeadReader> {
        Box::new(head::Head::new(path, read))
    }

    fn as_lines(&self, session: &[u8]) -> Option<Vec<u8>> {
        head::as_lines(session)
    }

    fn mend(&self, session: &[u8]) -> Option<Vec<u8>> {
        session::mend(session)
    }
}
