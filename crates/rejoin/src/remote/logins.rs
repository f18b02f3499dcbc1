//! Hubs one has logged in to: a file for the user alone, beside the configuration.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::address;
use crate::config::user_folder;
use crate::portable::AtomicFile;
use rejoin_errors::{CommandError, Result};

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Logins {
    pub(crate) hubs: BTreeMap<String, Login>,
}

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Login {
    pub(crate) url: String,
    pub(crate) token: String,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl Logins {
    pub(crate) fn load() -> Result<Self> {
        let path = path()?;
        let text = match fs_err::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(e) => return Err(CommandError::unavailable(e.to_string())),
        };
        toml::from_str(&text).map_err(|_| {
            CommandError::config(format!("{} is not what rejoin wrote", path.display()))
                .try_this(format!("rm {}; then rejoin login URL", path.display()))
        })
    }

    pub(crate) fn save(&self) -> Result<()> {
        let path = path()?;
        let failed = |e: std::io::Error| {
            CommandError::unavailable(format!("{} cannot be written: {e}", path.display()))
                .try_this("export XDG_CONFIG_HOME=/a/folder/you/can/write")
        };
        let text = toml::to_string(self).map_err(|e| CommandError::unavailable(e.to_string()))?;
        let mut folder = std::fs::DirBuilder::new();
        let parent = path.parent().unwrap_or(&path);
        folder
            .recursive(true)
            .mode(0o700)
            .create(parent)
            .map_err(failed)?;
        let mut file = AtomicFile::begin(&path).map_err(failed)?;
        file.write_all(text.as_bytes()).map_err(failed)?;
        file.keep().map_err(failed)
    }

    /// The one for an address.
    pub(crate) fn at(&self, url: &str) -> Option<&Login> {
        let wanted = address(url).ok()?;
        let same = |login: &&Login| address(&login.url).is_ok_and(|url| url == wanted);
        self.hubs.values().find(same)
    }
}

fn path() -> Result<PathBuf> {
    let folder = user_folder().ok_or_else(|| {
        CommandError::usage("neither XDG_CONFIG_HOME nor HOME is set")
            .try_this("export XDG_CONFIG_HOME=/some/folder")
    })?;
    Ok(folder.join("hubs.toml"))
}

pub(crate) fn token_variable() -> Option<String> {
    let token = std::env::var("REJOIN_TOKEN").ok();
    token.filter(|token| !token.is_empty())
}
