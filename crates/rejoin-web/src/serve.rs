//! Lifecycle of a daemon: binds, serves, and shuts down without losing anything.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rejoin_errors::{CommandError, codes};
use rejoin_hub::SessionAccess;
use rejoin_runner::Runner;
use rejoin_runner::send::Defaults;
use tokio::sync::watch;
use tokio::task::LocalSet;

use crate::api;
use crate::body::Bodies;
use crate::gate::Gate;
use crate::listen::{Door, answers};
use crate::live::Live;
use crate::metrics::{FOLD, Metrics};
use crate::problem::{Refusal, Result};
use crate::queue::{Queue, Workshop};
use crate::readiness::Readiness;
use crate::schedules;
use crate::state::{App, Options, Secrets, Shared};
use crate::token_watch::TokenWatch;
use crate::workflows;

/// Time that running turns have to end when the daemon is the first process of a container, because
/// they end with it.
const LAST_MOMENTS: Duration = Duration::from_secs(8);

/// Daemon that is about to serve.
pub struct Daemon {
    pub runner: Runner,
    pub defaults: Defaults,
    pub options: Options,
    pub listen: SocketAddr,
    /// Path of the socket; None means no socket.
    pub socket: Option<PathBuf>,
}

/// Daemon that listens.
pub struct Bound {
    app: App,
    network: Door,
    socket: Option<Door>,
    ending: watch::Sender<bool>,
    address: SocketAddr,
    workshop: Box<dyn FnOnce() -> Workshop + Send>,
}

/// Treatment of turns that run when the daemon ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shutdown {
    /// Leave them to their shims; the next daemon continues them.
    Leave,
    /// Stop, save and end them, because no daemon follows.
    Stop,
}

impl Daemon {
    /// Starts listening. Returns an error if it must not or cannot.
    pub async fn bind(self) -> Result<Bound, CommandError> {
        self.bind_checked().await.map_err(|refusal| refusal.0)
    }

    async fn bind_checked(self) -> Result<Bound> {
        if !self.listen.ip().is_loopback() {
            self.must_be_guarded().await?;
        }
        if let Some(path) = &self.socket
            && answers(path).await
        {
            return Err(Refusal(
                CommandError::conflict("a daemon is running on this data folder already")
                    .try_this("use that one, or another REJOIN_HOME"),
            ));
        }
        if !self.options.notify.is_nobody() {
            self.runner.hub.notify_from_now().await?;
        }
        let at = self.listen;
        let unbound =
            |e: io::Error| CommandError::unavailable(format!("{at} cannot be listened on: {e}"));
        let network = Door::network(at)
            .await
            .map_err(|e| unbound(e).try_this("rejoin serve --listen 127.0.0.1:0"))?;
        let address = match &network {
            Door::Network(listener) => listener.local_addr().unwrap_or(at),
            Door::Socket(..) => at,
        };
        let socket = match self.socket.as_deref().map(Door::socket) {
            // With a read-only file system nothing can be sent, but everything can be read.
            Some(Err(e)) if e.kind() == io::ErrorKind::ReadOnlyFilesystem => {
                tracing::warn!(error = %e, "The daemon serves without a socket");
                None
            }
            Some(Err(e)) => {
                let text = format!("the socket of the daemon cannot be made: {e}");
                return Err(Refusal(CommandError::unavailable(text)));
            }
            Some(Ok(door)) => Some(door),
            None => None,
        };
        let runner = Arc::new(self.runner);
        let (queue, workshop) = Queue::new(
            Arc::clone(&runner),
            self.options.keep,
            self.options.max_running,
        );
        let (ending, end) = watch::channel(false);
        let metrics = Metrics::listening()
            .map_err(|e| CommandError::unavailable(format!("nothing can be counted: {e}")))?;
        let app = Arc::new(Shared {
            defaults: self.defaults,
            options: self.options,
            queue,
            workflows: tokio::sync::Notify::new(),
            live: Arc::new(Live::new(runner.hub.store.clone()).await?),
            gate: Gate::new(),
            tokens: TokenWatch::new(runner.hub.clone()),
            secrets: Secrets::new(runner.hub.clock.secret()?),
            bodies: Bodies::default(),
            metrics,
            readiness: Readiness::default(),
            ending: end,
            everywhere: !address.ip().is_loopback(),
            listens: address,
            runner,
        });
        Ok(Bound {
            app,
            network,
            socket,
            ending,
            address,
            workshop: Box::new(workshop),
        })
    }

    /// Checks that a daemon which is reachable from other machines has tokens and a list of allowed
    /// folders.
    async fn must_be_guarded(&self) -> Result<()> {
        let at = self.listen;
        if !self.runner.hub.has_tokens().await? {
            return Err(Refusal(
                CommandError::new(
                    codes::FORBIDDEN,
                    format!("{at} can be reached from elsewhere, and there is no token yet"),
                )
                .try_this("rejoin token create NAME"),
            ));
        }
        if self.options.roots.is_empty() {
            return Err(Refusal(
                CommandError::new(
                    codes::FORBIDDEN,
                    format!("{at} can be reached from elsewhere, and no working folders are set"),
                )
                .try_this("[serve] roots = [\"/where/agents/may/work\"] in the configuration"),
            ));
        }
        Ok(())
    }
}

impl Bound {
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns a link that signs in one browser, with the rights of the user of the daemon.
    pub async fn sign_in_link(&self) -> Result<String, CommandError> {
        let access = SessionAccess::local();
        let link = self.app.runner.hub.create_sign_in_link(&access).await?;
        Ok(format!("{}{}", self.app.address(), link.path))
    }

    /// Serves until `end` resolves.
    pub async fn serve(self, end: impl Future<Output = Shutdown>) {
        let Self {
            app,
            network,
            socket,
            ending,
            address: _,
            workshop,
        } = self;
        // Ends processes of the previous daemon, which may have been allowed more.
        app.runner.make_room().await;
        let router = api::router(&app);
        let mut doors = tokio::task::JoinSet::new();
        for door in [Some(network), socket].into_iter().flatten() {
            doors.spawn(door.serve(router.clone(), app.ending.clone()));
        }
        let telling = Arc::clone(&app);
        let telling = tokio::spawn(async move { telling.live.tell(&telling.runner).await });
        let notifying = {
            let runner = &app.runner;
            let (env, home) = (runner.config.env.clone(), runner.config.home.clone());
            let notify = app.options.notify.clone();
            tokio::spawn(notify.go_on(runner.hub.clone(), env, home))
        };
        let scheduling = tokio::spawn(schedules::go_on(Arc::clone(&app)));
        let counting = Arc::clone(&app);
        let counting = tokio::spawn(async move {
            loop {
                tokio::time::sleep(FOLD).await;
                counting.metrics.fold();
            }
        });
        // Turns run here, on this thread.
        let here = LocalSet::new();
        let working = here.spawn_local(workshop().go_on());
        let continuing = here.spawn_local(workflows::go_on(Arc::clone(&app)));
        let how = here.run_until(end).await;
        ending.send_replace(true);
        scheduling.abort();
        if how == Shutdown::Stop {
            app.queue.cancel_all();
            let rest = tokio::time::timeout(LAST_MOMENTS, app.queue.rest());
            drop(here.run_until(rest).await);
        }
        let closed = async { while doors.join_next().await.is_some() {} };
        here.run_until(closed).await;
        continuing.abort();
        working.abort();
        telling.abort();
        counting.abort();
        notifying.abort();
        // Ending idle processes costs nothing but time; running turns continue.
        app.runner.end_all_idle().await;
    }
}
