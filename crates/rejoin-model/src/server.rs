//! Lifecycle of the server: bind, serve, stop.

use std::{
    collections::VecDeque,
    future::Future,
    iter::repeat_n,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{net::TcpListener, sync::watch, task::JoinHandle};

use crate::{
    answer::Ids,
    connection::{Loopback, Switch},
    control,
    delivery::Closing,
    error::Error,
    log::{Request, RequestLog},
    options::Options,
    route::{Shared, route},
    script::{Step, builtin_scripts},
};

/// Longest wait on a stop for callers that neither send nor disconnect.
const PATIENCE: Duration = Duration::from_secs(2);

/// A running model. Dropping it stops it; [`stop`](Self::stop) also waits for the end.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    closing: watch::Sender<bool>,
    task: JoinHandle<std::io::Result<()>>,
}

impl ModelServer {
    /// Binds to loopback and begins to serve on the current tokio runtime.
    pub async fn start(options: Options) -> Result<Self, Error> {
        let port = options.port;
        let bound = async {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
            listener.local_addr().map(|address| (listener, address))
        };
        let (listener, address) = bound.await.map_err(|source| Error::Bind { port, source })?;
        let log = RequestLog::open(options.log.as_deref()).map_err(|source| Error::Log {
            path: options.log.clone().unwrap_or_default(),
            source,
        })?;
        let (closing, closed) = watch::channel(false);
        let mut scripts = builtin_scripts();
        scripts.extend(options.scripts.clone());
        let shared = Arc::new(Shared {
            options,
            scripts,
            log,
            queue: Mutex::new(VecDeque::new()),
            ids: Ids::new(),
            closing: Closing(closed.clone()),
        });
        let router = control::router()
            .fallback(route)
            .with_state(Arc::clone(&shared));
        let service = router.into_make_service_with_connect_info::<Switch>();
        let mut until = Closing(closed);
        let serve = axum::serve(Loopback(listener), service)
            .with_graceful_shutdown(async move { until.closed().await });
        let task = tokio::spawn(async move { serve.await });
        Ok(Self {
            address,
            shared,
            closing,
            task,
        })
    }

    /// Returns the base URL for the CLI, such as `http://127.0.0.1:4123`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the requests that reached the model, oldest first. Very old ones are dropped for new
    /// ones.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.log.after(0)
    }

    /// Drops the requests so far. Numbering continues.
    pub fn clear(&self) {
        self.shared.log.clear();
    }

    /// Makes the next `n` requests to the model take this step, regardless of their content.
    pub fn fail_next(&self, n: usize, step: Step) {
        self.shared.queue().extend(repeat_n(step, n));
    }

    /// Serves until the future ends, then stops. For a command that does nothing else.
    pub async fn serve_until(mut self, shutdown: impl Future<Output = ()>) -> Result<(), Error> {
        tokio::select! {
            () = shutdown => {
                self.stop().await;
                Ok(())
            }
            ended = &mut self.task => Err(Error::Ended(match ended {
                Ok(Ok(())) => "no reason was given".to_owned(),
                Ok(Err(error)) => error.to_string(),
                Err(error) => error.to_string(),
            })),
        }
    }

    /// Interrupts answers in progress, closes all connections and frees the port.
    pub async fn stop(mut self) {
        self.closing.send_replace(true);
        if tokio::time::timeout(PATIENCE, &mut self.task)
            .await
            .is_err()
        {
            self.task.abort();
        }
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.closing.send_replace(true);
    }
}
