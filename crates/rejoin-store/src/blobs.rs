//! Storage for the bodies of chunks: in the database, or in an object store.

mod files;
mod objects;
mod s3;

pub(crate) use objects::PAGE;
pub use objects::{ListedObject, ObjectName, Objects};

use std::time::Duration;

use crate::error::{Error, Result};

/// Mark of rows whose chunk is in the database.
pub(crate) const IN_DATABASE: &str = "db";

#[derive(Debug, Clone)]
pub enum Blobs {
    /// In the database.
    Database,
    Objects(Objects),
}

/// Configuration, not tried yet.
#[derive(Clone, Default)]
pub struct BlobsConfig {
    /// `db:`, `file:PATH` or `s3://BUCKET[/PREFIX]`; empty: `db:`.
    pub url: String,
    pub endpoint: Option<String>,
    pub region: Option<String>,
    pub access_key_id: Option<String>,
    pub secret_access_key: Option<String>,
    pub session_token: Option<String>,
    /// True if an endpoint may begin with `http://`.
    pub allow_http: bool,
    /// Timeout of one try. `None`: ten seconds.
    pub patience: Option<Duration>,
}

impl Blobs {
    /// Parses the configuration without contacting the storage.
    pub fn open(config: &BlobsConfig) -> Result<Self> {
        let url = config.url.as_str();
        if matches!(url, "" | "db" | "db:") {
            return Ok(Self::Database);
        }
        if let Some(path) = url.strip_prefix("file:") {
            // `file:///x` is `file:/x`.
            let path = path.strip_prefix("//").unwrap_or(path);
            return Ok(Self::Objects(Objects::files(path, config)?));
        }
        if let Some(rest) = url.strip_prefix("s3://") {
            return Ok(Self::Objects(Objects::s3(rest, config)?));
        }
        Err(Error::BlobsConfig(format!(
            "`{}` is no place for chunks: it is `db:`, `file:/PATH` or `s3://BUCKET/PREFIX`",
            without_password(url)
        )))
    }

    /// Returns true if the storage is remote, so that every call may be slow or fail.
    pub fn is_remote(&self) -> bool {
        match self {
            Self::Database => false,
            Self::Objects(objects) => objects.is_remote(),
        }
    }

    /// Returns the location for display, without secrets.
    pub fn place(&self) -> String {
        match self {
            Self::Database => "the database".to_owned(),
            Self::Objects(objects) => objects.place(),
        }
    }

    /// Returns the mark of rows whose chunks are stored here: short, and equal for equal
    /// configurations.
    pub(crate) fn mark(&self) -> String {
        match self {
            Self::Database => IN_DATABASE.to_owned(),
            Self::Objects(objects) => {
                let digest = blake3::hash(objects.place().as_bytes());
                digest.to_hex()[..16].to_owned()
            }
        }
    }
}

/// Removes a password from a URL, in case a user put one there. rejoin never reads it from a URL.
fn without_password(url: &str) -> String {
    match (url.find("://"), url.rfind('@')) {
        (Some(scheme), Some(at)) if at > scheme => format!("{}…{}", &url[..scheme + 3], &url[at..]),
        _ => url.to_owned(),
    }
}

impl std::fmt::Debug for BlobsConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlobsConfig")
            .field("url", &without_password(&self.url))
            .field("endpoint", &self.endpoint)
            .field("region", &self.region)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
