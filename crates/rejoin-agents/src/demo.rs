//! The built-in agent: a hidden command of rejoin, a process of its own with real session files. It
//! needs no key and no network, answers by recalling what it has been told, and is used only by
//! name. The process itself is `rejoin/src/demo_agent.rs`; the two speak JSON lines.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rejoin_core::{
    Asked, Choice, Class, Context, Counts, Envelope, EventBody, Failure, Given, Micros, Outcome,
    Runtime, SessionId, Usage, Version, strip,
};
use serde::Deserialize;

use crate::adapter::{Adapter, ProofEnv, ProofSetup};
use crate::environment::EnvRules;
use crate::order::{CommandSpec, RunOrder};
use crate::session::{Forking, Place, ReadEntry, Reading, SessionAt, SessionReader};
use crate::stream::{Denied, End, EndCause, Ran, Reply, StreamParser};

const PRODUCT: &str = "rejoin demo agent";

/// A message that begins so makes it ask: `ask: Which colour? Red | Blue`, `approve: rm -r x`.
const ASKS: [&str; 2] = ["ask:", "approve:"];

pub(crate) struct Demo;

impl Adapter for Demo {
    fn name(&self) -> &'static str {
        "demo"
    }

    fn has_terminal(&self) -> bool {
        false
    }

    fn program(&self) -> Option<&'static str> {
        None
    }

    fn install(&self) -> &'static str {
        "it is built in"
    }

    fn prelude(&self) -> &'static [&'static str] {
        &["demo-agent"]
    }

    fn runtime(&self, version_output: &str) -> Option<Runtime> {
        let version = version_output.trim().strip_prefix(PRODUCT)?.trim();
        Some(Runtime {
            product: PRODUCT.into(),
            version: Version(version.into()),
        })
    }

    fn probe(&self) -> Option<Vec<String>> {
        None
    }

    fn judge_probe(&self, _stdout: &str, _stderr: &str) -> Option<String> {
        None
    }

    fn proof(&self, _at: &ProofEnv<'_>) -> Option<ProofSetup> {
        None
    }

    fn express(&self, envelope: &Envelope, _as_root: bool) -> Result<(), String> {
        if envelope.tools.is_some() {
            return Err("the demo agent has no tools to choose from; leave out --tools".into());
        }
        Ok(())
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
        // Only then it reads more than its prompt.
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

    fn forking(&self) -> Forking {
        Forking::ByCopy
    }

    fn fork(&self, mut resume: CommandSpec, order: &RunOrder<'_>) -> Option<CommandSpec> {
        let at = resume.args.iter().position(|arg| arg == "--resume")?;
        *resume.args.get_mut(at + 1)? = order.new_session.to_string();
        Some(resume)
    }

    fn parser(&self) -> Box<dyn StreamParser> {
        Box::new(DemoStream::default())
    }

    fn environment(&self) -> EnvRules {
        EnvRules {
            vendor: Some("none"),
            ..EnvRules::default()
        }
    }

    fn home(&self, env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
        Some(Path::new(&env("HOME")?).join(".rejoin-demo"))
    }

    fn place(&self, at: &SessionAt<'_>) -> Place {
        Place::At(format!("sessions/{}.jsonl", at.session))
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

#[derive(Default)]
struct DemoStream {
    session: Option<SessionId>,
    model: Option<String>,
    version: Option<String>,
    text: String,
    done: Option<(Usage, Context)>,
    error: Option<(String, bool)>,
    stderr: String,
    unknown_lines: u64,
    asked: Vec<Asked>,
    /// All it asked, and what of it was denied.
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

    fn finish(self: Box<Self>, end: &End) -> Ran {
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
        Ran {
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
            tools_run: 0,
            trail: vec![],
            withheld: vec![],
            compacted: false,
            unknown_lines: self.unknown_lines,
        }
    }
}

impl DemoStream {
    fn failure(&self, cause: EndCause, end: &End) -> Failure {
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
        let message = match (end.signal, end.code) {
            (Some(signal), _) => format!("the demo agent was killed by signal {signal}"),
            (None, Some(code)) => format!("the demo agent ended with code {code}. {}", self.stderr),
            (None, None) => "the demo agent did not finish".into(),
        };
        Failure { class, message }
    }
}

/// A session line: what was said, by whom, and after which line.
#[derive(Deserialize)]
struct Said {
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
        let Ok(said) = serde_json::from_slice::<Said>(line) else {
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
