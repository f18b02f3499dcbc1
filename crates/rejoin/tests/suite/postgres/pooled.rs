//! PgBouncer in front of the server: a session for each connection works, one for each transaction is refused.

use rejoin_testkit::{PgBouncer, PgServer, World};

use super::REJOIN;

const KNOWN: &str = "ignore_startup_parameters = extra_float_digits";

#[test]
fn a_pooler_that_shares_sessions_is_refused() {
    let Some(server) = PgServer::start() else {
        return;
    };
    let more = [
        KNOWN.to_owned(),
        String::new(),
        format!("{KNOWN}\nserver_round_robin = 1\nmin_pool_size = 2"),
    ];
    for more in more {
        let Some(pooler) = PgBouncer::before(&server, "transaction", &more) else {
            return;
        };
        let mut world = World::new(REJOIN);
        world.set("REJOIN_DATABASE_URL", &pooler.url());
        for args in [&["list"][..], &["send", "-a", "demo", "hello"], &["serve"]] {
            let done = world.run(args);
            assert_eq!(done.code, 6, "{more}: {done:?}");
            let lines: Vec<&str> = done.stderr.lines().collect();
            assert!(
                lines[0].contains("is behind a pooler that shares its sessions"),
                "{more}: {done:?}"
            );
            assert!(lines[1].contains("pool_mode = session"), "{done:?}");
        }
    }
    let made = server.psql("select count(*) from pg_tables where tablename = 'turns'");
    assert_eq!(made, "0\n");
}

#[test]
fn a_pooler_that_keeps_sessions_works() {
    let Some(server) = PgServer::start() else {
        return;
    };
    for (key, more) in [("one", KNOWN), ("other", "")] {
        let Some(pooler) = PgBouncer::before(&server, "session", more) else {
            return;
        };
        let mut world = World::new(REJOIN);
        world.set("REJOIN_DATABASE_URL", &pooler.url());
        let sent = world.run(&["send", "-k", key, "-a", "demo", "hello"]).ok();
        assert!(!sent.stdout.is_empty());
        world.run(&["show", key]).ok();
        world.assert_quiet();
    }
}
