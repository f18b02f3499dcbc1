//! What only a server can do: be restarted, be shared, be full, be gone.

use std::fmt::Write as _;
use std::time::Duration;

use rejoin_core::{ConversationId, EventBody, TurnId};
use rejoin_store::{Error, Store};
use rejoin_testkit::{PgServer, database};

/// Two processes that make the tables at once.
#[tokio::test]
async fn many_may_open_an_empty_database_at_once() {
    let Some(database) = database() else { return };
    let opened = (0..8).map(|_| {
        let url = database.url.clone();
        tokio::spawn(async move { Store::open_postgres(&url).await })
    });
    for one in opened.collect::<Vec<_>>() {
        one.await.unwrap().unwrap();
    }
}

/// Idle connections are replaced, a transaction that broke is an error, and the next one is well.
#[tokio::test]
async fn a_server_that_was_restarted_is_used_again() {
    let Some(server) = PgServer::start() else {
        return;
    };
    let store = Store::open_postgres(&server.url()).await.unwrap();
    for end in [PgServer::stop, PgServer::crash] {
        end(&server);
        server.start_again();
        store.begin().await.unwrap().commit().await.unwrap();
        end(&server);
        server.start_again();
        let mut read = store.read().await.unwrap();
        assert_eq!(read.events().last().await.unwrap(), 0);
        drop(read);

        let mut tx = store.begin().await.unwrap();
        end(&server);
        server.start_again();
        let turn = TurnId::from_parts(1, [1; 10]);
        let broken = tx.turns().request_cancel(turn).await;
        assert!(matches!(broken, Err(Error::Away { .. })), "{broken:?}");
        let kept = tx.commit().await;
        assert!(kept.is_err(), "a broken transaction was kept");
        store.begin().await.unwrap().commit().await.unwrap();
    }
    // While it is away nothing hangs, and nothing says how to get in.
    server.stop();
    let begun = store.begin().await.map(drop);
    assert!(matches!(begun, Err(Error::Away { .. })), "{begun:?}");
}

/// A writer that stands still keeps the others waiting only until the server has had enough of it; what
/// it did never was.
#[tokio::test]
async fn who_sits_on_the_lock_loses_it() {
    let Some(database) = database() else { return };
    let sits = Store::open_postgres(&database.url).await.unwrap();
    let waits = Store::open_postgres(&database.url).await.unwrap();
    let mut sitting = sits.begin().await.unwrap();
    let begun = waits.begin().await;
    assert!(begun.is_ok(), "{begun:?}");
    let lost = sitting
        .turns()
        .request_cancel(TurnId::from_parts(1, [1; 10]))
        .await;
    assert!(matches!(lost, Err(Error::Away { .. })), "{lost:?}");
}

/// Events become visible in the order of their numbers, whoever writes them.
#[tokio::test]
async fn numbers_of_events_are_seen_in_order() {
    let Some(database) = database() else { return };
    let store = Store::open_postgres(&database.url).await.unwrap();
    drop(store);
    database.psql("insert into conversations values ('00000000-0000-0000-0000-000000000001', 'z', null, 't', 'demo', '/', 'edit', 'full', '{}', 1, 1)");
    let c = ConversationId::from_uuid(
        "00000000-0000-0000-0000-000000000001"
            .parse::<ConversationId>()
            .unwrap()
            .uuid(),
    );
    let writers = (0..4_u8).map(|n| {
        let url = database.url.clone();
        tokio::spawn(async move {
            let store = Store::open_postgres(&url).await.unwrap();
            for _ in 0..50 {
                let mut tx = store.begin().await.unwrap();
                let body = EventBody::warning("x".to_owned());
                let turn = TurnId::from_parts(1, [n; 10]);
                tx.events()
                    .add(c, turn, 1, &[body.clone(), body])
                    .await
                    .unwrap();
                tokio::task::yield_now().await;
                tx.commit().await.unwrap();
            }
        })
    });
    let writers: Vec<_> = writers.collect();
    let reader = Store::open_postgres(&database.url).await.unwrap();
    let mut seen: Vec<i64> = vec![0; 4];
    let mut high = 0;
    while writers.iter().any(|w| !w.is_finished()) {
        let before = high;
        high = reader.read().await.unwrap().events().last().await.unwrap();
        for (n, seen) in seen.iter_mut().enumerate() {
            let turn = TurnId::from_parts(1, [n as u8; 10]);
            let mut read = reader.read().await.unwrap();
            for event in read.events().of_turn(turn, *seen, 1000).await.unwrap() {
                assert!(event.seq > before || event.seq > *seen);
                *seen = event.seq;
            }
        }
        // Nothing may turn up below what was seen as the highest.
        let count = database.psql(&format!("select count(*) from events where seq <= {high}"));
        assert_eq!(count.trim(), high.to_string());
    }
    for writer in writers {
        writer.await.unwrap();
    }
}

/// Wrong password, nobody there, nonsense: a sentence that names the place and never the password.
#[tokio::test]
async fn who_cannot_get_in_is_told_where_and_not_how() {
    let Some(server) = PgServer::with_password("open-sesame") else {
        return;
    };
    let url = server.url();
    Store::open_postgres(&url).await.unwrap();
    let wrong = url.replace("open-sesame", "open-barley");
    let port = url.rsplit_once(':').unwrap().1;
    let port = port.split_once('/').unwrap().0;
    server.stop();
    let gone = Store::open_postgres(&url).await.unwrap_err();
    server.start_again();
    let refused = Store::open_postgres(&wrong).await.unwrap_err();
    let nothing = Store::open_postgres("postgres://u:open-barley@[::/x").await;
    for error in [gone, refused] {
        let all = chain(&error);
        assert!(all.contains(&format!("127.0.0.1:{port}")), "{all}");
        assert!(all.contains("database postgres"), "{all}");
        assert!(!all.contains("open-"), "{all}");
    }
    let error = nothing.unwrap_err();
    assert!(!chain(&error).contains("open-"), "{error:?}");
}

fn chain(error: &Error) -> String {
    let mut text = format!("{error} {error:?}");
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        let _ = write!(text, ": {inner} {inner:?}");
        source = inner.source();
    }
    text
}

/// With no room for one more, it is waited for.
#[tokio::test]
async fn a_full_server_is_waited_for() {
    let Some(server) = PgServer::start() else {
        return;
    };
    server.psql("alter system set max_connections = 8");
    server.psql("alter system set superuser_reserved_connections = 0");
    server.stop();
    server.start_again();
    let url = server.url();
    let mut stores = vec![];
    for _ in 0..4 {
        stores.push(Store::open_postgres(&url).await.unwrap());
    }
    let more: Vec<_> = (0..12)
        .map(|_| {
            let url = url.clone();
            tokio::spawn(async move {
                let store = Store::open_postgres(&url).await?;
                store.begin().await?.commit().await?;
                store.close().await;
                Ok::<_, Error>(())
            })
        })
        .collect();
    tokio::time::sleep(Duration::ZERO).await;
    drop(stores);
    for one in more {
        one.await.unwrap().unwrap();
    }
}
