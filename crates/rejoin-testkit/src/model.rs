//! The scripted model in its own thread, for tests that are not async.

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::thread::JoinHandle;

use rejoin_model::{ModelServer, Options, Request, Script, Step, ToolCall};
use tokio::sync::oneshot;

use crate::words::answer;

/// A running model. Every `#s:aN` answers with `answer(N)`.
pub struct Model {
    asks: mpsc::Sender<Ask>,
    pub url: String,
    thread: Option<JoinHandle<()>>,
    stop: Option<oneshot::Sender<()>>,
}

/// A step in which the model runs a command with the Bash tool.
pub fn runs(command: &str) -> Step {
    let input = serde_json::json!({"command": command, "description": "of this test"});
    Step {
        tools: vec![ToolCall {
            name: "Bash".into(),
            input,
        }],
        ..Step::default()
    }
}

/// Returns an answer of `chunks` pieces, one every 100 ms.
pub fn slowly(text: &str, chunks: usize) -> Step {
    Step {
        chunks: Some(chunks),
        delay_ms: Some(100),
        ..Step::text(text)
    }
}

enum Ask {
    Requests(mpsc::Sender<Vec<Request>>),
    FailNext(usize, Box<Step>),
    Clear,
}

impl Model {
    pub fn start() -> Self {
        Self::with(BTreeMap::new())
    }

    /// Starts the model with scripts of the test.
    pub fn scripted<const N: usize>(more: [(&str, Script); N]) -> Self {
        Self::with(more.map(|(name, script)| (name.to_owned(), script)).into())
    }

    pub fn with(more: BTreeMap<String, Script>) -> Self {
        let (asks, asked) = mpsc::channel::<Ask>();
        let (told, url) = mpsc::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(serve(more, asked, told, stopped));
        });
        let url = url.recv().expect("the model did not start");
        Self {
            asks,
            url,
            thread: Some(thread),
            stop: Some(stop),
        }
    }

    /// Returns the requests to the model so far.
    pub fn requests(&self) -> Vec<Request> {
        let (tell, told) = mpsc::channel();
        self.asks.send(Ask::Requests(tell)).unwrap();
        told.recv().unwrap()
    }

    pub fn last(&self) -> Request {
        self.requests().pop().expect("the model was asked nothing")
    }

    pub fn fail_next(&self, n: usize, step: Step) {
        self.asks.send(Ask::FailNext(n, Box::new(step))).unwrap();
    }

    pub fn clear(&self) {
        self.asks.send(Ask::Clear).unwrap();
    }
}

async fn serve(
    more: BTreeMap<String, Script>,
    asked: mpsc::Receiver<Ask>,
    told: mpsc::Sender<String>,
    mut stopped: oneshot::Receiver<()>,
) {
    let mut scripts: BTreeMap<String, Script> = (1..=99)
        .map(|n| (format!("a{n}"), vec![Step::text(answer(n))]))
        .collect();
    scripts.extend(more);
    let server = ModelServer::start(Options {
        scripts,
        strict: true,
        ..Options::default()
    })
    .await
    .unwrap();
    told.send(server.url()).unwrap();
    loop {
        while let Ok(ask) = asked.try_recv() {
            match ask {
                Ask::Requests(tell) => drop(tell.send(server.requests())),
                Ask::FailNext(n, step) => server.fail_next(n, *step),
                Ask::Clear => server.clear(),
            }
        }
        tokio::select! {
            _ = &mut stopped => break,
            () = tokio::time::sleep(std::time::Duration::from_millis(2)) => {}
        }
    }
    server.stop().await;
}

impl Drop for Model {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
    }
}
