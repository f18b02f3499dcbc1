//! Help, completions, manual pages.

mod keep;

use insta::assert_snapshot;
use rejoin_testkit::World;

use super::terminal::world;

fn help(world: &World, command: &[&str]) -> String {
    let done = world.run(&[command, &["--help"]].concat()).ok();
    assert_eq!(done.stderr, "");
    assert!(
        done.stdout.lines().all(|line| line.chars().count() <= 80),
        "{}",
        done.stdout
    );
    let lines = done.stdout.lines().count();
    let long = ["send", "reply"].contains(&command.first().copied().unwrap_or(""));
    assert!(long || lines < 24, "{lines} lines: {}", done.stdout);
    done.stdout
}

#[test]
fn the_first_page() {
    let world = world();
    assert_snapshot!(help(&world, &[]), @r"
    Keep a conversation with a coding agent going, whatever happens underneath

    Talk:
      send, reply, open        A message; to the last one here; its own terminal
      watch, wait, cancel      Follow a running turn; wait for its answer; stop it
      inbox, answer            What waits for a person; say something to it
      adopt, export, import    Sessions made outside; a conversation as one file
    Look:
      list, search, show       Conversations; messages by words; one of them
      explain                  Why a turn went as it did, or what the next would do
    Change:
      edit, truncate, retry    Other words; cut short; run a message again
      fork, merge, undo        Go on in two, or in one; take back the last change
      reset, set               New sessions next time; model, permission, scope, …
      rename, archive, delete  Another title; put away; delete for good
      snapshot, sweep          Sessions that are kept: list, verify, …; free space
    Set up:
      demo, completions        Ten seconds, no key: what it does; for your shell
      doctor, config, trust    What is here; where values come from; trust a file
      serve, model-server      The daemon and its HTTP API; a model to use offline
      token, login, logout     Who may talk to the daemon; one elsewhere, for --hub

    Usage: rejoin COMMAND …, and everywhere: --json, -q, --config FILE, --hub H, -h
    ");
    let bare = world.run(&[]).ok();
    assert_eq!(bare.stdout.trim_end(), help(&world, &[]).trim_end());
    assert_eq!(world.run(&["-h"]).ok().stdout, help(&world, &[]));
}

#[test]
fn talk() {
    let world = world();
    assert_snapshot!(help(&world, &["send"]), @r#"
    Send a message and wait for the answer

    Usage: rejoin send [OPTIONS] [PROMPT]

    Arguments:
      [PROMPT]  The message; `-` or nothing: stdin

    Options:
      -c, --conversation <CONV>    Continue this one: handle, id, key, or `last`
      -k, --key <KEY>              Continue the one with this key, or start it
          --title <TITLE>          Give a new conversation this title
          --bundle <FILE>          Keep the conversation in this file only
      -a, --agent <AGENT>          Agent; default: the one of the newest turn
      -w, --workdir <DIR>          Working folder; default: the conversation's
      -m, --model <MODEL>          Model
          --permission <MODE>      What the agent may do: read-only, edit, full, ask
          --tools <A,B>            Exactly these tools
          --deny-tools <A,B>       Not these tools
          --fresh-session          Start a new session and tell it what was said
          --no-reseed              Refuse rather than re-tell what was said
          --relocate               Resume also in another folder
          --raw                    Let the CLI read /commands and @files in it
          --timeout <TIME>         Stop the turn after this time, e.g. 90s, 10m
          --idle-timeout <TIME>    Stop the turn after this much silence, or never
          --max-cost <USD>         Stop the turn once it has cost this, e.g. 0.5
          --instructions <TEXT>    Standing text; sent again only when it changes
          --notify-url <URL>       Tell this address how it ends (daemon only)
          --file <F>               Add a text file to the message (may be repeated)
          --if-busy <IF_BUSY>      While another turn runs [default: wait] [possible
                                   values: wait, fail]
          --idempotency-key <KEY>  Send at most once, however often repeated
          --must-save              Exit 10 if the session could not be saved
          --confirm                Continue a conversation that asks first
          --keep-background        Keep what it leaves running until `cancel`
          --detach                 Return at once; the turn runs on
          --stream                 Print events as JSON lines while they happen

    Examples:
      rejoin send "fix the failing test"
      rejoin send -c last "and the other one"
      git diff | rejoin send -k review-42 -

    Everywhere: --json, -q, --config FILE, -h
    "#);
    assert_snapshot!(help(&world, &["open"]), @r#"
    Go on with a conversation in the agent's own terminal interface

    Usage: rejoin open [OPTIONS] [CONV]

    Arguments:
      [CONV]  Conversation: handle, id, key, or `last` [default: last]

    Options:
      -a, --agent <AGENT>  Agent; else the one of the newest turn

    Examples:
      rejoin open last               with the agent that answered last
      rejoin open tmqx -a codex      with another that knows all that was said

    Everywhere: --json, -q, --config FILE, -h
    "#);
    assert_snapshot!(help(&world, &["export"]), @r#"
    Write a conversation into one file that can be imported anywhere

    Usage: rejoin export [OPTIONS] [CONV]

    Arguments:
      [CONV]  Conversation: handle, id, key, or `last` [default: last]

    Options:
      -o, --output <FILE>  Write to this file instead of stdout
          --envelope       Only its session, as {"sessionId","sessionBlob"}
      -a, --agent <AGENT>  The agent of that session

    Examples:
      rejoin export last >talk.rejoin
      rejoin export tmqx -o talk.rejoin
      rejoin export tmqx | ssh elsewhere rejoin import -

    Everywhere: --json, -q, --config FILE, -h
    "#);
    assert_snapshot!(help(&world, &["import"]), @r#"
    Bring in a conversation that was exported elsewhere

    Usage: rejoin import [OPTIONS] <FILE>

    Arguments:
      <FILE>  The archive; `-`: stdin

    Options:
          --as-copy            A conversation of its own, under new ids
      -k, --key <KEY>          Give it this key
      -w, --workdir <DIR>      Its working folder; default: this one
          --permission <MODE>  What the agent may do: read-only, edit, full, ask
          --envelope           A session from FILE, a URL, or `env` (see docs)
      -a, --agent <AGENT>      The agent of that session [default: claude]

    Examples:
      rejoin import talk.rejoin
      ssh elsewhere rejoin export tmqx | rejoin import -
      rejoin import talk.rejoin --as-copy -w .

    Everywhere: --json, -q, --config FILE, -h
    "#);
    assert_snapshot!(help(&world, &["watch"]), @r#"
    Follow a running turn; leaving does not stop it

    Usage: rejoin watch [OPTIONS] [CONV]

    Arguments:
      [CONV]  Conversation or turn [default: last]

    Options:
          --stream  Print events as JSON lines

    Everywhere: --json, -q, --config FILE, -h
    "#);
    assert_snapshot!(help(&world, &["wait"]), @r#"
    Wait for a turn and print its answer

    Usage: rejoin wait [OPTIONS] [TURN]

    Arguments:
      [TURN]  Turn, message or conversation [default: last]

    Everywhere: --json, -q, --config FILE, -h
    "#);
    assert_snapshot!(help(&world, &["cancel"]), @r"
    Stop a turn, or end what it kept running

    Usage: rejoin cancel [OPTIONS] [TURN]

    Arguments:
      [TURN]  Turn, message or conversation [default: last]

    Everywhere: --json, -q, --config FILE, -h
    ");
    assert!(help(&world, &["reply"]).starts_with("Send a message to the conversation last used"));
}

#[test]
fn look_and_change() {
    let world = world();
    assert_snapshot!(help(&world, &["list"]), @r"
    List conversations, newest first

    Usage: rejoin list [OPTIONS]

    Options:
          --here             Only those of this folder
          --state <STATE>    Only those in this state [possible values: idle,
                             queued, running, waiting]
          --agent <AGENT>    Only those whose newest turn this agent answered
          --archived         Those that were put away
      -n <N>                 How many [default: 20]
          --cursor <CURSOR>  Go on after a page; its next_cursor is in --json

    Examples:
      rejoin list --here             those of this folder
      rejoin list --state running    what is going on now
      rejoin list --json -n 100      for a script; go on with --cursor

    Everywhere: --json, -q, --config FILE, -h
    ");
    assert_snapshot!(help(&world, &["show"]), @r"
    Show a conversation: its messages, and how each turn was continued

    Usage: rejoin show [OPTIONS] [CONV]

    Arguments:
      [CONV]  Conversation (handle, id, key, or `last`), or messages of it (tmqx:4,
              tmqx:10-20) [default: last]

    Options:
      -n, --last <N>       The last N messages only
          --markdown       Print a markdown document
          --all            Also what was removed, and earlier words
          --bundle <FILE>  The conversation in this file

    Examples:
      rejoin show                    the last one in this folder
      rejoin show tmqx:4             message 4 of tmqx; piped: its very text
      rejoin show tmqx:10-20         messages 10 to 20
      rejoin show tmqx --markdown >talk.md

    Everywhere: --json, -q, --config FILE, -h
    ");
    assert_snapshot!(help(&world, &["explain"]), @r#"
    Say why a turn went as it did, or what the next one would do

    Usage: rejoin explain [OPTIONS] [TURN]

    Arguments:
      [TURN]  Turn, message or conversation; a conversation means its last turn
              [default: last]

    Options:
          --next           What would happen if you sent a message now
      -a, --agent <AGENT>  With --next: if this agent answered
      -w, --workdir <DIR>  With --next: in this folder
      -m, --model <MODEL>  With --next: with this model
          --raw            Show every check, and the command in full
          --bundle <FILE>  Of the conversation in this file

    Examples:
      rejoin explain                the last turn in this folder
      rejoin explain tmqx:14        the turn that message 14 belongs to
      rejoin explain tmqx --next    what would happen if you sent now

    Everywhere: --json, -q, --config FILE, -h
    "#);
    assert_snapshot!(help(&world, &["reset"]), @r"
    Retire the sessions of a conversation and keep its messages

    Usage: rejoin reset [OPTIONS] [CONV]

    Arguments:
      [CONV]  Conversation: handle, id, key, or `last` [default: last]

    Options:
          --dry-run  Say what it would affect, and change nothing

    Everywhere: --json, -q, --config FILE, -h
    ");
}

/// Each on one screen, with an example where there is more than one way.
#[test]
fn change_a_history() {
    let world = world();
    for command in [
        "edit", "truncate", "retry", "fork", "merge", "undo", "set", "rename", "archive", "delete",
        "search", "open", "adopt",
    ] {
        let text = help(&world, &[command]);
        assert!(text.contains(&format!("Usage: rejoin {command}")), "{text}");
    }
    let edit = help(&world, &["edit"]);
    assert!(
        edit.contains("--dry-run") && edit.contains("rejoin undo"),
        "{edit}"
    );
}

#[test]
fn set_up() {
    let world = world();
    assert_snapshot!(help(&world, &["demo"]), @r#"
    Show what rejoin does: a few seconds, no key, no network, nothing left behind

    Usage: rejoin demo [OPTIONS]



    Everywhere: --json, -q, --config FILE, -h
    "#);
    assert_snapshot!(help(&world, &["doctor"]), @r#"
    Check agents, logins, configuration and store

    Usage: rejoin doctor [OPTIONS]

    Options:
          --prove [<AGENT>]  Prove what installed agents do: all, or this one

    Examples:
      rejoin doctor
      rejoin doctor --prove claude    does this very binary resume?

    Everywhere: --json, -q, --config FILE, -h
    "#);
    assert_snapshot!(help(&world, &["config"]), @r#"
    Show the configuration, and where each value comes from

    Usage: rejoin config [OPTIONS] <COMMAND>

    Commands:
      show    Print every value with where it came from: default, file and line, or
              variable
      path    Print the files that are read, in order
      schema  Print a JSON Schema of the file, for your editor
    "#);
    assert_snapshot!(help(&world, &["trust"]), @r#"
    Let a repository's own files choose programs, servers, environment and
    permissions

    Usage: rejoin trust [OPTIONS] [PATH]

    Arguments:
      [PATH]  A folder, or the rejoin.toml in it; default: here

    Options:
      -n, --dry-run  Only show what it would allow
          --list     List the files you trust
          --revoke   Trust it no longer

    Examples:
      rejoin trust --dry-run     see what it would allow
      rejoin trust               allow it
      rejoin trust --revoke      take it back

    Everywhere: --json, -q, --config FILE, -h
    "#);
    assert_snapshot!(help(&world, &["completions"]), @r#"
    Print the completion script of a shell

    Usage: rejoin completions [OPTIONS] <SHELL>

    Arguments:
      <SHELL>  [possible values: bash, zsh, fish]

    Handles are completed live. To install:
      bash   echo 'source <(rejoin completions bash)' >>~/.bashrc
      zsh    echo 'source <(rejoin completions zsh)' >>~/.zshrc
      fish   rejoin completions fish >~/.config/fish/completions/rejoin.fish

    Everywhere: --json, -q, --config FILE, -h
    "#);
    assert_snapshot!(help(&world, &["model-server"]), @r#"
    Run a scripted model on loopback, for running a coding CLI offline

    Usage: rejoin model-server [OPTIONS]

    Options:
          --port <PORT>  Port; 0 takes any that is free [default: 0]
          --log <FILE>   Append every request to this file, as JSON lines
          --strict       Refuse a history that the real API would refuse

    Everywhere: --json, -q, --config FILE, -h
    "#);
}

#[test]
fn flags_for_every_command_stand_before_or_after_it() {
    let world = world();
    let before = world.run(&["--json", "-q", "list"]).ok();
    assert_eq!(
        before.stdout,
        world.run(&["list", "-q", "--json"]).ok().stdout
    );
    assert!(before.json()["conversations"].is_array());
}

/// The engine asks the binary itself, so handles are those of this very moment.
#[test]
fn a_shell_is_offered_live_handles() {
    let world = world();
    let turn = world
        .run(&[
            "send",
            "-a",
            "demo",
            "--json",
            "a title\x1b[2J to find it by",
        ])
        .ok()
        .json();
    let handle = turn["handle"]
        .as_str()
        .unwrap()
        .split(':')
        .next()
        .unwrap()
        .to_owned();
    let ask = |words: &[&str]| {
        let at = (words.len() - 1).to_string();
        let mut command = world.command(&[&["--"], words].concat());
        command
            .env("_REJOIN_COMPLETE", "fish")
            .env("_CLAP_COMPLETE_INDEX", at)
            .env("_CLAP_IFS", "\n");
        rejoin_testkit::Done::of(command.spawn().unwrap())
            .ok()
            .stdout
    };
    for words in [
        &["rejoin", "show", ""][..],
        &["rejoin", "send", "-c", ""],
        &["rejoin", "explain", &handle[..2]],
    ] {
        let offered = ask(words);
        assert!(
            offered.contains(&format!("{handle}\ta title")),
            "{words:?}: {offered:?}"
        );
    }
    assert!(ask(&["rejoin", "send", "-a", "d"]).starts_with("demo"));
    let commands = ask(&["rejoin", "ex"]);
    assert!(
        commands.starts_with("explain\t") && !ask(&["rejoin", ""]).contains("run-turn"),
        "{commands:?}"
    );
}

#[test]
fn completion_scripts_are_accepted_by_the_shells_that_are_installed() {
    let world = world();
    for shell in ["bash", "zsh", "fish"] {
        let script = world.run(&["completions", shell]).ok().stdout;
        assert!(script.contains("_REJOIN_COMPLETE"), "{script}");
        let file = world.root().join(shell);
        std::fs::write(&file, script).unwrap();
        match std::process::Command::new(shell)
            .arg("-n")
            .arg(&file)
            .output()
        {
            Ok(done) => assert!(done.status.success(), "{shell}: {done:?}"),
            Err(_) => eprintln!("{shell} is not installed; its script is not checked"),
        }
    }
}

#[test]
fn one_manual_page_per_command() {
    let world = world();
    let folder = world.root().join("man");
    world.run(&["man", folder.to_str().unwrap()]).ok();
    let mut pages: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    pages.sort();
    assert_snapshot!(pages.join(" "), @r"rejoin-adopt.1 rejoin-answer.1 rejoin-archive.1 rejoin-cancel.1 rejoin-completions.1 rejoin-config-path.1 rejoin-config-schema.1 rejoin-config-show.1 rejoin-config.1 rejoin-delete.1 rejoin-demo.1 rejoin-doctor.1 rejoin-edit.1 rejoin-explain.1 rejoin-export.1 rejoin-fork.1 rejoin-import.1 rejoin-inbox.1 rejoin-list.1 rejoin-login.1 rejoin-logout.1 rejoin-merge.1 rejoin-model-server.1 rejoin-open.1 rejoin-rename.1 rejoin-reply.1 rejoin-reset.1 rejoin-retry.1 rejoin-search.1 rejoin-send.1 rejoin-serve.1 rejoin-set.1 rejoin-show.1 rejoin-snapshot-list.1 rejoin-snapshot-pin.1 rejoin-snapshot-restore.1 rejoin-snapshot-save.1 rejoin-snapshot-unpin.1 rejoin-snapshot-verify.1 rejoin-snapshot.1 rejoin-sweep.1 rejoin-token-create.1 rejoin-token-list.1 rejoin-token-revoke.1 rejoin-token.1 rejoin-truncate.1 rejoin-trust.1 rejoin-undo.1 rejoin-wait.1 rejoin-watch.1 rejoin.1");
    let page = std::fs::read_to_string(folder.join("rejoin-send.1")).unwrap();
    assert!(
        page.contains("\\-\\-idempotency\\-key") && page.contains("\\-\\-json"),
        "{page}"
    );
}
