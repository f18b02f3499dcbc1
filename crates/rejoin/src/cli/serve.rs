//! `rejoin serve`

use std::net::SocketAddr;
use std::path::Path;

use clap::Args;
use rejoin_core::AgentName;
use rejoin_hub::TurnRequest;
use rejoin_runner::{Asks, Unrun};
use rejoin_web::{Daemon, Defaults, Options, Shutdown};

use crate::app::App;
use crate::cli::outcome::interrupted;
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::store_at::StoreAt;

/// The socket in the data folder, for commands of the same user.
pub(crate) const SOCKET: &str = "hub.sock";

/// Run the daemon: HTTP API, live events, a queue
///
/// Turns go on when the daemon ends, is killed or replaced; the next one goes on with them.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin token create laptop --scope admin\n  rejoin serve\n  rejoin serve --listen 127.0.0.1:0    any free port\n\nThe API describes itself under /openapi.json."
)]
pub(crate) struct ServeArgs {
    /// Address to listen on; default: 127.0.0.1:7377
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
}

pub(crate) async fn run(args: &ServeArgs, out: Output, config: Option<&Path>) -> Result<u8> {
    let app = App::open_to_serve(out, config).await?;
    let bound = daemon(app, args)?.bind().await?;
    let at = bound.address();
    if out.json {
        out.json(&serde_json::json!({"listening": format!("http://{at}")}));
    } else {
        out.text(&format!("listening on http://{at}"));
    }
    let told = interrupted();
    bound
        .serve(async {
            told.await;
            // The first process of a container takes everything along when it goes.
            if std::process::id() == 1 {
                Shutdown::Stop
            } else {
                Shutdown::Leave
            }
        })
        .await;
    Ok(0)
}

fn daemon(app: App, args: &ServeArgs) -> Result<Daemon> {
    let base = app.base_request();
    let home = &app.runner.config.home;
    let store = StoreAt::named(home, app.config.database_url.as_deref())?;
    let App {
        config,
        mut runner,
        here,
        ..
    } = app;
    runner.config.unrun = Unrun::Ends;
    runner.config.asks = Asks::Somebody;
    runner.config.warm = config.serve.warm;
    let notify = config.serve.notify()?;
    let listen = args.listen.as_deref().unwrap_or(&config.serve.listen);
    let agent = AgentName::new(config.default_agent.as_str());
    Ok(Daemon {
        defaults: Defaults {
            agent: agent.map_err(|e| Failure::usage(e.to_string()))?,
            scope: config.scope,
            permission: config.permission,
            models: config.models,
            disabled: config.disabled,
            // What it was started in is no part of any turn.
            request: TurnRequest {
                traceparent: None,
                ..base
            },
            here,
        },
        options: Options {
            roots: config.serve.roots,
            max_permission: config.serve.max_permission,
            max_running: config.serve.max_running,
            max_queued: config.serve.max_queued,
            allow_hosts: config.serve.allow_hosts,
            notify,
            keep: config.snapshots.keep,
            public_url: config.serve.public_url,
            store: store.mark(),
        },
        listen: address(listen)?,
        socket: Some(runner.config.home.join(SOCKET)),
        runner,
    })
}

fn address(text: &str) -> Result<SocketAddr> {
    let named = text.replace("localhost:", "127.0.0.1:");
    named.parse().map_err(|_| {
        Failure::usage(format!("`{text}` is not an address such as 127.0.0.1:7377"))
            .try_this("rejoin serve --listen 127.0.0.1:7377")
    })
}
