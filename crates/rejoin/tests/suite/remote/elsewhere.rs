//! A daemon on another machine: folders and `last` are those of that machine.
//!
//! Nothing leaves loopback: the daemon itself stands in for the proxy through which its name is reached.

use rejoin_testkit::{Daemon, Done, World};

use super::demo;

const HUB: &str = "http://hub.example";

fn ask(world: &World, daemon: &Daemon, args: &[&str]) -> Done {
    let child = world
        .command(args)
        .env("http_proxy", format!("http://{}", daemon.address))
        .env("REJOIN_HUB", HUB)
        .env("REJOIN_TOKEN", &daemon.token)
        .spawn();
    Done::of(child.unwrap())
}

#[test]
fn folders_are_those_of_the_other_machine() {
    let (mut there, here) = (demo(), demo());
    there.set("REJOIN_SERVE_ALLOW_HOSTS", "[\"hub.example\"]");
    let daemon = there.serve(&[]);
    let ours = |args: &[&str]| ask(&here, &daemon, args);
    // Without a folder it works where the daemon is at home.
    ours(&["send", "-k", "one", "hello"]).ok();
    let made = ours(&["show", "one", "--json"]).ok().json();
    let place =
        |shown: &serde_json::Value| shown["conversation"]["workdir"].as_str().map(str::to_owned);
    assert_eq!(place(&made), there.work().to_str().map(str::to_owned));
    // A folder is a path there, whole.
    let other = there.root().join("other");
    std::fs::create_dir(&other).unwrap();
    ours(&["send", "-k", "two", "-w", other.to_str().unwrap(), "hello"]).ok();
    let made = ours(&["show", "two", "--json"]).ok().json();
    assert_eq!(place(&made), other.to_str().map(str::to_owned));
    let relative = ours(&["send", "-w", ".", "hello"]);
    assert_eq!(relative.code, 2, "{relative:?}");
    assert!(
        relative.stderr.contains("not an absolute path"),
        "{relative:?}"
    );
    // The last one is the newest of all, whatever folder it is in.
    let reply = ours(&["reply", "--json", "again"]).ok().json();
    assert_eq!(reply["conversation_id"], made["conversation"]["id"]);
    assert_eq!(reply["verdict"], "resumed");
    ours(&["show", "last:2"]).ok();
    let list = ours(&["list", "--here"]);
    assert_eq!(list.code, 2, "{list:?}");
    assert!(list.stderr.contains("another machine"), "{list:?}");
    assert_eq!(daemon.stop(), 0);
    there.assert_quiet();
}
