//! `rejoin serve`

use std::net::SocketAddr;

use clap::Args;
use rejoin_runner::{Asks, Unrun};
use rejoin_web::{Daemon, Options, Shutdown};

use crate::app::{App, Invocation};
use crate::cli::command::{Help, Run, Task};
use crate::cli::report::interrupted;
use crate::store_url::StoreUrl;
use rejoin_errors::{CommandError, Result};

/// The socket in the data folder, for commands of the same user.
pub(crate) const SOCKET: &str = "hub.sock";

/// Run the daemon: HTTP API, live events, queue
///
/// Turns continue when the daemon ends, is killed or is replaced; the next daemon picks them up.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin token create laptop --scope admin\n  rejoin serve\n  rejoin serve --listen 127.0.0.1:0    any free port\n  rejoin serve --open                  opens the dashboard in a browser\n\nAPI description: /openapi.json"
)]
pub(crate) struct ServeArgs {
    /// Address to listen on; default: 127.0.0.1:7377
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Open the dashboard in a browser, signed in
    #[arg(long)]
    open: bool,
}

impl Run for ServeArgs {
    const NAME: &'static str = "serve";
    const HELP: Help = Help::SetUp("the daemon and its API");
    const THREADS: usize = 3;

    fn task(self) -> Task {
        Task::machine(self, run)
    }
}

async fn run(on: &Invocation, args: &ServeArgs) -> Result<u8> {
    let app = App::open_to_serve(on).await?;
    let out = on.out;
    let bound = daemon(app, args)?.bind().await?;
    let at = bound.address();
    if out.json {
        out.json(&serde_json::json!({"listening": format!("http://{at}")}));
    } else {
        out.text(&format!("listening on http://{at}"));
    }
    if args.open || out.screen() {
        let link = bound.sign_in_link().await?;
        if args.open {
            super::pair::open(&link)?;
        } else {
            out.note(&format!("dashboard: {link}"));
            out.note(super::pair::ONCE);
        }
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
    let mut defaults = app.defaults()?;
    // The trace of the daemon's own start is not that of its turns.
    defaults.request.traceparent = None;
    let home = &app.runner.config.home;
    let store = StoreUrl::named(home, app.config.database_url.as_deref())?;
    let App {
        config, mut runner, ..
    } = app;
    runner.config.unrun = Unrun::Ends;
    runner.config.asks = Asks::Somebody;
    runner.config.warm = config.serve.warm;
    let (notify, keep) = (config.serve.notify()?, config.keep());
    let listen = args.listen.as_deref().unwrap_or(&config.serve.listen);
    Ok(Daemon {
        defaults,
        options: Options {
            roots: config.serve.roots,
            max_permission: config.serve.max_permission,
            max_running: config.serve.max_running,
            max_queued: config.serve.max_queued,
            allow_hosts: config.serve.allow_hosts,
            notify,
            schedules: config.schedules,
            workflows: config.serve.workflows,
            keep,
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
        CommandError::usage(format!("`{text}` is not an address such as 127.0.0.1:7377"))
            .try_this("rejoin serve --listen 127.0.0.1:7377")
    })
}
