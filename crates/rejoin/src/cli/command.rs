//! A command: its arguments, its line on the help page, and its work. A new command is a file with an
//! implementation of [`Run`] and a line in the list of `cli.rs`.

use std::pin::Pin;

use clap::{ArgMatches, Args, Command, Error};

use super::routing::Target;
use crate::app::{App, Invocation};
use crate::hub_client::HubClient;
use rejoin_errors::Result;

/// The arguments of a command, and all that the rest of the binary knows of it.
pub(super) trait Run: Args + std::fmt::Debug + 'static {
    /// The word on the command line.
    const NAME: &'static str;
    const HELP: Help;
    /// Further words for the command, which other tools use.
    const ALIASES: &'static [&'static str] = &[];
    /// Threads beside the one that runs the command.
    const THREADS: usize = 0;

    /// Plans the work: the hub or machine that carries it out, and the trust it needs.
    fn task(self) -> Task;
}

/// A group of the help page, and a few words for the row of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Help {
    Talk(&'static str),
    Look(&'static str),
    Change(&'static str),
    SetUp(&'static str),
    /// For processes of our own and for builds, not for people.
    Hidden,
}

/// A command in the list of all commands.
pub(super) struct Entry {
    pub(super) name: &'static str,
    pub(super) help: Help,
    pub(super) aliases: &'static [&'static str],
    pub(super) threads: usize,
    augment: fn(Command) -> Command,
    task: fn(&ArgMatches) -> Result<Task, Error>,
    #[cfg(test)]
    pub(super) shown: fn(&ArgMatches) -> String,
}

impl Entry {
    pub(super) const fn of<C: Run>() -> Self {
        Self {
            name: C::NAME,
            help: C::HELP,
            aliases: C::ALIASES,
            threads: C::THREADS,
            augment: C::augment_args,
            task: |matches| Ok(C::from_arg_matches(matches)?.task()),
            #[cfg(test)]
            shown: |matches| format!("{:?}", C::from_arg_matches(matches)),
        }
    }

    /// Builds the command line of this command.
    pub(super) fn clap(&self) -> Command {
        let command = Command::new(self.name).aliases(self.aliases);
        (self.augment)(command).hide(self.help == Help::Hidden)
    }

    /// Returns true if the command has this name or alias.
    pub(super) fn is_named(&self, word: &str) -> bool {
        self.name == word || self.aliases.contains(&word)
    }

    pub(super) fn task(&self, matches: &ArgMatches) -> Result<Task, Error> {
        (self.task)(matches)
    }
}

/// The work of a command line, with the trust that it needs.
pub(super) struct Task {
    pub(super) target: Target,
    pub(super) trust: TrustCheck,
    pub(super) work: Work,
}

/// Tells what an untrusted configuration file of a repository means for a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TrustCheck {
    /// No agent runs: the command leaves out the file's settings, and says so.
    Unneeded,
    /// An agent runs: the command is refused.
    Required,
    /// An agent may run: the work itself checks trust, or the sender of the turn did.
    ByWork,
}

type Done<'a> = Pin<Box<dyn Future<Output = Result<u8>> + 'a>>;

/// The code of a command, by the place that it works on.
pub(super) enum Work {
    Hub(Box<dyn for<'a> FnOnce(HubClient<'a>) -> Done<'a>>),
    Store(Box<dyn for<'a> FnOnce(&'a App) -> Done<'a>>),
    Machine(Box<dyn for<'a> FnOnce(&'a Invocation) -> Done<'a>>),
}

impl Task {
    /// Work on any hub: the store of this process, or a daemon that the user named.
    pub(super) fn hub<A: 'static>(
        args: A,
        run: impl for<'a, 'b> AsyncFnOnce(HubClient<'a>, &'b A) -> Result<u8> + 'static,
    ) -> Self {
        let work = Work::Hub(Box::new(move |hub| {
            Box::pin(async move { run(hub, &args).await })
        }));
        Self::new(Target::AnyHub, work)
    }

    /// Work on the store itself, or on files of the local machine that belong to it.
    pub(super) fn store<A: 'static>(
        args: A,
        run: impl for<'a, 'b> AsyncFnOnce(&'a App, &'b A) -> Result<u8> + 'static,
    ) -> Self {
        let work = Work::Store(Box::new(move |app| {
            Box::pin(async move { run(app, &args).await })
        }));
        Self::new(Target::Store, work)
    }

    /// Work without any hub.
    pub(super) fn machine<A: 'static>(
        args: A,
        run: impl for<'a, 'b> AsyncFnOnce(&'a Invocation, &'b A) -> Result<u8> + 'static,
    ) -> Self {
        let work = Work::Machine(Box::new(move |on| {
            Box::pin(async move { run(on, &args).await })
        }));
        Self::new(Target::Machine, work)
    }

    fn new(target: Target, work: Work) -> Self {
        Self {
            target,
            trust: TrustCheck::Unneeded,
            work,
        }
    }

    /// Sends the work to the daemon on this data folder, if there is one: turns are run there.
    pub(super) fn by_daemon(self) -> Self {
        Self {
            target: Target::Runner,
            ..self
        }
    }

    /// Ignores the user's choice of a hub.
    pub(super) fn unrouted(self) -> Self {
        Self {
            target: Target::Unrouted,
            ..self
        }
    }

    pub(super) fn trust(self, trust: TrustCheck) -> Self {
        Self { trust, ..self }
    }
}
