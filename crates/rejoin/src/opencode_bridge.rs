//! Stands between a shim and OpenCode's server, which speaks HTTP: starts it, passes on what it reports
//! as lines and what is answered as requests, one turn after the other, and ends it when stdin is closed.
//! What is said is `rejoin_agents::serve`.

mod events;
mod lines;
mod server;

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use rejoin_agents::serve::{
    AnswerTo, END, OpenRequestPolicy, PendingRequests, SESSION, ServeAnswer, ServeOrder,
};
use serde_json::{Value, json};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::timeout;

use events::{Events, News};
use lines::Lines;
use server::Server;

/// After an interruption the server may finish what it writes.
const ABORT_MAY_TAKE: Duration = Duration::from_secs(2);
/// After an error the server says that it is done; a request that never began has no end.
const AFTER_ERROR: Duration = Duration::from_secs(5);

const INTERRUPTED: u8 = 130;
const TERMINATED: u8 = 143;

pub(crate) fn run(args: &[String]) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let outcome = match runtime {
        Ok(runtime) => runtime.block_on(turn(args)),
        Err(error) => Err(error.to_string()),
    };
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let mut out = std::io::stderr().lock();
            let _written = writeln!(out, "{error}");
            ExitCode::FAILURE
        }
    }
}

/// How the turn came to its end.
enum Over {
    Idle,
    Signal(u8),
}

async fn turn(args: &[String]) -> Result<u8, String> {
    let [program, args @ ..] = args else {
        return Err("usage: opencode-bridge PROGRAM ARGUMENTS, an order on stdin".into());
    };
    let mut wishes = Wishes::new().map_err(|error| error.to_string())?;
    let mut stdin = Lines::of_stdin()?;
    let order = stdin.next().await?.ok_or("there is no order on stdin")?;
    let order: ServeOrder =
        serde_json::from_slice(&order).map_err(|error| format!("not an order: {error}"))?;
    let server = tokio::select! {
        server = Server::start(program, args, &order.folder) => server?,
        code = wishes.next() => return Ok(code),
    };
    let over = turns(&server, order, &mut stdin, &mut wishes).await;
    server.end().await;
    match over? {
        Over::Idle => Ok(0),
        Over::Signal(code) => Ok(code),
    }
}

/// Runs turns one after the other, until stdin ends.
async fn turns(
    server: &Server,
    first: ServeOrder,
    stdin: &mut Lines,
    wishes: &mut Wishes,
) -> Result<Over, String> {
    let mut order = first;
    loop {
        if let Over::Signal(code) = led(server, &order, stdin, wishes).await? {
            return Ok(Over::Signal(code));
        }
        order = loop {
            let line = tokio::select! {
                line = stdin.next() => line?,
                code = wishes.next() => return Ok(Over::Signal(code)),
            };
            let Some(line) = line else {
                return Ok(Over::Idle);
            };
            match serde_json::from_slice(&line) {
                Ok(order) => break order,
                // An answer may come too late.
                Err(_) if serde_json::from_slice::<ServeAnswer>(&line).is_ok() => {}
                Err(error) => return Err(format!("not an order: {error}")),
            }
        };
    }
}

async fn led(
    server: &Server,
    order: &ServeOrder,
    stdin: &mut Lines,
    wishes: &mut Wishes,
) -> Result<Over, String> {
    let begin = async {
        let mut events = server.events().await?;
        // Nothing is told about what happened before.
        events.connected().await?;
        let session = server.session(order).await?;
        emit(&json!({"type": SESSION, "properties": {"sessionID": session}}).to_string());
        events.only(&session);
        server.prompt(&session, &order.prompt).await?;
        Ok::<_, String>((events, session))
    };
    let (events, session) = tokio::select! {
        begun = begin => begun?,
        code = wishes.next() => return Ok(Over::Signal(code)),
    };
    let mut turn = Turn {
        server,
        order,
        session,
        events,
        desk: PendingRequests::default(),
        listens: order.decides == OpenRequestPolicy::Person,
        hears: true,
        failed: false,
    };
    let over = tokio::select! {
        over = turn.follow(stdin) => over,
        code = wishes.next() => Ok(Over::Signal(code)),
    };
    if !matches!(over, Ok(Over::Idle)) {
        // What was said so far is kept in the session, and no tool goes on.
        let aborted = async {
            server.abort(&turn.session).await.ok();
            turn.drain().await;
        };
        drop(timeout(ABORT_MAY_TAKE, aborted).await);
    }
    // A sub-agent may go on in the background.
    let busy = server.is_any_busy().await.unwrap_or(true);
    emit(&json!({"type": END, "busy": busy}).to_string());
    over
}

struct Turn<'a> {
    server: &'a Server,
    order: &'a ServeOrder,
    session: String,
    events: Events,
    desk: PendingRequests,
    /// A person can still say something.
    listens: bool,
    /// Stdin is open.
    hears: bool,
    failed: bool,
}

impl Turn<'_> {
    async fn follow(&mut self, stdin: &mut Lines) -> Result<Over, String> {
        loop {
            let patience = if self.failed {
                AFTER_ERROR
            } else {
                Duration::MAX
            };
            let news = tokio::select! {
                news = timeout(patience, self.events.next()) => news,
                line = stdin.next(), if self.hears => {
                    match line? {
                        Some(line) => self.answer(&line).await?,
                        None => self.nobody_is_left().await?,
                    }
                    continue;
                }
            };
            match news {
                Ok(news) => {
                    if self.told(news?).await? {
                        return Ok(Over::Idle);
                    }
                }
                // It failed, and goes on all the same (a session that is too long is made shorter).
                Err(_late) if self.server.is_busy(&self.session).await? => self.failed = false,
                Err(_late) => return Ok(Over::Idle),
            }
        }
    }

    /// True: the turn is over.
    async fn told(&mut self, news: News) -> Result<bool, String> {
        let id = news.id.as_deref().unwrap_or_default();
        if !news.ours {
            self.told_of_another(&news, id).await?;
            return Ok(false);
        }
        emit(&news.line);
        match news.kind.as_str() {
            "session.idle" => return Ok(true),
            "session.error" => self.failed = true,
            "permission.asked" => {
                self.desk.asked(id);
                if !self.listens {
                    self.decide().await?;
                }
            }
            "permission.replied" => {
                let now = self.desk.settled(id);
                self.permit(now).await?;
            }
            "question.asked" if !self.listens => self.server.no_answer(id).await?,
            _ => {}
        }
        Ok(false)
    }

    /// A sub-agent is decided for: nobody knows of its session.
    async fn told_of_another(&self, news: &News, id: &str) -> Result<(), String> {
        match news.kind.as_str() {
            "session.status" => emit(&news.line),
            "permission.asked" => {
                let said = self.decision();
                self.server.reply(AnswerTo::Permission, id, &said).await?;
            }
            "question.asked" => self.server.no_answer(id).await?,
            _ => {}
        }
        Ok(())
    }

    fn decision(&self) -> Value {
        match self.order.decides {
            OpenRequestPolicy::Yes => json!({"reply": "once"}),
            OpenRequestPolicy::Person | OpenRequestPolicy::Nobody => {
                json!({"reply": "reject", "message": self.order.nobody})
            }
        }
    }

    /// Passes on an answer unchecked; a line that is no answer is reported and has no effect.
    async fn answer(&mut self, line: &[u8]) -> Result<(), String> {
        let answer: ServeAnswer = match serde_json::from_slice(line) {
            Ok(answer) => answer,
            Err(error) => {
                let mut out = std::io::stderr().lock();
                let _written = writeln!(out, "not an answer: {error}");
                return Ok(());
            }
        };
        match answer.to {
            AnswerTo::Permission => {
                let now = self.desk.decided(&answer.id, answer.body);
                self.permit(now).await
            }
            AnswerTo::Question => self.server.reply(answer.to, &answer.id, &answer.body).await,
        }
    }

    async fn permit(&mut self, now: Vec<(String, Value)>) -> Result<(), String> {
        for (id, body) in now {
            self.server.reply(AnswerTo::Permission, &id, &body).await?;
        }
        Ok(())
    }

    /// Stdin is closed: what is asked from now on would be asked for ever.
    async fn nobody_is_left(&mut self) -> Result<(), String> {
        (self.listens, self.hears) = (false, false);
        self.decide().await
    }

    /// Decides the requests that no person is asked.
    async fn decide(&mut self) -> Result<(), String> {
        for id in self.desk.undecided() {
            let now = self.desk.decided(&id, self.decision());
            self.permit(now).await?;
        }
        Ok(())
    }

    async fn drain(&mut self) {
        while let Ok(news) = self.events.next().await {
            if !news.ours {
                continue;
            }
            emit(&news.line);
            if news.kind == "session.idle" {
                return;
            }
        }
    }
}

/// To be told to end.
struct Wishes {
    interrupt: Signal,
    terminate: Signal,
}

impl Wishes {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// The code to end with.
    async fn next(&mut self) -> u8 {
        tokio::select! {
            _ = self.interrupt.recv() => INTERRUPTED,
            _ = self.terminate.recv() => TERMINATED,
        }
    }
}

/// Prints a line; a reader that is gone is no failure.
fn emit(line: &str) {
    let mut out = std::io::stdout().lock();
    let _written = writeln!(out, "{line}").and_then(|()| out.flush());
}
