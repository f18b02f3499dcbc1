//! `rejoin demo`

use std::ffi::OsString;

use clap::Args;
use rejoin_core::AgentName;
use rejoin_hub::{ChangeMode, IfBusy, Incoming, Target, TurnFlags, TurnRequest};
use rejoin_runner::WallMode;
use tokio::sync::watch;

use crate::app::{App, Invocation};
use crate::cli::command::{Help, Run, Task};
use crate::config::{Config, Loaded};
use rejoin_errors::{CommandError, Result};

/// Run a short demo conversation: no key, no network, leaves no files
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {}

impl Run for DemoArgs {
    const NAME: &'static str = "demo";
    const HELP: Help = Help::SetUp("try it without a key");

    fn task(self) -> Task {
        Task::machine(self, run)
    }
}

async fn run(on: &Invocation, _args: &DemoArgs) -> Result<u8> {
    let out = on.out;
    let scratch = Scratch::new()?;
    let (home, folder) = (scratch.0.join("home"), scratch.0.join("project"));
    fs_err::create_dir_all(&folder).map_err(|e| CommandError::unavailable(e.to_string()))?;
    let env = [
        ("HOME", home.clone().into_os_string()),
        ("PATH", std::env::var_os("PATH").unwrap_or_default()),
    ]
    .map(|(n, v)| (OsString::from(n), v));
    // Nobody's settings: they could name a store that is kept.
    let mut config = Config::resolve(&Loaded::default())?;
    // A wall would make the configuration folder, and the demo agent runs nothing.
    config.wall = WallMode::Off;
    let app = App::open_at(out, config, home.join("rejoin"), folder, env.into_iter()).await?;

    step(
        &app,
        "A conversation starts. Every turn is a process of its own.",
        "rejoin send -a demo \"My name is Ada and I like tea.\"",
        "My name is Ada and I like tea.",
    )
    .await?;
    step(
        &app,
        "The next process resumes the agent's own session: only the new message is sent.",
        "rejoin reply \"What is my name?\"",
        "What is my name?",
    )
    .await?;
    fs_err::remove_dir_all(home.join(".rejoin-demo"))
        .map_err(|e| CommandError::unavailable(e.to_string()))?;
    step(
        &app,
        "Now the agent's session file is deleted. It comes back from a snapshot, byte for byte.",
        "rm -r ~/.rejoin-demo; rejoin reply \"What do I like?\"",
        "What do I like?",
    )
    .await?;
    let first = app.hub().find_message("demo:1", &app.folders()).await?;
    if let Some(message) = first.message {
        let text = "My name is Eve and I like coffee.";
        let edited = app.hub().edit(message.message.id, text, ChangeMode::Now);
        edited.await?;
    }
    step(
        &app,
        "Now a message is edited. The session has seen the old text, so a new session gets the new transcript.",
        "rejoin edit last:1 \"My name is Eve and I like coffee.\"; rejoin reply \"And now?\"",
        "And now?",
    )
    .await?;
    if !out.json {
        out.text("\nThe demo left no files. With a coding agent installed: rejoin send \"hello\"\nand then: rejoin reply \"what did I say?\", rejoin explain, rejoin list");
    }
    app.close().await;
    Ok(0)
}

async fn step(app: &App, what: &str, command: &str, text: &str) -> Result<()> {
    let here = app.here.to_str().unwrap_or("/").to_owned();
    let agent = AgentName::new("demo").map_err(|e| CommandError::usage(e.to_string()))?;
    let incoming = Incoming {
        turn: None,
        target: Target::Key("demo".into()),
        text: text.into(),
        agent: Some(agent.clone()),
        default_agent: agent,
        here,
        title: None,
        scope: app.config.scope,
        flags: TurnFlags::default(),
        request: TurnRequest::default(),
        client_key: None,
        if_busy: IfBusy::Wait,
        queue_limit: None,
        confirmed: true,
        answers: None,
        occurrence: None,
    };
    let accepted = app.hub().accept(&incoming, None).await?;
    let (_never, cancelled) = watch::channel(false);
    app.runner
        .run_until(
            accepted.conversation,
            accepted.turn,
            IfBusy::Wait,
            &cancelled,
        )
        .await?;
    let view = app.hub().turn_view(accepted.turn).await?;
    if app.out.json {
        app.out.json(&view);
        return Ok(());
    }
    app.out.prose(&format!("\n# {what}\n$ {command}"));
    app.out.prose(view.text.as_deref().unwrap_or(""));
    app.out.prose(&view.summary);
    Ok(())
}

/// A folder that is gone when the demo is.
struct Scratch(std::path::PathBuf);

impl Scratch {
    fn new() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("rejoin-demo-{}", std::process::id()));
        fs_err::create_dir_all(&path).map_err(|e| CommandError::unavailable(e.to_string()))?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(fs_err::remove_dir_all(&self.0));
    }
}
