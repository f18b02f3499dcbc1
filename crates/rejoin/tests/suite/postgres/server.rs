//! The server goes away, comes back, or does not let us in.

use rejoin_testkit::{Done, Model, PgServer, World, answer, slowly, user, wait_for};

use super::REJOIN;

/// The answer takes its time.
fn slow_world() -> Option<World> {
    let model = || Model::scripted([("late", vec![slowly(&answer(2), 15)])]);
    World::with(REJOIN, &rejoin_testkit::CLAUDE_325, model)
}

/// In the middle of a turn, as its administrator or a power cut does it: the turn ends well, the
/// answer is kept, and the next one knows everything (promise 3).
#[test]
fn a_restart_in_the_middle_of_a_turn_loses_nothing() {
    for end in [PgServer::stop, PgServer::crash] {
        let (Some(mut world), Some(server)) = (slow_world(), PgServer::start()) else {
            return;
        };
        world.set("REJOIN_DATABASE_URL", &server.url());
        let _first = world.say(1, &["-m", "sonnet"]);
        let send = world.start(2, "#s:late", &[]);
        wait_for("the answer to begin", 30, || {
            world.printed("text_delta").then_some(())
        });
        end(&server);
        server.start_again();
        let done = Done::of(send);
        // It may have been in the middle of a transaction: then it says so, and the next command sees
        // the turn to its end.
        if done.code != 0 {
            assert_eq!(done.code, 6, "{done:?}");
            assert_eq!(done.json()["error"]["code"], "unavailable", "{done:?}");
        }
        let third = world.say(3, &[]);
        assert_eq!(third["verdict"], "resumed", "{third}");
        let turns = world.show()["turns"].clone();
        assert_eq!(turns[1]["status"], "succeeded", "{turns}");
        assert_eq!(turns[1]["text"], answer(2));
        let mut words = rejoin_testkit::said(1..=2);
        words.push(user(3));
        rejoin_testkit::assert_shown(&world.model.last(), &words);
        assert_eq!(world.model.requests().len(), 3, "run twice");
        world.assert_quiet();
    }
}

/// A crash takes back no commit, also on a server with `synchronous_commit = off` whose log is written
/// seldom (promise 3).
#[test]
fn a_crash_takes_back_no_commit() {
    let Some(server) = PgServer::start() else {
        return;
    };
    server.psql("alter system set wal_writer_delay = '10s'");
    server.psql("select pg_reload_conf()");
    let mut world = World::new(REJOIN);
    world.set("REJOIN_DATABASE_URL", &server.url());
    let first = world.say(1, &["-a", "demo"]);
    for n in 2..=4 {
        server.crash();
        server.start_again();
        let next = world.say(n, &["-a", "demo"]);
        assert_eq!(next["conversation_id"], first["conversation_id"], "{next}");
    }
    let shown = world.show();
    assert_eq!(shown["messages"].as_array().unwrap().len(), 8, "{shown}");
}

/// Exit 6 with a sentence that names the place, also from `doctor`; and never the password.
#[test]
fn who_cannot_get_in_is_told_so() {
    let Some(server) = PgServer::with_password("open-sesame") else {
        return;
    };
    let mut world = World::new(REJOIN);
    world.set("REJOIN_DATABASE_URL", &server.url());
    let _well = world.say(1, &["-a", "demo"]);
    let said = |done: &Done| format!("{}{}", done.stdout, done.stderr);
    let report = world.run(&["doctor", "--json"]);
    let store = report.json()["store"].clone();
    assert_eq!(store["exists"], true, "{store}");
    assert!(store["server_version"].is_string() && store["bytes"].as_u64() > Some(0));
    let shown = [
        report,
        world.run(&["doctor"]),
        world.run(&["config", "show"]),
        world.run(&["config", "show", "--json"]),
    ];
    for done in &shown {
        assert!(!said(done).contains("open-"), "{done:?}");
    }
    let wrong = server.url().replace("open-sesame", "open-barley");
    world.set("REJOIN_DATABASE_URL", &wrong);
    let refused = [
        world.send(2, "#s:a2", &["-a", "demo"]),
        world.run(&["list"]),
    ];
    world.set("REJOIN_DATABASE_URL", &server.url());
    server.stop();
    let gone = [
        world.send(2, "#s:a2", &["-a", "demo"]),
        world.run(&["list", "--json"]),
    ];
    for done in refused.iter().chain(&gone) {
        assert_eq!(done.code, 6, "{done:?}");
        assert!(said(done).contains("127.0.0.1:"), "{done:?}");
        assert!(said(done).contains("database postgres"), "{done:?}");
        assert!(!said(done).contains("open-"), "{done:?}");
    }
    let looked = world.run(&["doctor"]);
    assert!(looked.stdout.contains("cannot be used"), "{looked:?}");
    assert!(!said(&looked).contains("open-"), "{looked:?}");
}

#[test]
fn a_url_that_is_none_is_a_mistake_of_the_configuration() {
    let mut world = World::new(REJOIN);
    for url in [
        "mysql://u:geheim@h/d",
        "postgres://u:geheim@[::/d",
        "geheim",
    ] {
        world.set("REJOIN_DATABASE_URL", url);
        let done = world.run(&["list"]);
        assert_eq!(done.code, 2, "{done:?}");
        assert!(done.stderr.contains("database.url"), "{done:?}");
        assert!(!done.stderr.contains("geheim"), "{done:?}");
    }
}
