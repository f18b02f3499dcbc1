//! `rejoin open`

use std::io::IsTerminal;

use clap::Args;
use rejoin_core::AgentName;
use rejoin_hub::{Error as HubError, TurnFlags, TurnRequest};
use rejoin_runner::Error as RunnerError;
use rejoin_runner::open::{Opened, Opening, Unopened};
use rejoin_runner::process::Ended;
use serde_json::json;

use super::change::handle;
use super::send::must_be_enabled;
use crate::app::App;
use crate::failure::{Failure, Result, codes};
use crate::output::figures::count;

/// Go on with a conversation in the agent's own terminal interface
///
/// It starts on the agent's own session, in the conversation's folder. When you leave it, what was
/// said there is part of the conversation; until then nothing else is sent.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin open last               with the agent that answered last\n  rejoin open tmqx -a codex      with another that knows all that was said"
)]
pub(crate) struct OpenArgs {
    /// Conversation: handle, id, key, or `last`
    #[arg(value_name = "CONV", default_value = "last")]
    conversation: String,
    /// Agent; else the one of the newest turn
    #[arg(short, long, value_name = "AGENT")]
    agent: Option<String>,
}

pub(crate) async fn run(app: &App, args: &OpenArgs) -> Result<u8> {
    app.must_be_trusted()?;
    let conversation = app
        .hub()
        .find(&args.conversation, &app.folders())
        .await?
        .conversation;
    let agent = match &args.agent {
        Some(name) => AgentName::new(name.as_str()).map_err(|e| Failure::usage(e.to_string()))?,
        None => conversation.agent.clone(),
    };
    must_be_enabled(app, &agent)?;
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
    let crashed = opened.taken_in == 0 && !matches!(opened.ended, Ended::Code(0 | 130));
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

/// One line, in the order of a verdict's.
fn back(opened: &Opened, agent: &AgentName, name: &str) -> String {
    let said = match opened.taken_in {
        0 => "nothing was said".to_owned(),
        n => format!("{} taken in", count(n, "message")),
    };
    let ended = match opened.ended {
        Ended::Code(0 | 130) => None,
        Ended::Code(code) => Some(format!("it ended with code {code}")),
        Ended::Killed(signal) => Some(format!("it was killed by signal {signal}")),
    };
    let then = format!("the next turn tells a new session · rejoin explain {name} --next");
    let parts = [format!("rejoin: back · {name} · {agent} · {said}")]
        .into_iter()
        .chain(ended)
        .chain((!opened.usable).then_some(then));
    parts.collect::<Vec<_>>().join(" · ")
}

fn not_opened(error: RunnerError, agent: &AgentName, name: &str) -> Failure {
    let send = format!("rejoin send -c {name} -a {agent} \"…\"");
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the others say the same everywhere"
    )]
    match error {
        RunnerError::Unopened { why, .. } => {
            let text = format!("{agent}'s session of {name} cannot be opened: {why}");
            match why {
                Unopened::NoTerminal => Failure::usage(format!(
                    "{agent}'s terminal interface needs a terminal on stdin and stdout"
                ))
                .try_this(send),
                Unopened::NoInterface(why) => Failure::new(codes::NOT_OPENED, why).try_this(send),
                Unopened::Empty
                | Unopened::Unusable { .. }
                | Unopened::Behind { .. }
                | Unopened::Moved { .. } => Failure::new(codes::NOT_OPENED, text).try_this(send),
            }
        }
        RunnerError::InUse { pid } => Failure::new(
            codes::IN_USE,
            format!("process {pid} has {agent}'s session of {name} open already"),
        )
        .try_this("end that process first"),
        RunnerError::Envelope(why) => Failure::new(codes::ENVELOPE, why).try_this(send),
        RunnerError::Hub(HubError::Busy) => Failure::new(
            codes::BUSY,
            format!("{name} is busy with a turn; nothing was opened"),
        )
        .try_this(format!("rejoin wait {name}")),
        RunnerError::Hub(error) if error.is_conflict() => Failure::new(
            codes::BUSY,
            format!("{name} is open already; nothing was opened"),
        )
        .try_this(format!("rejoin show {name}")),
        other => other.into(),
    }
}
