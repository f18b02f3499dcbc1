//! Tests of the configuration and the folder backend. Tests with servers are in `tests/` of the
//! binary.

use std::os::unix::fs::PermissionsExt as _;

use super::*;
use crate::Sealer;

fn at(url: &str) -> BlobsConfig {
    BlobsConfig {
        url: url.to_owned(),
        ..BlobsConfig::default()
    }
}

fn with_key(url: &str, endpoint: &str) -> BlobsConfig {
    BlobsConfig {
        endpoint: Some(endpoint.to_owned()),
        access_key_id: Some("id".to_owned()),
        secret_access_key: Some("hunter2".to_owned()),
        ..at(url)
    }
}

#[track_caller]
fn refused(config: &BlobsConfig) -> String {
    match Blobs::open(config) {
        Err(Error::BlobsConfig(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn places() {
    for url in ["", "db", "db:"] {
        assert!(
            matches!(Blobs::open(&at(url)), Ok(Blobs::Database)),
            "{url}"
        );
    }
    for url in ["file:/x/y", "file:///x/y"] {
        let blobs = Blobs::open(&at(url)).unwrap();
        assert_eq!(blobs.place(), "file:/x/y");
        assert!(!blobs.is_remote());
    }
    let blobs = Blobs::open(&with_key("s3://bucket/a/b/", "https://localhost:1")).unwrap();
    assert_eq!(blobs.place(), "s3://bucket/a/b at https://localhost:1");
    assert!(blobs.is_remote());
}

#[test]
fn what_cannot_be_a_place_is_refused() {
    for url in ["ftp://x", "/x", "s3:x", "postgres://me:hunter2@x/y"] {
        let why = refused(&at(url));
        assert!(
            why.contains("is no place for chunks") && !why.contains("hunter2"),
            "{why}"
        );
    }
    assert!(refused(&at("file:chunks")).contains("whole path"));
    for url in ["s3://", "s3:///x", "s3://a b/x", "s3://me:hunter2@bucket"] {
        let why = refused(&with_key(url, "https://x"));
        assert!(
            why.contains("does not name a bucket") && !why.contains("hunter2"),
            "{why}"
        );
    }
    assert!(refused(&with_key("s3://b/x//y", "https://x")).contains("prefix"));
    assert!(refused(&at("s3://bucket")).contains("REJOIN_BLOBS_ACCESS_KEY_ID"));
    assert!(refused(&with_key("s3://b", "localhost:1")).contains("https://"));
    assert!(refused(&with_key("s3://b", "http://localhost:1")).contains("not encrypted"));
}

#[test]
fn no_secret_is_shown() {
    let config = with_key("s3://bucket", "https://localhost:1");
    let blobs = Blobs::open(&config).unwrap();
    let shown = format!("{config:?} {blobs:?} {}", blobs.place());
    assert!(!shown.contains("hunter2"), "{shown}");
}

fn named(chunk: [u8; 32]) -> ObjectName {
    ObjectName { chunk, copy: 42 }
}

fn folder() -> (tempfile::TempDir, Objects) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("deep/down");
    (
        folder,
        Objects::files(root.to_str().unwrap(), &BlobsConfig::default()).unwrap(),
    )
}

#[tokio::test]
async fn a_folder_keeps_what_was_put() {
    let (folder, objects) = folder();
    let sealer = Sealer::plain();
    let name = named(sealer.name(b"a chunk"));
    assert_eq!(objects.list(None).await.unwrap(), []);
    assert_eq!(objects.get(&name).await.unwrap(), None);
    assert_eq!(objects.size(&name).await.unwrap(), None);
    objects.delete(&name).await.unwrap();

    let sealed = sealer.seal(b"a chunk");
    for _ in 0..2 {
        objects.put(&name, sealed.clone()).await.unwrap();
    }
    assert_eq!(objects.get(&name).await.unwrap(), Some(sealed.clone()));
    assert_eq!(
        objects.size(&name).await.unwrap(),
        Some(sealed.len() as u64)
    );
    let hex = rejoin_core::hex(&name.chunk) + "-0000002a";
    let path = folder
        .path()
        .join("deep/down/chunks")
        .join(&hex[..2])
        .join(&hex);
    for (path, mode) in [
        (path.as_path(), 0o600),
        (path.parent().unwrap(), 0o700),
        (&folder.path().join("deep"), 0o700),
    ] {
        let found = fs_err::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(found, mode, "{}", path.display());
    }
    let left: Vec<_> = fs_err::read_dir(path.parent().unwrap()).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing unfinished");

    objects.delete(&name).await.unwrap();
    assert_eq!(objects.get(&name).await.unwrap(), None);
}

#[tokio::test]
async fn a_folder_is_listed_in_pages() {
    let (folder, objects) = folder();
    let mut names = Vec::new();
    for number in 0..1203_u32 {
        let name = named(*blake3::hash(&number.to_le_bytes()).as_bytes());
        objects.put(&name, vec![1]).await.unwrap();
        names.push(name);
    }
    names.sort_unstable();
    // Not ours: never listed, so never removed.
    let chunks = folder.path().join("deep/down/chunks");
    fs_err::write(chunks.join("README"), "x").unwrap();
    fs_err::write(chunks.join("ab/notes.txt"), "x").unwrap();
    let moved = chunks
        .join("ab")
        .join(rejoin_core::hex(&[0; 32]) + "-0000002a");
    fs_err::write(moved, "x").unwrap();

    let first = objects.list(None).await.unwrap();
    let second = objects.list(first.last().map(|l| &l.name)).await.unwrap();
    assert_eq!((first.len(), second.len()), (1000, 203));
    let listed: Vec<_> = first.iter().chain(&second).map(|l| l.name).collect();
    assert_eq!(listed, names);
    assert!(first[0].at > 0 && first[0].bytes == 1);
}

#[tokio::test]
async fn what_no_chunk_can_be_is_not_read_to_its_end() {
    let (folder, objects) = folder();
    let name = named([0xab; 32]);
    objects.put(&name, vec![1]).await.unwrap();
    let hex = rejoin_core::hex(&name.chunk) + "-0000002a";
    let path = folder.path().join("deep/down/chunks/ab").join(hex);
    fs_err::File::create(&path)
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    let body = objects.get(&name).await.unwrap().unwrap();
    assert_eq!(body.len(), crate::seal::LONGEST_SEALED + 1);
    let opened = Sealer::plain().open(&name.chunk, 100, &body);
    assert!(opened.unwrap_err().to_string().contains("longer than any"));
}

/// Other names in the folder are not ours.
#[test]
fn only_our_names_are_names() {
    let hex = "ab".repeat(32);
    let name = ObjectName::of(&format!("chunks/ab/{hex}-0000002a"));
    assert_eq!(name, Some(named([0xab; 32])));
    let upper = hex.to_uppercase();
    for other in [
        "",
        "chunks/ab/x",
        &format!("chunks/ab/{hex}"),
        &format!("chunks/ac/{hex}-0000002a"),
        &format!("chunks/ab/{hex}-2a"),
        &format!("chunks/AB/{upper}-0000002a"),
        &format!("chunks/ab/{hex}-0000002a.tmp"),
        &format!("chunkü/ab/{hex}-0000002a"),
    ] {
        assert_eq!(ObjectName::of(other), None, "{other}");
    }
}

#[tokio::test]
async fn a_folder_that_cannot_be_made_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs_err::write(&file, "x").unwrap();
    let objects = Objects::files(file.to_str().unwrap(), &BlobsConfig::default()).unwrap();
    let error = objects.put(&named([1; 32]), vec![1]).await.unwrap_err();
    assert!(
        matches!(
            &error,
            Error::Blobs {
                what: "written",
                ..
            }
        ),
        "{error:?}"
    );
    assert!(error.to_string().contains("file:"), "{error}");
}
