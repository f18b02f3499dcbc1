//! One object per chunk, named after it. Every call has an end: a few tries, each within its time.
//! What comes back is foreign until the sealer opened it.

use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

use super::{BlobsConfig, files, s3};
use crate::error::{Error, Result};
use crate::seal::{LONGEST_SEALED, hex};

/// How long one try may take.
const TRY: Duration = Duration::from_secs(10);
const TRIES: u32 = 3;
/// Before the second try; twice that before the third.
const PAUSE: Duration = Duration::from_millis(100);
/// Names per page of a listing.
pub(super) const PAGE: usize = 1000;

/// Chunks outside the database. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Objects(At);

#[derive(Debug, Clone)]
enum At {
    Files(PathBuf),
    S3(s3::Bucket),
}

/// An object that was found, whoever put it there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub name: [u8; 32],
    pub bytes: u64,
    /// When it was written, in milliseconds, by the clock of where it lies.
    pub at: i64,
}

/// Why one try failed, and whether another may help.
#[derive(Debug)]
pub(super) enum Failed {
    /// The place refuses: trying again changes nothing.
    Refused(String),
    /// Gone, late, busy, cut off.
    Passing(String),
}

impl Objects {
    pub(super) fn files(path: &str) -> Result<Self> {
        let path = PathBuf::from(path);
        if !path.is_absolute() {
            return Err(Error::BlobsConfig(format!(
                "`file:{}` must name a folder by its whole path, as in `file:/var/lib/rejoin/chunks`",
                path.display()
            )));
        }
        Ok(Self(At::Files(path)))
    }

    pub(super) fn s3(rest: &str, config: &BlobsConfig) -> Result<Self> {
        s3::Bucket::new(rest, config).map(|bucket| Self(At::S3(bucket)))
    }

    pub fn is_remote(&self) -> bool {
        matches!(self.0, At::S3(_))
    }

    /// For people; holds no secret.
    pub fn place(&self) -> String {
        match &self.0 {
            At::Files(folder) => format!("file:{}", folder.display()),
            At::S3(bucket) => bucket.place(),
        }
    }

    /// When this returns it is there to stay. Putting the same twice is fine.
    pub async fn put(&self, name: &[u8; 32], body: Vec<u8>) -> Result<()> {
        let key = key(name);
        let body = bytes::Bytes::from(body);
        let put = || async {
            match &self.0 {
                At::Files(folder) => {
                    let (path, body) = (folder.join(&key), body.clone());
                    files::blocking(move || files::put(&path, &body)).await
                }
                At::S3(bucket) => bucket.put(&key, body.clone()).await,
            }
        };
        self.bounded("written", put).await
    }

    /// None: there is no such object.
    pub async fn get(&self, name: &[u8; 32]) -> Result<Option<Vec<u8>>> {
        let key = key(name);
        let get = || async {
            match &self.0 {
                At::Files(folder) => {
                    let path = folder.join(&key);
                    files::blocking(move || files::get(&path, LONGEST_SEALED)).await
                }
                At::S3(bucket) => bucket.get(&key, LONGEST_SEALED).await,
            }
        };
        self.bounded("read", get).await
    }

    /// Whether it is there, and how long: what can be told without reading it.
    pub async fn size(&self, name: &[u8; 32]) -> Result<Option<u64>> {
        let key = key(name);
        let size = || async {
            match &self.0 {
                At::Files(folder) => {
                    let path = folder.join(&key);
                    files::blocking(move || files::size(&path)).await
                }
                At::S3(bucket) => bucket.size(&key).await,
            }
        };
        self.bounded("read", size).await
    }

    /// Afterwards it is not there, whether or not it was.
    pub async fn delete(&self, name: &[u8; 32]) -> Result<()> {
        let key = key(name);
        let delete = || async {
            match &self.0 {
                At::Files(folder) => {
                    let path = folder.join(&key);
                    files::blocking(move || files::delete(&path)).await
                }
                At::S3(bucket) => bucket.delete(&key).await,
            }
        };
        self.bounded("deleted", delete).await
    }

    /// The next thousand after that name, in the order of their names; fewer: there are no more.
    /// What is not named like a chunk is not ours and not listed.
    pub async fn list(&self, after: Option<&[u8; 32]>) -> Result<Vec<Listed>> {
        let after = after.map(key);
        let list = || async {
            match &self.0 {
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
            let failed = match tokio::time::timeout(TRY, call()).await {
                Ok(Ok(done)) => return Ok(done),
                Ok(Err(failed)) => failed,
                Err(_) => Failed::Passing(format!("no answer within {} s", TRY.as_secs())),
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

/// `chunks/ab/abcdef…`
fn key(name: &[u8; 32]) -> String {
    let name = hex(name);
    format!("chunks/{}/{name}", &name[..2])
}

/// The name that a key stands for; none: not one of ours.
pub(super) fn name_in(key: &str) -> Option<[u8; 32]> {
    let (folder, name) = key.strip_prefix("chunks/")?.split_once('/')?;
    let name = un_hex(name).filter(|_| name.starts_with(folder) && folder.len() == 2)?;
    Some(name)
}

fn un_hex(text: &str) -> Option<[u8; 32]> {
    let digit = |c: u8| match c {
        b'0'..=b'9' => Some(c - b'0'),
        b'a'..=b'f' => Some(c - b'a' + 10),
        _ => None,
    };
    let text: &[u8; 64] = text.as_bytes().try_into().ok()?;
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}
