//! Codex CLI. Measured on 0.166.0 (agents/codex.md); what a constant says of the CLI's behaviour was
//! seen there.

use std::path::{Path, PathBuf};

use rejoin_core::{Envelope, PermissionMode, Runtime, SessionId};

use crate::adapter::{Adapter, Allows, Login, ProofEnv, ProofSetup};
use crate::environment::EnvRules;
use crate::order::{CommandSpec, RunOrder};
use crate::outside::{Ancestor, HeadReader, Kept, OwnSessions};
use crate::repository::{RepositoryFile, RepositoryFolder};
use crate::session::{ChosenBy, Forking, Moving, Place, SessionAt, SessionReader};
use crate::stay::StayReader;
use crate::stream::StreamParser;
use crate::terminal::TerminalOrder;

mod classify;
mod command;
mod config;
mod dialogue;
mod environment;
mod head;
mod ledger;
mod neutral;
mod permission;
mod place;
mod probe;
mod repository;
mod rollout;
mod session;
mod stream;
mod terminal;
mod wire;
mod wrapper;

pub(crate) struct Codex;

impl Adapter for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn program(&self) -> Option<&'static str> {
        Some("codex")
    }

    fn native(&self, wrapper: &Path) -> Vec<PathBuf> {
        wrapper::native(wrapper)
    }

    fn wrapper_env(&self, wrapper: &Path) -> Vec<(String, String)> {
        wrapper::env(wrapper)
    }

    fn install(&self) -> &'static str {
        "npm install -g @openai/codex"
    }

    fn login(&self) -> Option<Login> {
        Some(Login {
            variables: environment::LOGINS,
            file: "auth.json",
            how: "codex login, or export CODEX_API_KEY=…",
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

    /// Its sandbox is bubblewrap (0.166.0, which refuses the older one without mounts).
    fn mounts(&self, envelope: &Envelope, _read: &dyn Fn(&str) -> Option<Vec<u8>>) -> bool {
        envelope.mode != PermissionMode::Full
    }

    fn tool_servers(&self, read: &dyn Fn(&str) -> Option<Vec<u8>>) -> Vec<String> {
        config::tool_servers(read)
    }

    fn repository_files(&self, folder: &RepositoryFolder<'_>) -> Vec<RepositoryFile> {
        repository::files(folder)
    }

    fn hostile_repository(&self, marker: &str) -> Vec<(String, String)> {
        repository::hostile(marker)
    }

    fn unread_memory(&self, _is_workdir: bool) -> &'static [&'static [&'static str]] {
        repository::MEMORY
    }

    fn displaced_memory(&self, read: &dyn Fn(&str) -> Option<Vec<u8>>) -> Option<String> {
        repository::own_instructions(&read("config.toml")?)
    }

    fn command(&self, order: &RunOrder<'_>) -> CommandSpec {
        command::command(order)
    }

    fn stays(&self, envelope: &Envelope, _extra_args: &[String]) -> bool {
        envelope.mode == PermissionMode::Ask
    }

    fn stay_reader(&self) -> Option<Box<dyn StayReader>> {
        Some(Box::<dialogue::Stays>::default())
    }

    /// What its own `fork` writes needs the parent's file for ever, and reads it while that may be
    /// written. A copy under another id goes on by itself, its counts included.
    fn forking(&self) -> Forking {
        Forking::ByCopy
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

    fn renamed(&self, first_line: &[u8], to: &SessionId) -> Option<Vec<u8>> {
        rollout::renamed(first_line, to)
    }

    fn copy_place(&self, at: &SessionAt<'_>) -> Option<String> {
        place::of_copy(at.session)
    }

    fn terminal_help(&self) -> Option<&'static [&'static str]> {
        Some(&["--help"])
    }

    fn terminal(&self, order: &TerminalOrder<'_>) -> Result<CommandSpec, String> {
        terminal::command(order)
    }

    fn parser(&self) -> Box<dyn StreamParser> {
        Box::new(stream::Stream::default())
    }

    fn in_dialogue(&self, dialogue: &str) -> Box<dyn StreamParser> {
        Box::new(dialogue::Reader::led_by(dialogue))
    }

    fn environment(&self) -> EnvRules {
        environment::rules()
    }

    fn aws_login(
        &self,
        env: &dyn Fn(&str) -> Option<String>,
        read: &dyn Fn(&Path) -> Option<Vec<u8>>,
    ) -> bool {
        crate::bedrock::codex(self.home(env), read)
    }

    fn home(&self, env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
        let set = |name| env(name).filter(|value| !value.is_empty());
        match set("CODEX_HOME") {
            Some(folder) => Some(PathBuf::from(folder)),
            None => set("HOME").map(|home| Path::new(&home).join(".codex")),
        }
    }

    fn chosen_by(&self) -> ChosenBy {
        ChosenBy::TheCli
    }

    fn place(&self, at: &SessionAt<'_>) -> Place {
        place::place(at.session)
    }

    /// A session goes on in whichever folder it is told.
    fn moving(&self, _at: &SessionAt<'_>, _read: &dyn Fn(&str) -> Option<Vec<u8>>) -> Moving {
        Moving::Stays
    }

    fn provider_here(&self, provider: &str, read: &dyn Fn(&str) -> Option<Vec<u8>>) -> bool {
        config::provider_here(provider, read)
    }

    /// Held by `flock` for as long as a process has the session open.
    fn lock_file(&self, session: &SessionId) -> Option<String> {
        Some(format!("thread-writer-locks/{session}.lock"))
    }

    /// Each is made to be mounted read-only over; after an interrupt they stay.
    fn litter(&self) -> &'static [&'static str] {
        &[".agents", ".aws", ".codex", ".git"]
    }

    fn litters_temporary(&self) -> bool {
        true
    }

    /// What was archived there is not resumed (0.166.0), so it is not listed.
    fn own_sessions(
        &self,
        env: &dyn Fn(&str) -> Option<String>,
        _folder: Option<&str>,
    ) -> Option<OwnSessions> {
        Some(OwnSessions {
            home: self.home(env)?,
            kept: Kept::Files {
                folders: vec![place::ANYWHERE.to_owned()],
                begins: place::BEGINS,
                ends: &[".jsonl"],
            },
            copied: false,
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

    fn ancestor(&self, first: &[u8]) -> Option<Ancestor> {
        head::ancestor(first)
    }

    /// Another model's family makes it compact the session first (0.166.0).
    fn keeps_model(&self) -> bool {
        false
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
