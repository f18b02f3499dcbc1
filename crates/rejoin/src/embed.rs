//! Conversations for a program that embeds rejoin. The command line sends through the same code.

use std::path::Path;

use rejoin_core::{PermissionMode, StoredEvent};
use rejoin_hub::{Hub, IfBusy, TurnView, rfc3339};
use tokio::sync::watch;

use crate::app::{App, here};
use crate::cli::send::{SendArgs, accept};
use crate::config::Config;
use crate::output::Output;
use rejoin_errors::Result;

/// Events per query.
const PAGE: i64 = 256;

/// A message and its options, which are those of `rejoin send`.
#[derive(Debug, Clone)]
pub struct Message {
    text: String,
    flags: Vec<String>,
}

impl Message {
    /// Returns a message that starts a new conversation, unless [`Self::key`] names one.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            flags: vec![],
        }
    }

    /// Names the conversation to continue, or to start under this key.
    #[must_use]
    pub fn key(self, key: &str) -> Self {
        self.option("key", key)
    }

    /// Selects the agent that answers. Default: the agent of the newest turn.
    #[must_use]
    pub fn agent(self, name: &str) -> Self {
        self.option("agent", name)
    }

    /// Limits the actions of the agent.
    #[must_use]
    pub fn permission(self, mode: PermissionMode) -> Self {
        self.option("permission", mode.as_str())
    }

    /// Sets any other option of `rejoin send` that has a value, such as `workdir` or `timeout`.
    #[must_use]
    pub fn option(mut self, name: &str, value: &str) -> Self {
        self.flags.push(format!("--{name}={value}"));
        self
    }
}

/// An open rejoin: its store, its configuration and its agents.
///
/// Settings come from the configuration files of the command line. If this process ends during a
/// turn, the next one that opens the store records how the turn ended.
pub struct Rejoin {
    app: App,
}

impl Rejoin {
    /// Opens the store of a data folder, which is created if it does not exist, and settles turns
    /// that ended processes left.
    pub async fn open(home: impl AsRef<Path>) -> Result<Self> {
        let out = Output {
            json: false,
            quiet: true,
        };
        let here = here()?;
        let config = Config::load(None, &here)?;
        let home = home.as_ref().to_owned();
        let app = App::open_at(out, config, home, here, std::env::vars_os()).await?;
        app.config.must_be_trusted()?;
        app.settle_what_was_left().await?;
        Ok(Self { app })
    }

    /// Sends a message to the conversation with this key, or starts it. Returns the turn once it
    /// has ended; the answer is its `text`.
    pub async fn send(&self, key: &str, text: &str) -> Result<TurnView> {
        self.send_message(Message::new(text).key(key), |_| ()).await
    }

    /// Sends a message with options, and passes each event of its turn to `watch` once it is
    /// stored. Returns the turn once it has ended.
    pub async fn send_message(
        &self,
        message: Message,
        mut watch: impl FnMut(StoredEvent),
    ) -> Result<TurnView> {
        let (runner, hub) = (&self.app.runner, self.app.hub());
        let args = SendArgs::of_flags(&message.flags)?;
        let accepted = accept(&self.app, &args, message.text).await?;
        let (_cancel, cancelled) = watch::channel(false);
        let (mut wake, mut seen) = (runner.wake.subscribe(), 0);
        let run = runner.run_accepted(&accepted, IfBusy::Wait, &cancelled);
        tokio::pin!(run);
        let mut ended = false;
        while !ended {
            tokio::select! {
                biased;
                ran = &mut run => {
                    ran?;
                    ended = true;
                }
                changed = wake.changed() => drop(changed),
            }
            loop {
                let mut read = hub.store.read().await?;
                let rows = read.events().of_turn(accepted.turn, seen, PAGE).await?;
                let Some(last) = rows.last() else { break };
                seen = last.seq;
                for row in rows {
                    watch(StoredEvent {
                        seq: row.seq,
                        conversation_id: row.conversation,
                        turn_id: Some(row.turn),
                        at: rfc3339(row.at),
                        body: row.body.described(),
                    });
                }
            }
        }
        Ok(hub.turn_view(accepted.turn).await?)
    }

    /// Returns the hub, which lists, shows and changes conversations.
    pub fn hub(&self) -> &Hub {
        self.app.hub()
    }

    /// Closes the store. A dropped [`Rejoin`] loses nothing, because answers are committed.
    pub async fn close(self) {
        self.app.close().await;
    }
}
