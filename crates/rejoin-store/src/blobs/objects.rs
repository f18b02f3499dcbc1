//! An object per copy of a chunk, named after its store, the chunk and the copy. A swept copy
//! never gets its name again, so a late deletion cannot hit a new copy. Every call is bounded: a
//! few tries, each with a timeout. Bytes read are untrusted until the sealer has opened them.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{BlobsConfig, files, s3};
use rejoin_core::hex;

use crate::error::{Error, Result};
use crate::seal::LONGEST_SEALED;

/// Timeout of one try.
const TRY: Duration = Duration::from_secs(10);
const TRIES: u32 = 3;
/// Delay before the second try; twice as long before the third.
const PAUSE: Duration = Duration::from_millis(100);
/// Names per page of a listing.
pub(crate) const PAGE: usize = 1000;

/// Chunk storage outside the database. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Objects {
    at: At,
    patience: Duration,
}

#[derive(Debug, Clone)]
enum At {
    Files(PathBuf),
    S3(s3::Bucket),
}

/// A copy of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    pub chunk: [u8; 32],
    /// Random number chosen by the writer.
    pub copy: u32,
}

/// An object found in a listing, of any origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedObject {
    pub name: ObjectName,
    pub bytes: u64,
    /// Time of writing in microseconds, by the storage's clock.
    pub at: i64,
}

/// Failure of one try.
#[derive(Debug)]
pub(super) enum Failed {
    /// The storage refuses; another try does not help.
    Refused(String),
    /// Unreachable, late, busy or cut off; another try may help.
    Passing(String),
}

impl Objects {
    pub(super) fn files(path: &str, config: &BlobsConfig) -> Result<Self> {
        // Normalises slashes.
        let path: PathBuf = Path::new(path).components().collect();
        if !path.is_absolute() {
            return Err(Error::BlobsConfig(format!(
                "`file:{}` must name a folder by its whole path, as in `file:/var/lib/rejoin/chunks`",
                path.display()
            )));
        }
        Ok(Self::new(At::Files(path), config))
    }

    pub(super) fn s3(rest: &str, config: &BlobsConfig) -> Result<Self> {
        let bucket = s3::Bucket::new(rest, config)?;
        Ok(Self::new(At::S3(bucket), config))
    }

    fn new(at: At, config: &BlobsConfig) -> Self {
        let patience = config.patience.unwrap_or(TRY);
        Self { at, patience }
    }

    /// Returns the part that belongs to one store. Nothing else is listed or deleted there.
    #[must_use]
    pub fn of_store(&self, store: uuid::Uuid) -> Self {
        let folder = store.simple().to_string();
        let at = match &self.at {
            At::Files(root) => At::Files(root.join(folder)),
            At::S3(bucket) => At::S3(bucket.beneath(&folder)),
        };
        let patience = self.patience;
        Self { at, patience }
    }

    pub fn is_remote(&self) -> bool {
        matches!(self.at, At::S3(_))
    }

    /// Returns the location for display, without secrets.
    pub fn place(&self) -> String {
        match &self.at {
            At::Files(folder) => format!("file:{}", folder.display()),
            At::S3(bucket) => bucket.place(),
        }
    }

    /// Stores an object durably. Storing the same object twice is allowed.
    pub async fn put(&self, name: &ObjectName, body: Vec<u8>) -> Result<()> {
        let key = name.key();
        let body = bytes::Bytes::from(body);
        let put = || async {
            match &self.at {
                At::Files(folder) => {
                    let (path, body) = (folder.join(&key), body.clone());
                    files::blocking(move || files::put(&path, &body)).await
                }
                At::S3(bucket) => bucket.put(&key, body.clone()).await,
            }
        };
        self.bounded("written", put).await
    }

    /// Reads an object. `None` if it does not exist.
    pub async fn get(&self, name: &ObjectName) -> Result<Option<Vec<u8>>> {
        let key = name.key();
        let get = || async {
            match &self.at {
                At::Files(folder) => {
                    let path = folder.join(&key);
                    files::blocking(move || files::get(&path, LONGEST_SEALED)).await
                }
                At::S3(bucket) => bucket.get(&key, LONGEST_SEALED).await,
            }
        };
        self.bounded("read", get).await
    }

    /// Removes files that writers left unfinished before that time, in microseconds.
    pub async fn tidy(&self, before: i64) -> Result<()> {
        let At::Files(folder) = &self.at else {
            return Ok(());
        };
        let tidy = || {
            let folder = folder.clone();
            files::blocking(move || files::tidy(&folder, before))
        };
        self.bounded("deleted", tidy).await
    }

    /// Returns the length of an object without reading it. `None` if it does not exist.
    pub async fn size(&self, name: &ObjectName) -> Result<Option<u64>> {
        let key = name.key();
        let size = || async {
            match &self.at {
                At::Files(folder) => {
                    let path = folder.join(&key);
                    files::blocking(move || files::size(&path)).await
                }
                At::S3(bucket) => bucket.size(&key).await,
            }
        };
        self.bounded("read", size).await
    }

    /// Deletes an object. Succeeds if it does not exist.
    pub async fn delete(&self, name: &ObjectName) -> Result<()> {
        let key = name.key();
        let delete = || async {
            match &self.at {
                At::Files(folder) => {
                    let path = folder.join(&key);
                    files::blocking(move || files::delete(&path)).await
                }
                At::S3(bucket) => bucket.delete(&key).await,
            }
        };
        self.bounded("deleted", delete).await
    }

    /// Lists up to a thousand objects after that name, in the order of names. Fewer means that
    /// there are no more. Skips objects that are not named like a chunk: they are not ours.
    pub async fn list(&self, after: Option<&ObjectName>) -> Result<Vec<ListedObject>> {
        let after = after.map(ObjectName::key);
        let list = || async {
            match &self.at {
                At::Files(folder) => {
                    let (folder, after) = (folder.clone(), after.clone());
                    files::blocking(move || files::list(&folder, after.as_deref())).await
                }
                At::S3(bucket) => bucket.list(after.as_deref()).await,
            }
        };
        self.bounded("listed", list).await
    }

    async fn bounded<T, F>(&self, what: &'static str, call: impl Fn() -> F) -> Result<T>
    where
        F: Future<Output = Result<T, Failed>>,
    {
        let mut pause = PAUSE;
        let mut tries = 0;
        loop {
            tries += 1;
            let failed = match tokio::time::timeout(self.patience, call()).await {
                Ok(Ok(done)) => return Ok(done),
                Ok(Err(failed)) => failed,
                Err(_) => Failed::Passing(format!("no answer within {:?}", self.patience)),
            };
            let why = match failed {
                Failed::Passing(_) if tries < TRIES => {
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                    continue;
                }
                Failed::Passing(why) => format!("{why} ({TRIES} tries)"),
                Failed::Refused(why) => why,
            };
            let place = self.place();
            return Err(Error::Blobs { place, what, why });
        }
    }
}

impl ObjectName {
    /// Creates a name for a new copy.
    pub fn new(chunk: [u8; 32]) -> Result<Self> {
        let copy = getrandom::u32().map_err(|error| Error::Read(error.into()))?;
        Ok(Self { chunk, copy })
    }

    /// Formats the key: `chunks/ab/abcdef…-COPY`.
    fn key(&self) -> String {
        let chunk = hex(&self.chunk);
        format!("chunks/{}/{chunk}-{:08x}", &chunk[..2], self.copy)
    }

    /// Parses a key. `None` if the object is not one of ours.
    pub(super) fn of(key: &str) -> Option<Self> {
        let (chunk, copy) = key.get(10..)?.split_once('-')?;
        let name = Self {
            chunk: *blake3::Hash::from_hex(chunk).ok()?.as_bytes(),
            copy: u32::from_str_radix(copy, 16).ok()?,
        };
        (name.key() == key).then_some(name)
    }
}
