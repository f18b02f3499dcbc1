//! `rejoin open`

use std::io::IsTerminal;

use clap::Args;
use rejoin_core::AgentName;
use rejoin_hub::{Error as HubError, TurnFlags, TurnRequest};
use rejoin_runner::Error as RunnerError;
use rejoin_runner::open::{Opened, Opening, Unopened};
use rejoin_runner::process::ForegroundEnd;
use serde_json::json;

use super::change::handle;
use crate::app::App;
use crate::cli::command::{Help, Run, Task, TrustCheck};
use crate::output::format::count;
use rejoin_errors::{CommandError, Result, codes};

/// Continue a conversation in the agent's own terminal interface
///
/// Opens the agent's own session in the conversation's folder. When you leave, rejoin adds the new
/// messages to the conversation. Other messages wait until then.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin open last               with the agent that answered last\n  rejoin open tmqx -a codex      with another agent that has seen every message"
)]
pub(crate) struct OpenArgs {
    /// Conversation: handle, id, key, or `last`
    #[arg(value_name = "CONV", default_value = "last")]
    conversation: String,
    /// Agent; default: the agent of the newest turn
    #[arg(short, long, value_name = "AGENT")]
    agent: Option<String>,
}

impl Run for OpenArgs {
    const NAME: &'static str = "open";
    const HELP: Help = Help::Talk("its terminal");

    fn task(self) -> Task {
        Task::store(self, run).trust(TrustCheck::Required)
    }
}

async fn run(app: &App, args: &OpenArgs) -> Result<u8> {
    let conversation = app
        .hub()
        .find(&args.conversation, &app.folders())
        .await?
        .conversation;
    let agent = match &args.agent {
        Some(name) => {
            AgentName::new(name.as_str()).map_err(|e| CommandError::usage(e.to_string()))?
        }
        None => conversation.agent.clone(),
    };
    app.defaults()?.check_enabled(&agent)?;
    let flags = TurnFlags {
        default_model: app.config.models.get(agent.as_str()).cloned(),
        ..TurnFlags::default()
    };
    let base = TurnRequest {
        no_reseed: true,
        ..app.base_request()
    };
    let opening = Opening {
        conversation: &conversation,
        agent: &agent,
        request: &flags.over(&conversation, &agent, &base),
        at_a_terminal: std::io::stdin().is_terminal() && std::io::stdout().is_terminal(),
    };
    let name = handle(app, &conversation).await?;
    let opened = app.runner.open(&opening).await;
    let opened = opened.map_err(|error| not_opened(error, &agent, &name))?;
    let crashed = opened.taken_in == 0 && !matches!(opened.ended, ForegroundEnd::Code(0 | 130));
    if app.out.json {
        app.out.json(&json!({
            "conversation_id": conversation.id, "agent": agent, "session_id": opened.session,
            "taken_in": opened.taken_in, "usable": opened.usable,
        }));
    } else {
        app.out.note(&back(&opened, &agent, &name));
    }
    Ok(u8::from(crashed))
}

/// The result as a line, in the order of a verdict line.
fn back(opened: &Opened, agent: &AgentName, name: &str) -> String {
    let said = match opened.taken_in {
        0 => "nothing was said".to_owned(),
        n => format!("{} taken in", count(n, "message")),
    };
    let ended = match opened.ended {
        ForegroundEnd::Code(0 | 130) => None,
        ForegroundEnd::Code(code) => Some(format!("it ended with code {code}")),
        ForegroundEnd::Killed(signal) => Some(format!("it was killed by signal {signal}")),
    };
    let then = format!("the next turn tells a new session · rejoin explain {name} --next");
    let parts = [format!("rejoin: back · {name} · {agent} · {said}")]
        .into_iter()
        .chain(ended)
        .chain((!opened.usable).then_some(then));
    parts.collect::<Vec<_>>().join(" · ")
}

fn not_opened(error: RunnerError, agent: &AgentName, name: &str) -> CommandError {
    let send = format!("rejoin send -c {name} -a {agent} \"…\"");
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the others say the same everywhere"
    )]
    match error {
        RunnerError::Unopened { why, .. } => {
            let text = format!("{agent}'s session of {name} cannot be opened: {why}");
            match why {
                Unopened::NoTerminal => CommandError::usage(format!(
                    "{agent}'s terminal interface needs a terminal on stdin and stdout"
                ))
                .try_this(send),
                Unopened::NoInterface(why) => {
                    CommandError::new(codes::NOT_OPENED, why).try_this(send)
                }
                Unopened::Empty
                | Unopened::Unusable { .. }
                | Unopened::Behind { .. }
                | Unopened::Moved { .. } => {
                    CommandError::new(codes::NOT_OPENED, text).try_this(send)
                }
            }
        }
        RunnerError::InUse { pid } => CommandError::new(
            codes::IN_USE,
            format!("process {pid} has {agent}'s session of {name} open already"),
        )
        .try_this("end that process first"),
        RunnerError::Permissions(why) => CommandError::new(codes::ENVELOPE, why).try_this(send),
        RunnerError::Hub(HubError::Busy) => CommandError::new(
            codes::BUSY,
            format!("{name} is busy with a turn; nothing was opened"),
        )
        .try_this(format!("rejoin wait {name}")),
        RunnerError::Hub(error) if error.is_conflict() => CommandError::new(
            codes::BUSY,
            format!("{name} is open already; nothing was opened"),
        )
        .try_this(format!("rejoin show {name}")),
        other => other.into(),
    }
}
