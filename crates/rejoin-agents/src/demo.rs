//! The built-in agent: a hidden command of rejoin that runs as its own process with real session
//! files. It needs no key and no network, answers by recalling earlier messages, and is used only
//! when it is named. The process is `rejoin/src/demo_agent.rs`; the two exchange JSON lines.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rejoin_core::{
    Asked, Choice, Class, Context, Counts, EventBody, Failure, Given, Micros, Outcome, Permissions,
    Runtime, SessionId, Usage, Version, strip,
};
use serde::Deserialize;
use serde_json::Value;

use crate::adapter::{Adapter, CostLimit, Env, IdForm, NamedTools, Profile, ReadHome};
use crate::capability::{CallLimits, Capabilities, Fork};
use crate::environment::EnvRules;
use crate::order::{CommandSpec, RunOrder};
use crate::session::{
    ChosenBy, Forking, Moving, ReadEntry, Reading, Records, SessionAt, SessionPath, SessionReader,
};
use crate::stream::{Denied, EndCause, ProcessEnd, Reply, RunReport, StreamParser};

const PRODUCT: &str = "rejoin demo agent";

/// Prefixes of messages that make the agent ask: `ask: Which colour? Red | Blue`, `approve: rm -r
/// x`.
const ASKS: [&str; 2] = ["ask:", "approve:"];

pub(crate) struct Demo;

static PROFILE: Profile = Profile {
    name: "demo",
    program: None,
    prelude: &["demo-agent"],
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
    cannot_resume: None,
};

impl Adapter for Demo {
    fn profile(&self) -> &Profile {
        &PROFILE
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            fork: Some(self),
            limits: Some(self),
            ..Capabilities::NONE
        }
    }

    fn runtime(&self, version_output: &str) -> Option<Runtime> {
        let version = version_output.trim().strip_prefix(PRODUCT)?.trim();
        Some(Runtime {
            product: PRODUCT.into(),
            version: Version(version.into()),
        })
    }

    fn check_permissions(&self, permissions: &Permissions, _as_root: bool) -> Result<(), String> {
        if permissions.tools.is_some() {
            return Err("the demo agent has no tools to choose from; leave out --tools".into());
        }
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

    fn command(&self, order: &RunOrder<'_>) -> CommandSpec {
        let (flag, id) = match order.plan.session() {
            Some(trusted) => ("--resume", trusted.id()),
            None => ("--session-id", order.new_session),
        };
        let mut args = vec![flag.to_owned(), id.to_string()];
        args.extend(order.extra_args.iter().cloned());
        let prompt = serde_json::json!({
            "id": order.prompt_id,
            "context": order.composed.context,
            "message": order.composed.message,
        });
        // Only in these turns does it read more than its prompt.
        let asks = ASKS
            .iter()
            .any(|word| order.composed.message.starts_with(word));
        CommandSpec {
            args,
            stdin: format!("{prompt}\n"),
            hold_stdin: asks,
            close_stdin_on: vec!["done".into(), "error".into()],
            ..CommandSpec::default()
        }
    }

    fn parser(&self) -> Box<dyn StreamParser> {
        Box::new(DemoStream::of("the demo agent"))
    }

    fn home(&self, env: Env<'_>) -> Option<PathBuf> {
        Some(Path::new(&env("HOME")?).join(".rejoin-demo"))
    }

    fn place(&self, at: &SessionAt<'_>) -> SessionPath {
        SessionPath::At(format!("sessions/{}.jsonl", at.session))
    }

    fn moving(&self, at: &SessionAt<'_>, _read: ReadHome<'_>) -> Moving {
        self.place(at).moving()
    }

    fn reader(&self, cursor: Option<&str>) -> Box<dyn SessionReader> {
        let reading = Reading {
            connected: true,
            only_added: cursor.is_some(),
            cursor: cursor.map(str::to_owned),
            ..Reading::default()
        };
        Box::new(DemoReader { reading })
    }
}

impl Fork for Demo {
    /// No line of a session contains its id.
    fn forking(&self) -> Forking {
        Forking::ByCopy(|first_line, _| Some(first_line.to_vec()))
    }

    fn forks(&self, _permissions: &Permissions) -> bool {
        true
    }

    fn fork(&self, mut resume: CommandSpec, order: &RunOrder<'_>) -> Option<CommandSpec> {
        let at = resume.args.iter().position(|arg| arg == "--resume")?;
        *resume.args.get_mut(at + 1)? = order.new_session.to_string();
        Some(resume)
    }
}

/// Limits that its process counts itself.
impl CallLimits for Demo {
    fn with_limits(&self, command: CommandSpec, _: &str, _: &[&str]) -> Option<CommandSpec> {
        Some(command)
    }

    fn limited_call(&self, _stdin: &[u8]) -> Option<(String, Value)> {
        None
    }
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Line {
    Start {
        session: SessionId,
        model: String,
        version: String,
    },
    Text {
        text: String,
    },
    Ask(Asked),
    Call {
        id: String,
        tool: String,
        input: Value,
    },
    Result {
        id: String,
        is_error: bool,
        text: String,
        #[serde(default)]
        exit_code: Option<i64>,
    },
    Done {
        input: u64,
        output: u64,
        context: u64,
    },
    Error {
        error: String,
        unknown_session: bool,
    },
}

/// Parser for the output of the processes that are part of rejoin.
#[derive(Default)]
pub(crate) struct DemoStream {
    /// Name of the process in messages.
    process: &'static str,
    session: Option<SessionId>,
    model: Option<String>,
    version: Option<String>,
    text: String,
    done: Option<(Usage, Context)>,
    error: Option<(String, bool)>,
    stderr: String,
    unknown_lines: u64,
    tools_run: u64,
    asked: Vec<Asked>,
    /// All questions so far, and the calls that were denied.
    known: Vec<Asked>,
    denied: Vec<Denied>,
}

impl StreamParser for DemoStream {
    fn line(&mut self, line: &[u8]) -> Vec<EventBody> {
        match serde_json::from_slice(line) {
            Ok(Line::Start {
                session,
                model,
                version,
            }) => {
                self.session = Some(session.clone());
                self.model = Some(model.clone());
                self.version = Some(version.clone());
                vec![EventBody::TurnStarted {
                    session_id: Some(session.to_string()),
                    model: Some(model),
                    version: Some(version),
                    tools: vec![],
                    permission: None,
                }]
            }
            Ok(Line::Text { text }) => {
                self.text.push_str(&text);
                vec![EventBody::Text {
                    text,
                    parent_tool: None,
                }]
            }
            Ok(Line::Ask(asked)) => {
                self.known.push(asked.clone());
                self.asked.push(asked);
                vec![]
            }
            Ok(Line::Call { id, tool, input }) => {
                self.tools_run += 1;
                vec![EventBody::ToolCall {
                    id,
                    tool,
                    input,
                    parent_tool: None,
                    kind: None,
                    subject: None,
                }]
            }
            Ok(Line::Result {
                id,
                is_error,
                text,
                exit_code,
            }) => vec![EventBody::ToolResult {
                id,
                is_error,
                text,
                exit_code,
            }],
            Ok(Line::Done {
                input,
                output,
                context,
            }) => {
                // It has no cache: these counts are known to be zero.
                let usage = Usage::from(Counts {
                    input: Some(input),
                    cache_read: Some(0),
                    cache_write: Some(0),
                    output: Some(output),
                });
                let context = Context {
                    used: context,
                    window: 200_000,
                };
                self.done = Some((usage, context));
                vec![EventBody::Usage {
                    usage,
                    context: Some(context),
                }]
            }
            Ok(Line::Error {
                error,
                unknown_session,
            }) => {
                self.error = Some((error, unknown_session));
                vec![]
            }
            Err(_) => {
                self.unknown_lines += 1;
                vec![EventBody::Raw {
                    line: String::from_utf8_lossy(line).into_owned(),
                }]
            }
        }
    }

    fn stderr(&mut self, line: &[u8]) {
        self.stderr = String::from_utf8_lossy(line).into_owned();
    }

    fn asked(&mut self) -> Vec<Asked> {
        std::mem::take(&mut self.asked)
    }

    fn reply(&mut self, call_id: &str, given: Option<&Given>) -> Option<Reply> {
        let asked = self.known.iter().find(|asked| asked.call_id == call_id)?;
        let nobody = Given {
            decision: Choice::Deny,
            message: Some("nobody is there who could answer".into()),
            answers: BTreeMap::new(),
        };
        let given = given.unwrap_or(&nobody);
        let line = serde_json::to_string(given).ok()? + "\n";
        let message = match given.decision {
            Choice::Allow | Choice::Always => None,
            Choice::Deny => Some(given.message.clone().unwrap_or_else(|| "denied".into())),
        };
        let known = |denied: &Denied| denied.id == call_id;
        if message.is_some() && !self.denied.iter().any(known) {
            self.denied.push(Denied {
                tool: asked.tool.clone(),
                id: call_id.to_owned(),
                input: asked.input.to_string(),
            });
        }
        Some(Reply { line, message })
    }

    fn finish(self: Box<Self>, end: &ProcessEnd) -> RunReport {
        let refused = self.error.as_ref().is_some_and(|(_, unknown)| *unknown);
        let outcome = match (&self.done, end.cause) {
            (Some(_), _) if !end.torn => Outcome::Succeeded,
            (_, EndCause::Cancelled) => Outcome::Cancelled,
            (_, EndCause::Unseen) => Outcome::Lost(Failure {
                class: Class::Lost,
                message: "the agent's process is gone and left no final line".into(),
            }),
            (_, cause) => Outcome::Failed(self.failure(cause, end)),
        };
        let (usage, context) = self.done.unzip();
        RunReport {
            outcome,
            refused,
            text: self.text,
            session: self.session,
            model: self.model,
            version: self.version,
            usage: usage.unwrap_or_default(),
            total: usage.map(|_| Micros(0)),
            context,
            used: None,
            denied: self.denied,
            tools_run: self.tools_run,
            trail: vec![],
            withheld: vec![],
            compacted: false,
            unknown_lines: self.unknown_lines,
        }
    }
}

impl DemoStream {
    /// Creates a parser for the output of this process.
    pub(crate) fn of(process: &'static str) -> Self {
        Self {
            process,
            ..Self::default()
        }
    }

    fn failure(&self, cause: EndCause, end: &ProcessEnd) -> Failure {
        if let Some((message, unknown)) = &self.error {
            let class = if *unknown {
                Class::Refused
            } else {
                Class::Unknown
            };
            return Failure {
                class,
                message: message.clone(),
            };
        }
        let class = match cause {
            EndCause::WallLimit | EndCause::IdleLimit => Class::TimeLimit,
            EndCause::CostLimit => Class::CostLimit,
            EndCause::SpoolFull | EndCause::DiskFull => Class::DiskFull,
            EndCause::NotStarted => Class::NotStarted,
            EndCause::ByItself | EndCause::Cancelled | EndCause::Unseen => Class::Crashed,
        };
        let process = self.process;
        let message = match (end.signal, end.code) {
            (Some(signal), _) => format!("{process} was killed by signal {signal}"),
            (None, Some(code)) => format!("{process} ended with code {code}. {}", self.stderr),
            (None, None) => format!("{process} did not finish"),
        };
        Failure { class, message }
    }
}

/// A line of the session: a message with its role, and the id of the line before it.
#[derive(Deserialize)]
struct StoredMessage {
    id: String,
    after: Option<String>,
    role: String,
    text: String,
}

struct DemoReader {
    reading: Reading,
}

impl SessionReader for DemoReader {
    fn line(&mut self, line: &[u8]) {
        let Ok(said) = serde_json::from_slice::<StoredMessage>(line) else {
            self.reading.damaged_lines += 1;
            return;
        };
        self.reading.connected &= said.after == self.reading.cursor;
        self.reading.cursor = Some(said.id.clone());
        if said.role == "user" {
            self.reading.prompts.push(said.id.clone());
        }
        self.reading.entries.push(match said.role.as_str() {
            "user" => ReadEntry::Prompt {
                id: said.id,
                text: strip(&said.text),
                at: None,
            },
            _ => ReadEntry::Answer {
                text: said.text,
                at: None,
            },
        });
    }

    fn finish(self: Box<Self>) -> Reading {
        self.reading
    }
}
