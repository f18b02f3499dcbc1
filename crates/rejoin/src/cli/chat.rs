//! `rejoin chat`: one message after the other, with the code of `rejoin send`.

mod draft;
mod editor;
mod message;
mod slash;
mod suggestion;
mod talk;

use std::collections::VecDeque;
use std::io::IsTerminal;
use std::path::PathBuf;

use clap::Args;
use rejoin_core::PermissionMode;
use tokio::signal::unix::{Signal, SignalKind, signal};

use self::draft::Draft;
use self::editor::{CurrentLine, Input, LineEditor, TerminalMode, read_piped};
use self::message::text_of;
use self::talk::{Sent, Talk};
use super::typed_lines;
use crate::cli::command::{Help, Run, Task, TrustCheck};
use crate::hub_client::HubClient;
use crate::output::{self, Line, Output, Tone};
use rejoin_errors::{CommandError, Result};

/// Hold a conversation, line by line
///
/// Every line is a message. Without -c or -k the first one starts a new conversation. Ctrl-C stops an
/// answer, Ctrl-D leaves, /help lists the commands of a chat. Without a terminal chat reads lines from
/// stdin and ends at the first turn that does not succeed.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin chat                    a new conversation\n  rejoin chat -c last            the last one of this folder\n  printf 'hello\\n/agent codex\\nyour view?\\n' | rejoin chat -k review"
)]
pub(crate) struct ChatArgs {
    /// Continue this one: handle, id, key, or `last`
    #[arg(
        short = 'c',
        long = "conversation",
        value_name = "CONV",
        conflicts_with = "key"
    )]
    conversation: Option<String>,
    /// Continue the one with this key, or start it
    #[arg(short, long, value_name = "KEY")]
    key: Option<String>,
    /// Title of a new conversation
    #[arg(long, value_name = "TITLE")]
    title: Option<String>,
    /// Agent; default: the agent of the newest turn
    #[arg(short, long, value_name = "AGENT")]
    agent: Option<String>,
    /// Working folder; default: the conversation's
    #[arg(short, long, value_name = "DIR")]
    workdir: Option<PathBuf>,
    /// Model
    #[arg(short, long)]
    model: Option<String>,
    /// Permissions: read-only, edit, full, ask
    #[arg(long, value_name = "MODE")]
    permission: Option<PermissionMode>,
}

impl Run for ChatArgs {
    const NAME: &'static str = "chat";
    const HELP: Help = Help::Talk("chat");

    fn task(self) -> Task {
        Task::hub(self, run).by_daemon().trust(TrustCheck::Required)
    }
}

/// Returns true if a person types at a terminal that can edit a line.
fn edits_lines(out: Output) -> bool {
    out.live() && std::io::stdin().is_terminal()
}

async fn run(hub: HubClient<'_>, args: &ChatArgs) -> Result<u8> {
    let out = hub.out();
    let mut talk = Talk::begin(hub, args).await?;
    output::suggest_by(suggestion::in_chat);
    if !edits_lines(out) {
        return run_piped(&mut talk).await;
    }
    let _mode = TerminalMode::begin();
    typed_lines::keep_earlier_lines();
    let mut signals = Signals::listen();
    let line = CurrentLine::default();
    let mut editor = Some(LineEditor::new(line.clone())?);
    out.say(&[talk.greeting()]);
    let mut left = talk.left().into_iter();
    let mut offered = offer(out, left.next());
    let mut queue = VecDeque::new();
    loop {
        // Typed while a turn ran. A line that was not accepted comes first.
        for typed in typed_lines::take_unused() {
            queue.push_back(talk.keep(&typed)?);
        }
        let (typed, draft) = if offered.is_none()
            && let Some(draft) = queue.pop_front()
        {
            out.note(&format!("{}{}", prompt(out, &talk).0, draft.typed));
            (draft.typed.clone(), Some(draft))
        } else {
            let Some(mut at_work) = editor.take() else {
                return Err(CommandError::unavailable("the terminal is gone"));
            };
            let prompt = prompt(out, &talk);
            let text = (offered.as_ref()).map_or(String::new(), |d| d.typed.clone());
            let read = tokio::task::spawn_blocking(move || {
                let read = at_work.read(&prompt, &text);
                (at_work, read)
            });
            let read = tokio::select! {
                read = read => read,
                code = signals.end() => {
                    let typed = line.take();
                    // The line that was offered has its draft already.
                    if offered.is_none() && !typed.trim().is_empty() {
                        talk.keep(&typed)?;
                        out.note("\nthe line is kept; the next chat offers it");
                    }
                    return Ok(code);
                }
            };
            let (at_work, read) =
                read.map_err(|e| CommandError::unavailable(format!("the terminal: {e}")))?;
            editor = Some(at_work);
            let typed = match read? {
                Input::Line(typed) => typed,
                Input::End => return Ok(0),
                Input::Interrupted => {
                    out.note("Ctrl-D or /quit leaves; the line is in the history");
                    String::new()
                }
            };
            let same = offered.take_if(|draft| draft.typed == typed);
            // A command may come before the line that is offered: it is offered again.
            if slash::parse(&typed).is_none()
                && let Some(changed) = offered.take()
            {
                talk.drafts.remove(&changed);
            }
            (typed, same)
        };
        match send_or_do(&mut talk, &typed, draft).await {
            Ok(Step::Quit) => return Ok(0),
            Ok(Step::Next) if offered.is_none() => offered = offer(out, left.next()),
            Ok(Step::Next) => {}
            Ok(Step::Again(draft)) => offered = Some(draft),
            Err(failure) => out.failure(&failure),
        }
    }
}

/// Runs the lines of stdin. Returns the code of the first turn that does not succeed.
async fn run_piped(talk: &mut Talk<'_>) -> Result<u8> {
    let out = talk.hub.out();
    for draft in talk.left() {
        let file = talk.drafts.file(&draft);
        let text = format!("a line was typed and not sent: {}", file.display());
        out.note(&text);
    }
    let mut signals = Signals::listen();
    loop {
        let read = tokio::task::spawn_blocking(read_piped);
        let read = tokio::select! {
            read = read => read.map_err(|e| CommandError::unavailable(e.to_string()))??,
            code = signals.interrupt_or_end() => return Ok(code),
        };
        let Input::Line(typed) = read else {
            return Ok(0);
        };
        if let Some(code) = run_line(talk, &typed).await? {
            return Ok(code);
        }
    }
}

/// Runs a line that no person can edit again. Returns the exit code if the chat ends with it.
async fn run_line(talk: &mut Talk<'_>, typed: &str) -> Result<Option<u8>> {
    match slash::parse(typed) {
        Some(command) => match talk.carry_out(command?).await? {
            Some(code) if code != 0 => Ok(Some(code)),
            Some(_) => Ok(None),
            None => Ok(Some(0)),
        },
        None if text_of(typed).trim().is_empty() => Ok(None),
        None => match talk.send(typed, None).await? {
            Sent::Done(0) => Ok(None),
            Sent::Done(code) => Ok(Some(code)),
            Sent::NotAccepted(failure, _) => Err(failure),
        },
    }
}

enum Step {
    Next,
    /// The message was not accepted: its line is offered again.
    Again(Draft),
    Quit,
}

async fn send_or_do(talk: &mut Talk<'_>, typed: &str, same: Option<Draft>) -> Result<Step> {
    if let Some(command) = slash::parse(typed) {
        if let Some(draft) = same {
            talk.drafts.remove(&draft);
        }
        let done = talk.carry_out(command?).await?;
        return Ok(if done.is_none() {
            Step::Quit
        } else {
            Step::Next
        });
    }
    if text_of(typed).trim().is_empty() {
        if let Some(draft) = same {
            talk.drafts.remove(&draft);
        }
        return Ok(Step::Next);
    }
    Ok(match talk.send(typed, same).await? {
        Sent::Done(_) => Step::Next,
        Sent::NotAccepted(failure, draft) => {
            talk.hub.out().failure(&failure);
            Step::Again(draft)
        }
    })
}

/// Says that a line of an earlier chat stands at the prompt.
fn offer(out: Output, draft: Option<Draft>) -> Option<Draft> {
    let draft = draft?;
    out.note("this line was typed in an earlier chat, and not sent:");
    Some(draft)
}

/// The handle and the agent of the next message, plain and coloured.
fn prompt(out: Output, talk: &Talk<'_>) -> (String, String) {
    let line = Line::new()
        .with(Tone::Name, talk.name())
        .with(Tone::Plain, " ")
        .with(Tone::Faint, talk.agent())
        .with(Tone::Plain, ">");
    let spaced = |text: String| text + " ";
    (spaced(line.render(false)), spaced(out.rendered(&line)))
}

/// Signals while no turn runs. An interrupt then ends nothing: it came too late for its turn.
struct Signals {
    interrupt: Option<Signal>,
    terminate: Option<Signal>,
    hangup: Option<Signal>,
}

impl Signals {
    fn listen() -> Self {
        let listen = |kind| signal(kind).ok();
        Self {
            interrupt: listen(SignalKind::interrupt()),
            terminate: listen(SignalKind::terminate()),
            hangup: listen(SignalKind::hangup()),
        }
    }

    async fn end(&mut self) -> u8 {
        tokio::select! {
            () = came(&mut self.terminate) => 143,
            () = came(&mut self.hangup) => 129,
        }
    }

    async fn interrupt_or_end(&mut self) -> u8 {
        tokio::select! {
            () = came(&mut self.interrupt) => 130,
            () = came(&mut self.terminate) => 143,
            () = came(&mut self.hangup) => 129,
        }
    }
}

async fn came(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}
