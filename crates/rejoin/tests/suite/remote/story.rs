//! One story, told three times: the words, the documents and the exit codes are the same.

use super::mask::masked;
use super::{Place, Way};

/// What is typed.
const STORY: &[&[&str]] = &[
    &["list"],
    &["reply", "nobody is there yet"],
    &["send", "-k", "one", "use port 4000"],
    &["send", "-k", "one", "--json", "and a second thing"],
    &["reply", "--title", "ignored"],
    &["reply", "a third thing"],
    &["send", "-c", "last", "-q", "a fourth thing"],
    &["send", "--title", "Another", "-k", "two", "elsewhere"],
    &["show", "one"],
    &["show", "one", "--json"],
    &["show", "one:2"],
    &["show", "one:99"],
    &["show", "last", "--markdown"],
    &["show", "nosuch"],
    &["list"],
    &["list", "--json", "-n", "1"],
    &["list", "--here"],
    &["list", "--state", "running"],
    &["list", "--agent", "codex"],
    &["search", "port"],
    &["search", "port", "--json", "--here"],
    &["search", "nothing-says-that"],
    &["search", "!!!"],
    &["costs", "--by", "agent"],
    &["costs", "--by", "folder"],
    &["costs", "--since", "soon"],
    &["explain", "one"],
    &["explain", "one:1", "--json"],
    &["explain", "one", "--raw"],
    &["explain", "one", "--next"],
    &["explain", "one", "--next", "--json"],
    &["explain", "one", "--next", "-a", "nosuch"],
    &["edit", "one", "x"],
    &["edit", "one:1", "--dry-run", "use port 5000"],
    &["edit", "one:1", "use port 5000"],
    &["edit", "one:1", "--json", "use port 6000"],
    &["explain", "one", "--next"],
    &["show", "one", "--all"],
    &["undo", "one", "--dry-run"],
    &["undo", "one"],
    &["undo", "one", "--json"],
    &["undo", "one"],
    &["truncate", "one:7", "--dry-run"],
    &["truncate", "one:7"],
    &["truncate", "one:7"],
    &["retry", "one:2"],
    &["retry", "one", "--dry-run"],
    &["retry", "one"],
    &["retry", "one:3", "--json", "-m", "other"],
    &["retry", "nosuch"],
    &["fork", "one", "-k", "three"],
    &[
        "fork",
        "one",
        "--at",
        "2",
        "--json",
        "--permission",
        "read-only",
    ],
    &["fork", "one", "--at", "99"],
    &["fork", "one", "--at", "two:1"],
    &["fork", "one", "-k", "two"],
    &["send", "-k", "three", "in the fork"],
    &["merge", "two", "one", "--dry-run"],
    &["merge", "two", "one"],
    &["merge", "one", "one"],
    &["merge", "three", "one", "--json"],
    &["show", "two"],
    &["set", "one", "codex.model=gpt", "scope=agent"],
    &["set", "one", "codex.tools=", "deny_tools=A,B", "--json"],
    &["set", "one", "permission=full", "--dry-run"],
    &["set", "one", "nosuch=1"],
    &["set", "one", "agent=nosuch"],
    &["set", "one", "title=B"],
    &["undo", "one"],
    &["rename", "one", "A  title"],
    &["rename", "one", " "],
    &["archive", "one"],
    &["list", "--archived"],
    &["archive", "one", "--undo", "--json"],
    &["reset", "one", "--dry-run"],
    &["reset", "one", "--json"],
    &["send", "-k", "one", "--no-reseed", "not kept"],
    &["send", "-k", "one", "--no-reseed", "--json", "not kept"],
    &[
        "send",
        "-k",
        "one",
        "--fresh-session",
        "--must-save",
        "kept",
    ],
    &["send", "-k", "one", "--idempotency-key", "i", "once"],
    &["send", "-k", "one", "--idempotency-key", "i", "once"],
    &["send", "-k", "one", "--idempotency-key", "i", "other"],
    &["send", "-k", "one", "--timeout", "300ms", "wait 20s"],
    &[
        "send",
        "-k",
        "one",
        "--timeout",
        "300ms",
        "--json",
        "wait 20s",
    ],
    &["wait", "one"],
    &["watch", "one"],
    &["cancel", "one"],
    &["send", "-k", "ask", "ask: Which colour? Red | Blue"],
    &["inbox"],
    &["show", "ask"],
    &["wait", "ask"],
    &["answer", "ask", "9"],
    &["answer", "ask", "2"],
    &["wait", "ask"],
    &["answer", "ask", "2"],
    &["answer", "allow"],
    &["inbox", "--json"],
    &["send", "-k", "ask", "approve: rm -r x", "--json"],
    &["answer", "deny", "--text", "not today"],
    &["wait", "ask", "--json"],
    &["send", "-k", "ask", "approve: rm -r y"],
    &["cancel", "ask"],
    &["explain", "ask"],
    &["send", "-c", "nosuch", "x"],
    &["send", "-a", "nosuch", "x"],
    &["send", "-w", "/nosuch", "x"],
    &["send", ""],
    &["delete", "one"],
    &["delete", "one", "--yes"],
    &["delete", "one", "--yes"],
    &["token", "create", "phone", "--json", "--scope", "read"],
    &["token", "create", "phone"],
    &["token", "list", "--json"],
    &["token", "revoke", "phone", "--json"],
    &["token", "revoke", "nosuch"],
];

/// With a daemon or without, every command behaves the same, exit codes included.
#[test]
fn every_command_behaves_the_same() {
    let told: Vec<Vec<String>> = [Way::None, Way::Socket, Way::Address]
        .map(tell)
        .into_iter()
        .collect();
    let mut differ = vec![];
    for (at, args) in STORY.iter().enumerate() {
        for (way, told_so) in ["socket", "address"].iter().zip(&told[1..]) {
            if told[0][at] != told_so[at] {
                differ.push(format!(
                    "rejoin {args:?}\n--- in-process\n{}\n--- {way}\n{}\n",
                    told[0][at], told_so[at]
                ));
            }
        }
    }
    assert!(
        differ.is_empty(),
        "{} differ\n{}",
        differ.len(),
        differ.join("\n")
    );
}

fn tell(way: Way) -> Vec<String> {
    let place = Place::new(way);
    if way == Way::None {
        // The other worlds have a token already.
        let most = ["--scope", "admin", "--max-permission", "full"];
        place
            .run(&[&["token", "create", "test"], &most[..]].concat())
            .ok();
    }
    let root = place.world.root().to_str().unwrap().to_owned();
    let told = STORY.iter().map(|args| {
        let done = place.run(args);
        let (out, err) = (masked(&done.stdout, &root), masked(&done.stderr, &root));
        format!("exit {}\n{out}\n[stderr]\n{err}", done.code)
    });
    let told = told.collect();
    place.end();
    told
}
