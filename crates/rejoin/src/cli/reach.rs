//! Which hub carries a command out.

use std::path::Path;
use std::time::Duration;

use super::{Command, Global};
use crate::app::{data_home, here};
use crate::config::Config;
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::remote::{Choice, Remote, Said};
use crate::store_at::StoreAt;

/// A daemon on this machine says who it is within this time, or is done without.
const HELLO: Duration = Duration::from_secs(2);

/// Where a command can be carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// By any hub; a turn is run by the daemon on this data folder if there is one.
    Runs,
    /// By any hub.
    Anywhere,
    /// It needs this machine's files, or the store itself.
    Store,
    /// It is about this machine, and has nothing to do with any hub.
    Machine,
    /// It says itself which hub it is about.
    Neither,
}

impl Command {
    pub(super) fn reach(&self) -> Reach {
        match self {
            Self::Send(args) if args.bundle.is_some() => Reach::Machine,
            Self::Show(args) if args.bundle.is_some() => Reach::Machine,
            Self::Explain(args) if args.bundle.is_some() => Reach::Machine,
            Self::Send(_) | Self::Reply(_) | Self::Retry(_) | Self::Answer(_) | Self::Cancel(_) => {
                Reach::Runs
            }
            Self::Watch(_)
            | Self::Wait(_)
            | Self::Inbox(_)
            | Self::List(_)
            | Self::Show(_)
            | Self::Explain(_)
            | Self::Search(_)
            | Self::Edit(_)
            | Self::Truncate(_)
            | Self::Fork(_)
            | Self::Merge(_)
            | Self::Undo(_)
            | Self::Reset(_)
            | Self::Set(_)
            | Self::Rename(_)
            | Self::Token(_)
            | Self::Archive(_)
            | Self::Delete(_) => Reach::Anywhere,
            Self::Open(_)
            | Self::Adopt(_)
            | Self::Export(_)
            | Self::Import(_)
            | Self::Snapshot(_)
            | Self::Sweep(_) => Reach::Store,
            Self::Demo(_)
            | Self::Serve(_)
            | Self::Doctor(_)
            | Self::Config(_)
            | Self::Trust(_)
            | Self::ModelServer(_) => Reach::Machine,
            Self::RunTurn(_)
            | Self::Login(_)
            | Self::Logout(_)
            | Self::Completions(_)
            | Self::Man(_) => Reach::Neither,
        }
    }
}

/// The daemon that is to carry it out; none: this process.
pub(super) async fn carried_out_by(
    global: &Global,
    reach: Reach,
    out: Output,
) -> Result<Option<Remote>> {
    use Reach::{Anywhere, Machine, Neither, Runs, Store};
    match (Choice::of(global.hub.as_deref()), reach) {
        // Whoever names a configuration wants that one to count.
        (Choice::Any, Runs) if global.config.is_none() => daemon_here(out).await,
        (Choice::Named { name, .. }, Runs | Anywhere) => Remote::named(out, &name).map(Some),
        (Choice::Named { name, said }, Store | Machine) if reach == Store || said == Said::Flag => {
            let text =
                format!("that works on this machine's own files, and not through the hub {name}");
            Err(Failure::usage(text).try_this("the same with --hub none, or on that machine"))
        }
        (Choice::Any | Choice::Nobody, _) | (Choice::Named { .. }, Store | Machine | Neither) => {
            Ok(None)
        }
    }
}

/// The daemon on our data folder, if it has the store that we would use.
async fn daemon_here(out: Output) -> Result<Option<Remote>> {
    let (home, here) = (data_home()?, here()?);
    let Some(remote) = Remote::behind_socket(out, &home, &here)? else {
        return Ok(None);
    };
    let config = Config::load(None, &here)?;
    if let Some(untrusted) = &config.untrusted {
        return Err(untrusted.failure());
    }
    let store = StoreAt::named(&home, config.database_url.as_deref())?;
    // One that is about to end, does not answer, or is older than we are is not needed.
    let hub = tokio::time::timeout(HELLO, remote.hub()).await;
    let same = matches!(hub, Ok(Ok(hub)) if hub.store == store.mark());
    Ok(same.then_some(remote))
}

/// Fails if the store's file is missing while a daemon on this data folder has it open: it was deleted, and a new
/// one in its place would hide that.
pub(crate) async fn must_not_be_deleted(out: Output, home: &Path, store: &StoreAt) -> Result<()> {
    if !store.is_missing() {
        return Ok(());
    }
    let Some(remote) = Remote::behind_socket(out, home, &here()?)? else {
        return Ok(());
    };
    let hub = tokio::time::timeout(HELLO, remote.hub()).await;
    if matches!(hub, Ok(Ok(hub)) if hub.store != store.mark()) {
        return Ok(());
    }
    let text = format!(
        "the store {} was deleted while a daemon uses it; nothing was kept",
        store.place()
    );
    Err(Failure::unavailable(text)
        .try_this("put the file back, or stop the daemon and start it again"))
}
