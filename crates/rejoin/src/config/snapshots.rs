//! `[snapshots]` and `[blobs]`: what is kept, where, for how long, and who can read it.

use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rejoin_store::{Blobs, BlobsConfig, Retention, Sealer, Store, Vault};

use super::kind::is_key;
use super::{Loaded, of, or_default};
use crate::duration;
use rejoin_errors::{CommandError, Result};

/// More keys than anybody has had.
const LONGEST_KEY_FILE: u64 = 64 * 1024;

/// No secret of it is ever shown: it has no `Debug`.
#[derive(Clone)]
pub(crate) struct Snapshots {
    pub(crate) blobs: BlobsConfig,
    pub(crate) keep: Retention,
    pub(crate) enabled: bool,
    key: Option<String>,
    key_file: Option<PathBuf>,
}

impl Snapshots {
    pub(super) fn resolve(loaded: &Loaded) -> Result<Self> {
        let aws = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let span =
            |key| Ok::<_, CommandError>(duration::micros(&or_default::<String>(loaded, key)?));
        Ok(Self {
            blobs: blobs(loaded, aws)?,
            keep: Retention {
                latest: span("snapshots.keep_latest")?,
                older: span("snapshots.keep_older")?,
            },
            enabled: or_default(loaded, "snapshots.enabled")?,
            key: of(loaded, "snapshots.key")?,
            key_file: key_file(loaded),
        })
    }

    /// In the database, whatever else is said: it is a store that travels.
    pub(crate) fn travelling(self) -> Self {
        Self {
            blobs: BlobsConfig {
                url: "db:".into(),
                ..BlobsConfig::default()
            },
            enabled: true,
            key: None,
            key_file: None,
            ..self
        }
    }

    /// Opens the vault of the snapshots; none: snapshots are switched off.
    pub(crate) fn vault(&self, store: &Store) -> Result<Option<Vault>> {
        if !self.enabled {
            return Ok(None);
        }
        let blobs = Blobs::open(&self.blobs)?;
        Ok(Some(Vault::new(store.clone(), blobs, self.sealer()?)))
    }

    /// Reads the key file, if there is one.
    pub(crate) fn sealer(&self) -> Result<Sealer> {
        let keys = match (&self.key, &self.key_file) {
            (None, None) => return Ok(Sealer::plain()),
            (Some(_), Some(_)) => {
                let both = "both snapshots.key and snapshots.key_file are set, and only one of them can be meant";
                return Err(CommandError::config(both).try_this("rejoin config show"));
            }
            (Some(key), None) => vec![bytes(key)],
            (None, Some(path)) => read(path)?,
        };
        Ok(match keys.split_first() {
            Some((current, older)) => Sealer::with_keys(current, older),
            None => Sealer::plain(),
        })
    }
}

/// A pair of keys comes from one place: halves of two would be refused by any server.
fn blobs(loaded: &Loaded, aws: impl Fn(&str) -> Option<String>) -> Result<BlobsConfig> {
    let mut config = BlobsConfig {
        url: or_default(loaded, "blobs.url")?,
        endpoint: of(loaded, "blobs.endpoint")?,
        region: of(loaded, "blobs.region")?,
        access_key_id: of(loaded, "blobs.access_key_id")?,
        secret_access_key: of(loaded, "blobs.secret_access_key")?,
        ..BlobsConfig::default()
    };
    if config.access_key_id.is_none() && config.secret_access_key.is_none() {
        config.access_key_id = aws("AWS_ACCESS_KEY_ID");
        config.secret_access_key = aws("AWS_SECRET_ACCESS_KEY");
        config.session_token = aws("AWS_SESSION_TOKEN");
    }
    config.region = config.region.or_else(|| aws("AWS_REGION"));
    config.endpoint = config.endpoint.or_else(|| aws("AWS_ENDPOINT_URL"));
    // Who writes `http://` means it: a server on the same machine, or behind a tunnel.
    config.allow_http = config
        .endpoint
        .as_ref()
        .is_some_and(|e| e.starts_with("http://"));
    Ok(config)
}

fn key_file(loaded: &Loaded) -> Option<PathBuf> {
    let setting = loaded.settings.get("snapshots.key_file")?;
    let path = setting.beside_its_file()?;
    let home = || std::env::var_os("HOME").map(PathBuf::from);
    match path.strip_prefix("~/") {
        Some(rest) => Some(home()?.join(rest)),
        None => Some(PathBuf::from(path)),
    }
}

fn read(path: &Path) -> Result<Vec<[u8; 32]>> {
    let shown = path.display();
    let wrong = |why: String| CommandError::config(format!("the key file {shown} {why}"));
    let unreadable = |error: std::io::Error| {
        wrong(format!("cannot be read: {}", error.kind())).try_this("rejoin config show")
    };
    let file = fs_err::File::open(path).map_err(unreadable)?;
    let meta = file.metadata().map_err(unreadable)?;
    if !meta.is_file() {
        return Err(wrong("is no file".into()).try_this("rejoin config show"));
    }
    if meta.mode() & 0o077 != 0 {
        return Err(wrong("can be read by others".into()).try_this(format!("chmod 600 {shown}")));
    }
    let mut text = String::new();
    file.take(LONGEST_KEY_FILE)
        .read_to_string(&mut text)
        .map_err(unreadable)?;
    let mut keys = vec![];
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if !is_key(line) {
            let number = number + 1;
            let why = format!("has no key in line {number}: one is 64 hex letters");
            return Err(wrong(why).try_this("openssl rand -hex 32"));
        }
        keys.push(bytes(line));
    }
    if keys.is_empty() {
        return Err(
            wrong("holds no key".into()).try_this(format!("openssl rand -hex 32 > {shown}"))
        );
    }
    Ok(keys)
}

/// Decodes 64 hex letters that were checked before.
fn bytes(key: &str) -> [u8; 32] {
    let digit = |c: u8| (c as char).to_digit(16).unwrap_or_default() as u8;
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(key.as_bytes().chunks(2)) {
        *byte = pair.iter().fold(0, |byte, c| byte << 4 | digit(*c));
    }
    bytes
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn what_is_not_said_is_taken_from_the_usual_variables() {
        let named = |name: &str| Some(format!("<{name}>"));
        let blobs = blobs(&Loaded::default(), named).unwrap();
        assert_eq!(blobs.url, "db:");
        assert_eq!(blobs.access_key_id, named("AWS_ACCESS_KEY_ID"));
        assert_eq!(blobs.secret_access_key, named("AWS_SECRET_ACCESS_KEY"));
        assert_eq!(blobs.session_token, named("AWS_SESSION_TOKEN"));
        assert_eq!(blobs.region, named("AWS_REGION"));
        assert_eq!(blobs.endpoint, named("AWS_ENDPOINT_URL"));
        assert!(!blobs.allow_http);
    }

    fn key_file(text: &str, mode: u32) -> Result<Vec<[u8; 32]>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        fs_err::write(&path, text).unwrap();
        fs_err::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        read(&path)
    }

    #[test]
    fn a_key_file_holds_the_current_key_and_older_ones() {
        let text = format!(
            "# since May\n{}\n\n  {}\n",
            "0a".repeat(32),
            "FF".repeat(32)
        );
        assert_eq!(key_file(&text, 0o600).unwrap(), [[0x0a; 32], [0xff; 32]]);
    }

    #[test]
    fn a_key_file_that_cannot_be_used_is_said_without_showing_it() {
        let good = "0a".repeat(32);
        for (text, mode, why) in [
            (good.as_str(), 0o644, "can be read by others"),
            (&good, 0o640, "can be read by others"),
            ("", 0o600, "holds no key"),
            (
                "hunter2",
                0o600,
                "has no key in line 1: one is 64 hex letters",
            ),
            (&format!("{good}\n{good}0"), 0o600, "has no key in line 2"),
        ] {
            let failure = key_file(text, mode).unwrap_err();
            assert!(failure.message.contains(why), "{}", failure.message);
            assert!(!failure.message.contains("hunter2"));
            assert_eq!(failure.exit, 2);
        }
        let folder = tempfile::tempdir().unwrap();
        let nowhere = folder.path().join("no/such/file");
        let failure = read(&nowhere).unwrap_err();
        assert!(
            failure.message.contains("no/such/file cannot be read"),
            "{}",
            failure.message
        );
    }
}
