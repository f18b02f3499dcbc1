//! How the daemon is reached, what it allows, and whom it tells.

use std::path::PathBuf;
use std::time::Duration;

use rejoin_core::PermissionMode;
use rejoin_runner::Warm;
use rejoin_web::Notify;

use super::{Loaded, of, or_default};
use crate::duration;
use rejoin_errors::{CommandError, Result};

#[derive(Debug, Clone)]
pub(crate) struct Serve {
    pub(crate) listen: String,
    pub(crate) roots: Vec<PathBuf>,
    /// Folder of the workflows that requests can name.
    pub(crate) workflows: Option<PathBuf>,
    pub(crate) max_permission: PermissionMode,
    pub(crate) allow_hosts: Vec<String>,
    pub(crate) public_url: Option<String>,
    pub(crate) max_running: usize,
    pub(crate) max_queued: u64,
    /// Limits of warm processes; none: no process outlives its turn.
    pub(crate) warm: Option<Warm>,
    notify: Notify,
}

impl Serve {
    pub(super) fn resolve(loaded: &Loaded) -> Result<Self> {
        let done_after: String = or_default(loaded, "notify.done_after")?;
        // `never` is longer than any turn takes.
        let done_after = duration::micros(&done_after).map_or(u64::MAX / 2, i64::unsigned_abs);
        Ok(Self {
            listen: or_default(loaded, "serve.listen")?,
            roots: or_default(loaded, "serve.roots")?,
            workflows: of(loaded, "workflows.dir")?,
            max_permission: or_default(loaded, "serve.max_permission")?,
            allow_hosts: or_default(loaded, "serve.allow_hosts")?,
            public_url: of(loaded, "serve.public_url")?,
            max_running: or_default(loaded, "serve.max_running")?,
            max_queued: or_default(loaded, "serve.max_queued")?,
            warm: warm(loaded)?,
            notify: Notify {
                on: or_default(loaded, "notify.on")?,
                done_after: Duration::from_micros(done_after),
                webhook: of(loaded, "notify.webhook")?,
                secret: of(loaded, "notify.secret")?,
                command: of(loaded, "notify.command")?.unwrap_or_default(),
                urls: or_default(loaded, "notify.urls")?,
            },
        })
    }

    /// Builds the notifier. Requires a secret, so that a receiver can verify the sender.
    pub(crate) fn notify(&self) -> Result<Notify> {
        let sends = self.notify.webhook.is_some() || !self.notify.urls.is_empty();
        if sends && self.notify.secret.is_none() {
            return Err(CommandError::config(
                "notify.webhook and notify.urls need notify.secret, with which requests are signed",
            )
            .try_this("openssl rand -base64 32, and put it behind whsec_ as notify.secret"));
        }
        if let Some(bad) = self.notify.bad_address() {
            let text = format!("notify.webhook and notify.urls are addresses, and `{bad}` is none");
            return Err(CommandError::config(text).try_this("https://hooks.example.org/rejoin"));
        }
        Ok(self.notify.clone())
    }
}

fn warm(loaded: &Loaded) -> Result<Option<Warm>> {
    let most: usize = or_default(loaded, "serve.warm")?;
    let rest: String = or_default(loaded, "serve.warm_for")?;
    let mib: u64 = or_default(loaded, "serve.warm_mib")?;
    let rest = duration::micros(&rest).map(|micros| Duration::from_micros(micros.unsigned_abs()));
    Ok(rest.filter(|_| most > 0).map(|rest| Warm {
        most,
        rest,
        bytes: mib << 20,
    }))
}
