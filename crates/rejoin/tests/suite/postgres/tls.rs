//! TLS to the server: as much of it as the address asks for, and no less.

use rejoin_testkit::{PgServer, World};

use super::REJOIN;

#[test]
fn a_certificate_is_checked_as_far_as_is_asked() {
    let Some(server) = PgServer::with_certificate("open-sesame", "localhost") else {
        return;
    };
    let mut world = World::new(REJOIN);
    let by_name = server.url().replace("127.0.0.1", "localhost");
    let authority = format!("sslrootcert={}", server.authority().display());
    let full = format!("sslmode=verify-full&{authority}");
    let mut n = 0;
    for (url, how) in [
        (server.url(), "sslmode=require"),
        (by_name.clone(), "sslmode=require"),
        (server.url(), &format!("sslmode=verify-ca&{authority}")),
        (by_name.clone(), &full),
    ] {
        n += 1;
        world.set("REJOIN_DATABASE_URL", &format!("{url}?{how}"));
        let turn = world.say(n, &["-a", "demo"]);
        assert_eq!(turn["status"], "succeeded", "{how}: {turn:#}");
    }
    let encrypted =
        server.psql("select count(*) from pg_stat_ssl where not ssl and pid <> pg_backend_pid()");
    assert_eq!(encrypted.trim(), "0");
    for (url, how, why) in [
        // It is not for that name.
        (server.url(), full.as_str(), "certificate"),
        // Nobody who is known has signed it.
        (by_name.clone(), "sslmode=verify-full", "certificate"),
        // The server wants it.
        (by_name, "sslmode=disable", "no encryption"),
    ] {
        world.set("REJOIN_DATABASE_URL", &format!("{url}?{how}"));
        let refused = world.send(99, "#s:a99", &["-a", "demo"]);
        assert_eq!(refused.code, 6, "{how}: {refused:?}");
        let error = refused.json()["error"].clone();
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(why), "{how}: {message}");
        assert!(message.contains("database postgres"), "{how}: {message}");
        assert!(!message.contains("open-sesame"), "{how}: {message}");
    }
    world.set("REJOIN_DATABASE_URL", &server.url());
    assert_eq!(world.show()["turns"].as_array().unwrap().len(), n);
}
