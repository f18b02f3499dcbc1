//! `rejoin model-server`

use std::path::PathBuf;

use clap::Args;
use rejoin_model::{ModelServer, Options};

use crate::app::Invocation;
use crate::cli::command::{Help, Run, Task};
use rejoin_errors::{CommandError, Result};

/// Run a scripted model on loopback, for running a coding CLI offline
///
/// Prints `listening on http://…`. A prompt with `#s:NAME` gets the built-in script of that name
/// (hello, bash, slow, e400, e529, cut, recall, …). `#j:[{"text":"hi"}]#` is a script itself.
#[derive(Debug, Args)]
pub(crate) struct ModelServerArgs {
    /// Port; 0: any free port
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Append every request to this file, as JSON lines
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Refuse a history that the real API would refuse
    #[arg(long)]
    strict: bool,
}

impl Run for ModelServerArgs {
    const NAME: &'static str = "model-server";
    const HELP: Help = Help::SetUp("an offline model");

    fn task(self) -> Task {
        Task::machine(self, run)
    }
}

async fn run(on: &Invocation, args: &ModelServerArgs) -> Result<u8> {
    let out = on.out;
    let options = Options {
        port: args.port,
        log: args.log.clone(),
        strict: args.strict,
        ..Options::default()
    };
    let failed = |e: rejoin_model::Error| {
        CommandError::unavailable(e.to_string()).try_this("another --port, or --port 0")
    };
    let server = ModelServer::start(options).await.map_err(failed)?;
    if out.json {
        out.json(&serde_json::json!({"url": server.url()}));
    } else {
        out.text(&format!("listening on {}", server.url()));
    }
    let stop = async {
        let mut term =
            tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).ok();
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            () = async { match &mut term { Some(term) => { term.recv().await; } None => std::future::pending().await } } => {}
        }
    };
    server.serve_until(stop).await.map_err(failed)?;
    Ok(0)
}
