//! Hubs by name: their tokens are tried, kept for the user alone, and forgotten again.

use std::os::unix::fs::PermissionsExt as _;

use rejoin_testkit::{Daemon, World};

use super::demo;
use crate::suite::terminal::{Terminal, world as steady};

fn url(daemon: &Daemon) -> String {
    format!("http://{}", daemon.address)
}

/// Somebody else's home, from which the daemon is only an address.
fn elsewhere() -> World {
    demo()
}

#[test]
fn keeps_a_token_that_is_good() {
    let (there, here) = (demo(), elsewhere());
    let daemon = there.serve(&[]);
    let url = url(&daemon);
    let login = ["login", &url, "--name", "work", "--token-stdin", "--json"];
    let done = here.run_with_stdin(&login, format!("{}\n", daemon.token).as_bytes());
    let said = done.ok().json();
    assert_eq!(
        (&said["hub"], &said["scope"]),
        (&"work".into(), &"admin".into())
    );
    let kept = here.home().join(".config/rejoin/hubs.toml");
    let mode = std::fs::metadata(&kept).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // By its name, and by its address.
    here.run(&["--hub", "work", "send", "-k", "k", "hello"])
        .ok();
    let shown = here
        .run(&["show", "k", "--json", "--hub", &url])
        .ok()
        .json();
    assert_eq!(shown["messages"][0]["text"], "hello");
    assert_eq!(
        here.run(&["show", "k"]).code,
        3,
        "it is not in our own store"
    );
    assert_eq!(there.run(&["show", "k"]).code, 0);

    here.run(&["logout", "work"]).ok();
    assert!(
        !std::fs::read_to_string(&kept)
            .unwrap()
            .contains(&daemon.token)
    );
    let gone = here.run(&["list", "--hub", "work"]);
    assert_eq!(gone.code, 2, "{gone:?}");
    assert!(
        gone.stderr.contains("rejoin login URL --name work"),
        "{gone:?}"
    );
    assert_eq!(here.run(&["logout", "work"]).code, 3);
    assert_eq!(
        here.run(&["list", "--hub", &url]).code,
        8,
        "nor by its address"
    );
    assert_eq!(daemon.stop(), 0);
    there.assert_quiet();
}

#[test]
fn keeps_nothing_that_is_not() {
    let (there, here) = (demo(), elsewhere());
    let daemon = there.serve(&[]);
    let url = url(&daemon);
    let login = |url: &str, more: &[&str], stdin: &str| {
        let args = [&["login", url, "--token-stdin"], more].concat();
        here.run_with_stdin(&args, stdin.as_bytes())
    };
    let refused = login(&url, &[], "rejoin_0000\n");
    assert_eq!(refused.code, 8, "{refused:?}");
    for (url, more, stdin, code) in [
        (url.as_str(), &[][..], "", 2),
        (&url, &[], "two words\n", 2),
        (&url, &["--name", "none"], "x\n", 2),
        (&url, &["--name", "a/b"], "x\n", 2),
        ("hub.example", &[], "x\n", 2),
        ("http://127.0.0.1:1", &[], "x\n", 6),
    ] {
        let done = login(url, more, stdin);
        assert_eq!(done.code, code, "{url} {more:?} {done:?}");
    }
    let none = here.run(&["login", &url]);
    assert_eq!(none.code, 2, "{none:?}");
    assert!(!here.home().join(".config/rejoin/hubs.toml").exists());
    // What somebody else wrote there is not guessed at.
    let folder = here.home().join(".config/rejoin");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("hubs.toml"), "hubs = 3\n").unwrap();
    let broken = here.run(&["list", "--hub", "work"]);
    assert_eq!(broken.code, 2, "{broken:?}");
    assert_eq!(daemon.stop(), 0);
}

/// At a terminal it is asked for, and not shown.
#[test]
fn asks_for_the_token_without_showing_it() {
    let there = demo();
    let here = steady();
    let Some(terminal) = Terminal::open(&here) else {
        return;
    };
    let daemon = there.serve(&[]);
    terminal.keys(&format!("rejoin login {} --name work", url(&daemon)));
    terminal.wait_until(|screen| screen.contains("token:"));
    terminal.keys(&daemon.token);
    let screen = terminal.wait_until(|screen| screen.contains("try: rejoin --hub work list"));
    assert!(!screen.contains(&daemon.token[..20]), "{screen}");
    // Whoever gives up sees again what is typed.
    // On a screen without the first question, which would be taken for the second one.
    terminal.clear();
    terminal.keys(&format!("rejoin login {}", url(&daemon)));
    terminal.wait_until(|screen| screen.contains("token:"));
    terminal.press(&["C-c"]);
    terminal.wait_until(|screen| screen.trim_end().ends_with("\n$"));
    terminal.keys("echo seen-$((40 + 2))");
    let screen = terminal.wait_until(|screen| screen.contains("seen-42"));
    assert!(screen.contains("$ echo seen-"), "{screen}");
    assert_eq!(daemon.stop(), 0);
}
