//! The `s3://` backend: a bucket on any server that speaks S3.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::{ClientOptions, ObjectStore as _, ObjectStoreExt as _, RetryConfig};

use super::objects::{Failed, ListedObject, ObjectName, PAGE};
use super::{BlobsConfig, without_password};
use crate::error::{Error, Result};

const CONNECT: Duration = Duration::from_secs(3);
const REQUEST: Duration = Duration::from_secs(10);
/// Default region. Self-hosted servers ignore it.
const REGION: &str = "us-east-1";

#[derive(Clone)]
pub(super) struct Bucket {
    at: Arc<AmazonS3>,
    name: String,
    prefix: Path,
    endpoint: Option<String>,
}

impl Bucket {
    /// Opens a bucket. `rest` is the URL after `s3://`.
    pub(super) fn new(rest: &str, config: &BlobsConfig) -> Result<Self> {
        let (name, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let allowed = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
        if name.is_empty() || !name.chars().all(allowed) {
            return refuse(format!(
                "`{}` does not name a bucket: write `s3://BUCKET` or `s3://BUCKET/PREFIX`",
                without_password(&config.url)
            ));
        }
        let Ok(prefix) = Path::parse(prefix.trim_end_matches('/')) else {
            return refuse(format!(
                "`{prefix}` cannot be the prefix of names in a bucket"
            ));
        };
        let keys = (&config.access_key_id, &config.secret_access_key);
        let (Some(id), Some(secret)) = keys else {
            return refuse(format!(
                "s3://{name} needs a key: set REJOIN_BLOBS_ACCESS_KEY_ID and REJOIN_BLOBS_SECRET_ACCESS_KEY"
            ));
        };
        // Selects the TLS provider. An error only means that one is selected already.
        drop(rustls::crypto::ring::default_provider().install_default());
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(name)
            .with_region(config.region.as_deref().unwrap_or(REGION))
            .with_access_key_id(id)
            .with_secret_access_key(secret)
            .with_client_options(
                ClientOptions::new()
                    .with_allow_http(config.allow_http)
                    .with_connect_timeout(CONNECT)
                    .with_timeout(REQUEST),
            )
            // A try is a whole call including its body. `objects.rs` counts tries.
            .with_retry(RetryConfig {
                max_retries: 0,
                ..RetryConfig::default()
            });
        if let Some(endpoint) = &config.endpoint {
            let plain = endpoint.starts_with("http://");
            if !plain && !endpoint.starts_with("https://") {
                return refuse(format!(
                    "the endpoint `{}` is not an address: it begins with https://",
                    without_password(endpoint)
                ));
            }
            if plain && !config.allow_http {
                return refuse(format!(
                    "the endpoint `{}` is not encrypted",
                    without_password(endpoint)
                ));
            }
            builder = builder.with_endpoint(endpoint.trim_end_matches('/'));
        }
        if let Some(token) = &config.session_token {
            builder = builder.with_token(token);
        }
        let at = match builder.build() {
            Ok(at) => Arc::new(at),
            Err(error) => return refuse(format!("s3://{name} cannot be used: {error}")),
        };
        let endpoint = config.endpoint.as_deref();
        let endpoint = endpoint.map(|at| at.trim_end_matches('/').to_owned());
        let name = name.to_owned();
        Ok(Self {
            at,
            name,
            prefix,
            endpoint,
        })
    }

    pub(super) fn beneath(&self, folder: &str) -> Self {
        let prefix = self.path(folder);
        Self {
            prefix,
            ..self.clone()
        }
    }

    pub(super) fn place(&self) -> String {
        let slash = if self.prefix.as_ref().is_empty() {
            ""
        } else {
            "/"
        };
        let place = format!("s3://{}{slash}{}", self.name, self.prefix);
        match &self.endpoint {
            Some(endpoint) => format!("{place} at {}", without_password(endpoint)),
            None => place,
        }
    }

    pub(super) async fn put(&self, key: &str, body: Bytes) -> Result<(), Failed> {
        let put = self.at.put(&self.path(key), body.into()).await;
        put.map(drop).map_err(|error| self.failed(&error))
    }

    pub(super) async fn get(&self, key: &str, at_most: usize) -> Result<Option<Vec<u8>>, Failed> {
        let Some(found) = self.there(self.at.get(&self.path(key)).await)? else {
            return Ok(None);
        };
        let size = found.meta.size;
        if size > at_most as u64 {
            // The length alone makes the object invalid, so its bytes are not read.
            return Ok(Some(vec![0; at_most + 1]));
        }
        let mut body = Vec::with_capacity(size as usize);
        let mut pieces = found.into_stream();
        while let Some(piece) = pieces.next().await {
            body.extend_from_slice(&piece.map_err(|error| self.failed(&error))?);
            if body.len() as u64 > size {
                break;
            }
        }
        if body.len() as u64 != size {
            return Err(Failed::Passing(format!(
                "{key} came with another length than promised"
            )));
        }
        Ok(Some(body))
    }

    pub(super) async fn size(&self, key: &str) -> Result<Option<u64>, Failed> {
        let found = self.there(self.at.head(&self.path(key)).await)?;
        Ok(found.map(|meta| meta.size))
    }

    pub(super) async fn delete(&self, key: &str) -> Result<(), Failed> {
        self.there(self.at.delete(&self.path(key)).await).map(drop)
    }

    pub(super) async fn list(&self, after: Option<&str>) -> Result<Vec<ListedObject>, Failed> {
        let under = self.path("chunks");
        let mut listing = match after {
            Some(after) => self.at.list_with_offset(Some(&under), &self.path(after)),
            None => self.at.list(Some(&under)),
        };
        let mut found = Vec::new();
        while let Some(object) = listing.next().await {
            let object = object.map_err(|error| self.failed(&error))?;
            let Some(key) = self.key_of(&object.location) else {
                continue;
            };
            if let Some(name) = ObjectName::of(&key) {
                let at = object.last_modified.timestamp_micros();
                found.push(ListedObject {
                    name,
                    bytes: object.size,
                    at,
                });
            }
            if found.len() == PAGE {
                break;
            }
        }
        Ok(found)
    }

    fn path(&self, key: &str) -> Path {
        self.prefix.parts().chain(Path::from(key).parts()).collect()
    }

    fn key_of(&self, path: &Path) -> Option<String> {
        let parts = path.prefix_match(&self.prefix)?;
        let parts: Vec<_> = parts.map(|part| part.as_ref().to_owned()).collect();
        Some(parts.join("/"))
    }

    /// Maps a missing chunk to `None`. A missing bucket stays an error.
    fn there<T>(&self, found: object_store::Result<T>) -> Result<Option<T>, Failed> {
        match found {
            Ok(found) => Ok(Some(found)),
            Err(error @ object_store::Error::NotFound { .. }) => {
                if cause(&error).contains("NoSuchBucket") {
                    Err(self.failed(&error))
                } else {
                    Ok(None)
                }
            }
            Err(error) => Err(self.failed(&error)),
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "foreign, and it may grow")]
    fn failed(&self, error: &object_store::Error) -> Failed {
        let cause = cause(error);
        let status = status(&cause);
        // Some calls report these only by the status code.
        let refused = match error {
            object_store::Error::PermissionDenied { .. }
            | object_store::Error::Unauthenticated { .. } => true,
            _ => status.is_some_and(|s| s.starts_with("403") || s.starts_with("401")),
        };
        let no_bucket = matches!(error, object_store::Error::NotFound { .. })
            || status.is_some_and(|s| s.starts_with("404"));
        if refused {
            Failed::Refused("it refuses the key that is configured".to_owned())
        } else if no_bucket {
            Failed::Refused(format!("there is no bucket {}", self.name))
        } else if let Some(status) = status {
            Failed::Passing(format!("it answers {status}"))
        } else {
            // Servers answer with whole pages; only a part of the first line is kept.
            let line = cause.lines().next().unwrap_or_default();
            Failed::Passing(line.chars().take(300).collect())
        }
    }
}

/// Returns the innermost cause, which describes the failure. The outer errors are details of the
/// library.
fn cause(error: &object_store::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// Extracts a status such as `503 Service Unavailable` from the cause.
fn status(cause: &str) -> Option<&str> {
    let (_, after) = cause.split_once("status code: ")?;
    after.split(':').next().map(str::trim)
}

fn refuse<T>(why: String) -> Result<T> {
    Err(Error::BlobsConfig(why))
}

impl std::fmt::Debug for Bucket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.place())
    }
}
