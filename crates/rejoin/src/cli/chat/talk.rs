//! The conversation of a chat: its name, the options of the next message, and its commands.

use std::cell::Cell;

use rejoin_core::{ConversationId, Role, TurnId};
use rejoin_errors::codes;
use rejoin_hub::{ConversationView, NameKind, PageRequest};

use super::ChatArgs;
use super::draft::{Draft, Drafts};
use super::message::text_of;
use super::slash::{self, Slash};
use crate::app::data_home;
use crate::cli::command::Work;
use crate::cli::send::{SendArgs, send_text};
use crate::cli::{COMMANDS, HubClient};
use crate::output::format::count;
use crate::output::{Line, Tone};
use crate::remote::new_key;
use rejoin_errors::{CommandError, Result};

/// Suggestion of `/undo` in a conversation without a change.
const NOTHING_EDITED: &str =
    "/truncate, which removes the last exchange; or /edit N TEXT, which changes message N";

/// Number of messages among which the last one of the user is.
const LAST: i64 = 50;

/// A conversation, and the options of its next message.
pub(super) struct Talk<'a> {
    pub(super) hub: HubClient<'a>,
    pub(super) drafts: Drafts,
    conversation: Option<ConversationView>,
    messages: i64,
    key: Option<String>,
    title: Option<String>,
    workdir: Option<String>,
    agent: Option<String>,
    model: Option<String>,
    permission: Option<String>,
    fresh: bool,
    /// The agent of a new conversation.
    default_agent: String,
}

/// The end of sending a message.
pub(super) enum Sent {
    /// The message was accepted; the exit code of its turn.
    Done(u8),
    NotAccepted(CommandError, Draft),
}

impl<'a> Talk<'a> {
    pub(super) async fn begin(hub: HubClient<'a>, args: &ChatArgs) -> Result<Self> {
        let folder = args.workdir.as_deref().map(|dir| hub.folder_text(dir));
        let mut talk = Self {
            hub,
            drafts: Drafts::below(&data_home()?),
            conversation: None,
            messages: 0,
            key: args.key.clone(),
            title: args.title.clone(),
            workdir: folder.transpose()?,
            agent: None,
            model: args.model.clone(),
            permission: args.permission.map(|mode| mode.as_str().to_owned()),
            fresh: false,
            default_agent: default_agent(hub),
        };
        if let Some(name) = &args.agent {
            talk.agent = Some(hub.agent(name)?.to_string());
        }
        if let Some(name) = &args.conversation {
            talk.look(name).await?;
        } else if let Some(key) = &args.key {
            match talk.look(key).await {
                Err(failure) if failure.exit != 3 => return Err(failure),
                _ => {}
            }
            // A handle may look like a key.
            let other = |it: &ConversationView| it.key.as_ref() != Some(key);
            if talk.conversation.as_ref().is_some_and(other) {
                talk.conversation = None;
            }
        }
        Ok(talk)
    }

    /// Reads the conversation with this name.
    async fn look(&mut self, name: &str) -> Result<()> {
        let named = self.hub.named(name, NameKind::Conversation).await?;
        self.messages = named.messages;
        self.conversation = Some(named.conversation);
        Ok(())
    }

    /// The first line of a chat.
    pub(super) fn greeting(&self) -> Line {
        let line = match &self.conversation {
            Some(it) => Line::new()
                .with(Tone::Name, &it.handle)
                .with(Tone::Plain, " · ")
                .with(Tone::Plain, &count(self.messages as u64, "message"))
                .with(Tone::Plain, " · "),
            None => Line::plain("a new conversation · "),
        };
        line.with(Tone::Plain, "/help lists commands, Ctrl-D leaves")
    }

    pub(super) fn name(&self) -> &str {
        match (&self.conversation, &self.key) {
            (Some(it), _) => &it.handle,
            (None, Some(key)) => key,
            (None, None) => "new",
        }
    }

    /// The agent that answers the next message.
    pub(super) fn agent(&self) -> &str {
        let last = self.conversation.as_ref().map(|it| it.agent.as_str());
        let last = last.unwrap_or(&self.default_agent);
        self.agent.as_deref().unwrap_or(last)
    }

    /// The target of drafts: the conversation, its key, or the folder of a new one.
    fn target(&self) -> String {
        match (&self.conversation, &self.key) {
            (Some(it), _) => it.id.to_string(),
            (None, Some(key)) => format!("key:{key}"),
            (None, None) => {
                let here = std::env::current_dir().unwrap_or_default();
                format!("folder:{}", here.display())
            }
        }
    }

    /// Returns the lines that earlier chats with this conversation did not send.
    pub(super) fn left(&self) -> Vec<Draft> {
        let known = self.conversation.as_ref().and_then(|it| it.key.as_ref());
        let by_key = self.key.as_ref().or(known).map(|key| format!("key:{key}"));
        let target = self.target();
        let mut left = match by_key {
            // Typed before the conversation was there.
            Some(by_key) if by_key != target => self.drafts.left_for(&by_key),
            _ => vec![],
        };
        left.extend(self.drafts.left_for(&target));
        left
    }

    /// Keeps a line that is not sent yet. An empty line has no file.
    pub(super) fn keep(&self, typed: &str) -> Result<Draft> {
        let draft = self.draft(typed)?;
        if !typed.trim().is_empty() {
            self.drafts.keep(&draft)?;
        }
        Ok(draft)
    }

    fn draft(&self, typed: &str) -> Result<Draft> {
        let key = new_key().ok_or_else(|| CommandError::unavailable("no key could be made"))?;
        Ok(Draft {
            target: self.target(),
            key,
            typed: typed.to_owned(),
        })
    }

    /// Sends a line and follows its turn. `same`: the draft of the line, if it was kept before; a message that was
    /// accepted under its key is not accepted again.
    pub(super) async fn send(&mut self, typed: &str, same: Option<Draft>) -> Result<Sent> {
        let draft = match same {
            Some(draft) => draft,
            None => self.draft(typed)?,
        };
        self.drafts.keep(&draft)?;
        let accepted: Cell<Option<(ConversationId, TurnId)>> = Cell::new(None);
        let sent = {
            let args = SendArgs::of_flags(&self.flags(&draft.key))?;
            let stored = |c, turn| {
                self.drafts.remove(&draft);
                accepted.set(Some((c, turn)));
            };
            send_text(self.hub, &args, text_of(typed), &stored).await
        };
        let Some((c, turn)) = accepted.get() else {
            return match sent {
                Ok(code) => Ok(Sent::Done(code)),
                Err(failure) => Ok(Sent::NotAccepted(failure, draft)),
            };
        };
        self.fresh = false;
        let known = self.look(&c.to_string()).await;
        match sent {
            Ok(code) => known.map(|()| Sent::Done(code)),
            Err(failure) if self.was_withdrawn(turn).await => {
                // Under a key of its own: the turn of the old one is over.
                let draft = self.keep(typed)?;
                Ok(Sent::NotAccepted(failure, draft))
            }
            Err(failure) => {
                self.hub.out().failure(&failure);
                Ok(Sent::Done(failure.exit))
            }
        }
    }

    /// Returns true if an accepted message was withdrawn before anything ran.
    async fn was_withdrawn(&self, turn: TurnId) -> bool {
        match self.hub.turn(&turn.to_string()).await {
            Ok(view) => CommandError::held_back(&view).is_some(),
            Err(failure) => failure.exit == 3,
        }
    }

    /// The options of `rejoin send` for the next message.
    fn flags(&self, key: &str) -> Vec<String> {
        let mut flags = vec![format!("--idempotency-key={key}")];
        let mut add = |name: &str, value: Option<&String>| {
            flags.extend(value.map(|value| format!("--{name}={value}")));
        };
        match &self.conversation {
            Some(it) => add("conversation", Some(&it.id.to_string())),
            None => {
                add("key", self.key.as_ref());
                add("title", self.title.as_ref());
            }
        }
        add("workdir", self.workdir.as_ref());
        add("agent", self.agent.as_ref());
        add("model", self.model.as_ref());
        add("permission", self.permission.as_ref());
        if self.fresh {
            flags.push("--fresh-session".into());
        }
        flags
    }

    /// Carries out a command of the chat. Returns its exit code; none: leave.
    pub(super) async fn carry_out(&mut self, command: Slash) -> Result<Option<u8>> {
        let out = self.hub.out();
        match command {
            Slash::Quit => return Ok(None),
            Slash::Help => out.say(&slash::help()),
            Slash::Fresh => {
                self.fresh = true;
                out.note("the next message starts a new session with the transcript");
            }
            Slash::Agent(Some(name)) => {
                let agent = self.hub.agent(&name)?.to_string();
                // A model is one of its agent.
                if self.agent() != agent && self.model.take().is_some() {
                    out.note("the model is the default again");
                }
                self.agent = Some(agent);
                out.note(&format!("{} answers the next messages", self.agent()));
            }
            Slash::Agent(None) => out.note(&format!("{} answers", self.agent())),
            Slash::Model(Some(word)) => {
                self.model = slash::model(word);
                out.note(&self.model_line());
            }
            Slash::Model(None) => out.note(&self.model_line()),
            Slash::Permission(Some(mode)) => {
                self.permission = Some(mode.as_str().to_owned());
                out.note(&format!("permission {mode} from the next message on"));
            }
            Slash::Permission(None) => {
                let kept = self.conversation.as_ref().map(|it| it.permission.as_str());
                let mode = self.permission.as_deref().or(kept).unwrap_or("the default");
                out.note(&format!("permission {mode}"));
            }
            Slash::Command(name, words) => return self.run(name, words).await.map(Some),
        }
        Ok(Some(0))
    }

    fn model_line(&self) -> String {
        let model = self.model.as_deref().unwrap_or("the default");
        format!("model {model}")
    }

    /// Runs a command of rejoin on this conversation.
    async fn run(&mut self, name: &str, words: Vec<String>) -> Result<u8> {
        let Some(it) = &self.conversation else {
            let text = "there is no conversation yet: the first message starts it";
            return Err(CommandError::usage(text).try_this("type a message"));
        };
        let (id, handle) = (it.id, it.handle.clone());
        let words = self.with_message(id, name, words).await?;
        let entry = COMMANDS.iter().find(|entry| entry.name == name);
        let entry = entry.ok_or_else(|| CommandError::usage(format!("no command `{name}`")))?;
        let parse = |words: Vec<String>| {
            let command = entry.clap().no_binary_name(true);
            entry.task(&command.try_get_matches_from(words)?)
        };
        // `/show 3`: message 3 of this conversation.
        let number = |word: &String| word.starts_with(|c: char| c.is_ascii_digit());
        let named: Vec<String> = match words.first() {
            Some(first) if number(first) => {
                let first = format!("{handle}:{first}");
                std::iter::once(first).chain(words[1..].to_vec()).collect()
            }
            _ => std::iter::once(id.to_string())
                .chain(words.clone())
                .collect(),
        };
        let task = parse(named).or_else(|_| parse(words)).map_err(|e| {
            let text = e.to_string();
            let first = text.lines().next().unwrap_or_default();
            let first = first.trim_start_matches("error: ").to_owned();
            CommandError::usage(first).try_this("/help")
        })?;
        let Work::Hub(work) = task.work else {
            return Err(CommandError::usage(format!("`{name}` is none of a chat")));
        };
        let code = work(self.hub).await.map_err(|failure| match name {
            "undo" if failure.code == codes::CONFLICT.word => failure.try_this(NOTHING_EDITED),
            _ => failure,
        })?;
        self.look(&id.to_string()).await?;
        Ok(code)
    }

    /// Adds the message that a command without one means: for `/truncate` the last one of the user, for `/explain`
    /// the last one of the history, whose turn was not withdrawn.
    async fn with_message(
        &self,
        c: ConversationId,
        name: &str,
        mut words: Vec<String>,
    ) -> Result<Vec<String>> {
        let about_last =
            |word: &String| ["--raw", "--prompt", "--dry-run"].contains(&word.as_str());
        if !["explain", "truncate"].contains(&name) || !words.iter().all(about_last) {
            return Ok(words);
        }
        let page = PageRequest {
            limit: Some(LAST),
            ..PageRequest::default()
        };
        let page = self.hub.page(c, &page).await?;
        let mut messages = page.messages.iter().rev();
        let last = messages.find(|m| name == "explain" || m.role == Role::User);
        if let Some(seq) = last.and_then(|message| message.seq) {
            words.insert(0, seq.to_string());
        } else if name == "truncate" {
            return Err(CommandError::usage("there is no message to remove").try_this("/show"));
        }
        Ok(words)
    }
}

fn default_agent(hub: HubClient<'_>) -> String {
    match hub {
        HubClient::Local(app) => app.config.default_agent.clone(),
        HubClient::Remote(remote) => {
            let config = remote.config.as_ref();
            config.map_or("the default agent".into(), |it| it.default_agent.clone())
        }
    }
}
