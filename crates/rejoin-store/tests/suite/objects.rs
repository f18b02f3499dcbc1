//! Chunks in a real S3 server, through a network that fails: what comes back is what was put, or an
//! error that says why. (B-24)

use std::time::Duration;

use rejoin_store::{Blobs, BlobsConfig, Error, ObjectName, Objects, Sealer, Unsealed};
use rejoin_testkit::{Fault, Faulty, Garage, S3, free_port};

/// Long enough for a server on loopback that is busy, short enough for a test that waits for it.
const PATIENCE: Duration = Duration::from_secs(2);

fn objects(s3: &S3, endpoint: &str) -> Objects {
    let [(_, url), (_, endpoint), (_, id), (_, secret)] = s3.variables(endpoint);
    open(&BlobsConfig {
        url,
        endpoint: Some(endpoint),
        access_key_id: Some(id),
        secret_access_key: Some(secret),
        allow_http: true,
        patience: Some(PATIENCE),
        ..BlobsConfig::default()
    })
}

fn open(config: &BlobsConfig) -> Objects {
    match Blobs::open(config).unwrap() {
        Blobs::Objects(objects) => objects,
        Blobs::Database => panic!(),
    }
}

fn chunk(n: u32) -> (ObjectName, Vec<u8>, Vec<u8>) {
    let plain: Vec<u8> = (0..2_000_u32).flat_map(|i| (i * n).to_le_bytes()).collect();
    let sealer = Sealer::plain();
    let name = ObjectName::new(sealer.name(&plain)).unwrap();
    (name, sealer.seal(&plain), plain)
}

#[tokio::test]
async fn a_bucket_keeps_what_was_put() {
    let Some(s3) = S3::start() else { return };
    let objects = objects(&s3, &s3.endpoint);
    let (name, sealed, _) = chunk(1);
    assert_eq!(objects.list(None).await.unwrap(), []);
    assert_eq!(objects.get(&name).await.unwrap(), None);
    assert_eq!(objects.size(&name).await.unwrap(), None);
    objects.delete(&name).await.unwrap();
    for _ in 0..2 {
        objects.put(&name, sealed.clone()).await.unwrap();
    }
    assert_eq!(objects.get(&name).await.unwrap(), Some(sealed.clone()));
    assert_eq!(
        objects.size(&name).await.unwrap(),
        Some(sealed.len() as u64)
    );
    let (other, ..) = chunk(2);
    objects.put(&other, vec![1]).await.unwrap();
    let listed = objects.list(None).await.unwrap();
    let mut both = [name, other];
    both.sort_unstable();
    assert_eq!(listed.iter().map(|l| l.name).collect::<Vec<_>>(), both);
    assert!(listed.iter().all(|l| l.at > 1_600_000_000_000_000));
    let rest = objects.list(Some(&both[0])).await.unwrap();
    assert_eq!(rest.iter().map(|l| l.name).collect::<Vec<_>>(), [both[1]]);
    objects.delete(&name).await.unwrap();
    assert_eq!(objects.get(&name).await.unwrap(), None);
    assert_eq!(s3.bodies().len(), 1);
}

/// Two failures in a row, of any kind: the third try is the one that counts.
#[tokio::test]
async fn what_fails_twice_is_tried_a_third_time() {
    let Some(s3) = S3::start() else { return };
    let faulty = Faulty::before(&s3.endpoint);
    let objects = objects(&s3, &faulty.endpoint);
    let kinds = [
        Fault::Refuse,
        Fault::LoseAnswer,
        Fault::Status(429),
        Fault::Status(503),
        Fault::Status(500),
        Fault::Truncate,
        Fault::Stall,
    ];
    for (n, fault) in kinds.into_iter().enumerate() {
        let (name, sealed, plain) = chunk(n as u32 + 1);
        // A put whose answer is cut off has no body to miss: it counts as done.
        let twice = [fault, fault];
        faulty.then(&twice);
        objects.put(&name, sealed).await.unwrap();
        faulty.clear();
        faulty.then(&twice);
        let got = objects.get(&name).await.unwrap().unwrap();
        let opened = Sealer::plain().open(&name.chunk, plain.len() as u32, &got);
        assert_eq!(opened.unwrap(), plain, "{fault:?}");
        faulty.clear();
        faulty.then(&twice);
        objects.delete(&name).await.unwrap();
        faulty.clear();
        assert_eq!(objects.get(&name).await.unwrap(), None, "{fault:?}");
    }
}

/// What keeps failing is an error that says where and why.
#[tokio::test]
async fn what_keeps_failing_is_said() {
    let Some(s3) = S3::start() else { return };
    let faulty = Faulty::before(&s3.endpoint);
    let objects = objects(&s3, &faulty.endpoint);
    let (name, sealed, _) = chunk(1);
    objects.put(&name, sealed).await.unwrap();
    for (fault, why) in [
        (
            Fault::Status(503),
            "it answers 503 Service Unavailable (3 tries)",
        ),
        (Fault::Stall, "no answer within 2s (3 tries)"),
        (Fault::Truncate, "3 tries"),
        (Fault::Refuse, "3 tries"),
    ] {
        faulty.clear();
        faulty.seen();
        faulty.then(&[fault; 3]);
        let error = objects.get(&name).await.unwrap_err();
        assert!(
            matches!(error, Error::Blobs { what: "read", .. }),
            "{error:?}"
        );
        let said = error.to_string();
        assert!(said.contains("s3://chunks-of-tests/some/prefix"), "{said}");
        assert!(said.contains(why), "{fault:?}: {said}");
        assert!(!said.contains('\n') && said.len() < 600, "{said}");
        assert_eq!(faulty.seen().len(), 3, "{fault:?}");
    }
}

/// A place that refuses is not asked again.
#[tokio::test]
async fn refusals_are_final() {
    let Some(s3) = S3::start() else { return };
    let faulty = Faulty::before(&s3.endpoint);
    let objects = objects(&s3, &faulty.endpoint);
    let (name, sealed, _) = chunk(1);
    faulty.then(&[Fault::Status(403)]);
    let error = objects.put(&name, sealed).await.unwrap_err().to_string();
    assert!(
        error.contains("it refuses the key that is configured"),
        "{error}"
    );
    assert_eq!(faulty.seen().len(), 1);
    faulty.then(&[Fault::Status(404)]);
    assert_eq!(objects.get(&name).await.unwrap(), None);
    assert_eq!(faulty.seen().len(), 1);
}

/// A network that changes bytes: never a wrong byte, for whoever opens what it got.
#[tokio::test]
async fn a_changed_byte_does_not_open() {
    let Some(s3) = S3::start() else { return };
    let faulty = Faulty::before(&s3.endpoint);
    let objects = objects(&s3, &faulty.endpoint);
    let (name, sealed, plain) = chunk(1);
    objects.put(&name, sealed).await.unwrap();
    faulty.then(&[Fault::Flip]);
    let got = objects.get(&name).await.unwrap().unwrap();
    let opened = Sealer::plain().open(&name.chunk, plain.len() as u32, &got);
    assert!(matches!(opened, Err(Unsealed::Damaged(_))), "{opened:?}");
}

#[tokio::test]
async fn wrong_keys_buckets_and_addresses_are_told_apart() {
    let Some(s3) = S3::start() else { return };
    let [(_, url), (_, endpoint), (_, id), (_, secret)] = s3.variables(&s3.endpoint);
    let config = BlobsConfig {
        url,
        endpoint: Some(endpoint),
        access_key_id: Some(id),
        secret_access_key: Some(secret),
        allow_http: true,
        patience: Some(PATIENCE),
        ..BlobsConfig::default()
    };
    let (name, sealed, _) = chunk(1);
    let wrong_key = BlobsConfig {
        access_key_id: Some("other".into()),
        ..config.clone()
    };
    let no_bucket = BlobsConfig {
        url: "s3://nowhere".into(),
        ..config.clone()
    };
    let nobody = format!("http://127.0.0.1:{}", free_port());
    let nobody = BlobsConfig {
        endpoint: Some(nobody),
        ..config
    };
    for (config, why) in [
        (&wrong_key, "it refuses the key that is configured"),
        (&no_bucket, "there is no bucket nowhere"),
        (&nobody, "(3 tries)"),
    ] {
        let objects = open(config);
        let put = objects.put(&name, sealed.clone()).await.expect_err(why);
        assert!(put.to_string().contains(why), "{put}");
        let get = objects.get(&name).await.unwrap_err();
        assert!(get.to_string().contains(why), "{get}");
        let listed = objects.list(None).await.unwrap_err();
        assert!(listed.to_string().contains(why), "{listed}");
    }
}

/// The same against Garage, which compares signatures.
#[tokio::test]
#[ignore = "only with --long"]
async fn garage_keeps_what_was_put() {
    let Some(garage) = Garage::start() else {
        return;
    };
    let faulty = Faulty::before(&garage.endpoint);
    let config = BlobsConfig {
        url: garage.url(),
        endpoint: Some(faulty.endpoint.clone()),
        region: Some("garage".into()),
        access_key_id: Some(garage.key_id.clone()),
        secret_access_key: Some(garage.secret.clone()),
        allow_http: true,
        patience: Some(PATIENCE),
        ..BlobsConfig::default()
    };
    let objects = open(&config);
    let mut names = vec![];
    for n in 1..40 {
        let (name, sealed, plain) = chunk(n);
        faulty.then(&[[Fault::Status(503), Fault::Refuse, Fault::LoseAnswer][n as usize % 3]]);
        objects.put(&name, sealed).await.unwrap();
        faulty.then(&[[Fault::Truncate, Fault::Status(429), Fault::None][n as usize % 3]]);
        let got = objects.get(&name).await.unwrap().unwrap();
        let opened = Sealer::plain().open(&name.chunk, plain.len() as u32, &got);
        assert_eq!(opened.unwrap(), plain);
        names.push(name);
    }
    names.sort_unstable();
    let listed = objects.list(None).await.unwrap();
    assert_eq!(listed.iter().map(|l| l.name).collect::<Vec<_>>(), names);
    let rest = objects.list(Some(&names[10])).await.unwrap();
    assert_eq!(rest.len(), names.len() - 11);
    for name in &names {
        objects.delete(name).await.unwrap();
        assert_eq!(objects.get(name).await.unwrap(), None);
        assert_eq!(objects.size(name).await.unwrap(), None);
    }
    let other = "0".repeat(garage.secret.len());
    let wrong = BlobsConfig {
        secret_access_key: Some(other),
        ..config.clone()
    };
    let error = open(&wrong).put(&names[0], vec![1]).await.unwrap_err();
    let said = error.to_string();
    assert!(
        said.contains("it refuses the key that is configured"),
        "{said}"
    );
    let nowhere = BlobsConfig {
        url: "s3://nowhere".into(),
        ..config
    };
    let error = open(&nowhere).get(&names[0]).await.unwrap_err();
    assert!(matches!(error, Error::Blobs { .. }), "{error:?}");
}
