//! The agent of workflow steps that are not for a model: it runs a command, or prints the question
//! for a person. Like the demo agent it is a hidden command of rejoin, so such a step is a turn: with
//! a shim, a spool, limits and recovery. The process is `rejoin/src/workflow_process.rs`.

use std::path::PathBuf;

use rejoin_core::{Permissions, Runtime, Version};

use crate::adapter::{Adapter, CostLimit, Env, IdForm, NamedTools, Profile, ReadHome};
use crate::capability::Capabilities;
use crate::demo::DemoStream;
use crate::environment::EnvRules;
use crate::order::{CommandSpec, RunOrder};
use crate::session::{ChosenBy, Moving, Reading, Records, SessionAt, SessionPath, SessionReader};
use crate::stream::StreamParser;

/// Name of the agent of command and approval steps.
pub const WORKFLOW_AGENT: &str = "workflow";

/// Hidden command of rejoin that is its process.
pub const WORKFLOW_PROCESS: &str = "workflow-process";

const PRODUCT: &str = "rejoin workflow agent";

pub(crate) struct Workflow;

static PROFILE: Profile = Profile {
    name: WORKFLOW_AGENT,
    program: None,
    prelude: &[WORKFLOW_PROCESS],
    install: "it is built in",
    login: None,
    allows: &[],
    named_tools: NamedTools::Permit(&[]),
    ids: IdForm::Uuid,
    chosen_by: ChosenBy::Us,
    records: Records::Lines,
    keeps_model: true,
    deletes_after_days: None,
    totals: None,
    cannot_resume: Some("a command has no session"),
};

impl Adapter for Workflow {
    fn profile(&self) -> &Profile {
        &PROFILE
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities::NONE
    }

    fn runtime(&self, version_output: &str) -> Option<Runtime> {
        let version = version_output.trim().strip_prefix(PRODUCT)?.trim();
        Some(Runtime {
            product: PRODUCT.into(),
            version: Version(version.into()),
        })
    }

    fn check_permissions(&self, _permissions: &Permissions, _as_root: bool) -> Result<(), String> {
        Ok(())
    }

    fn cost_limit(&self, _permissions: &Permissions) -> CostLimit {
        CostLimit::Free
    }

    fn environment(&self) -> EnvRules {
        EnvRules {
            vendor: Some("none"),
            ..EnvRules::default()
        }
    }

    /// The message is the step as JSON. The transcript is not for it.
    fn command(&self, order: &RunOrder<'_>) -> CommandSpec {
        CommandSpec {
            args: vec![order.new_session.to_string()],
            stdin: format!("{}\n", order.composed.message),
            ..CommandSpec::default()
        }
    }

    fn parser(&self) -> Box<dyn StreamParser> {
        Box::new(DemoStream::of("the step's process"))
    }

    fn home(&self, env: Env<'_>) -> Option<PathBuf> {
        env("HOME").map(PathBuf::from)
    }

    fn place(&self, _at: &SessionAt<'_>) -> SessionPath {
        SessionPath::Find {
            folders: vec![],
            begins: String::new(),
            ends: String::new(),
            copy: None,
        }
    }

    fn moving(&self, at: &SessionAt<'_>, _read: ReadHome<'_>) -> Moving {
        self.place(at).moving()
    }

    fn reader(&self, _cursor: Option<&str>) -> Box<dyn SessionReader> {
        Box::new(NoSession)
    }
}

/// Reader of a session that does not exist.
struct NoSession;

impl SessionReader for NoSession {
    fn line(&mut self, _line: &[u8]) {}

    fn finish(self: Box<Self>) -> Reading {
        Reading::default()
    }
}
