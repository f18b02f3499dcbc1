//! Which hub carries a command out.

use std::path::Path;
use std::time::Duration;

use crate::app::{Invocation, data_home, here};
use crate::output::Output;
use crate::remote::{HubSelection, Remote, SelectedBy};
use crate::store_url::StoreUrl;
use rejoin_errors::{CommandError, Result};

/// A daemon on this machine says who it is within this time, or is done without.
const HELLO: Duration = Duration::from_secs(2);

/// Hubs and machines that can carry out a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// Any hub; a turn is run by the daemon on this data folder if there is one.
    Runner,
    AnyHub,
    /// Files of the local machine, or the store itself.
    Store,
    /// The local machine, without any hub.
    Machine,
    /// The hub that the command names itself.
    Unrouted,
}

/// Chooses the daemon that carries out a command; none: this process.
pub(super) async fn choose(invocation: &Invocation, target: Target) -> Result<Option<Remote>> {
    use Target::{AnyHub, Machine, Runner, Store, Unrouted};
    match (HubSelection::of(invocation.hub.as_deref()), target) {
        // Whoever names a configuration wants that one to count.
        (HubSelection::Any, Runner) if invocation.config_file.is_none() => {
            local_daemon(invocation).await
        }
        (HubSelection::Named { name, .. }, Runner | AnyHub) => {
            Remote::named(invocation.out, &name).map(Some)
        }
        (HubSelection::Named { name, by }, Store | Machine)
            if target == Store || by == SelectedBy::Flag =>
        {
            let text =
                format!("that works on this machine's own files, and not through the hub {name}");
            Err(CommandError::usage(text).try_this("the same with --hub none, or on that machine"))
        }
        (HubSelection::Any | HubSelection::Nobody, _)
        | (HubSelection::Named { .. }, Store | Machine | Unrouted) => Ok(None),
    }
}

/// The daemon on our data folder, if it has the store that we would use.
async fn local_daemon(invocation: &Invocation) -> Result<Option<Remote>> {
    let (home, here) = (data_home()?, here()?);
    let Some(mut remote) = Remote::behind_socket(invocation.out, &home, &here)? else {
        return Ok(None);
    };
    let config = invocation.config()?;
    config.must_be_trusted()?;
    let store = StoreUrl::named(&home, config.database_url.as_deref())?;
    // One that is about to end, does not answer, or is older than we are is not needed.
    let hub = tokio::time::timeout(HELLO, remote.hub()).await;
    let same = matches!(hub, Ok(Ok(hub)) if hub.store == store.mark());
    remote.config = Some(config.clone());
    Ok(same.then_some(remote))
}

/// Fails if the store's file is missing while a daemon on this data folder has it open: it was deleted, and a new
/// one in its place would hide that.
pub(crate) async fn must_not_be_deleted(out: Output, home: &Path, store: &StoreUrl) -> Result<()> {
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
    Err(CommandError::unavailable(text)
        .try_this("put the file back, or stop the daemon and start it again"))
}
