//! Help, completions, manual pages.

mod completions;
mod keep;
mod manual;

use insta::assert_snapshot;
use rejoin_testkit::World;

use super::terminal::world;

fn help(world: &World, command: &[&str]) -> String {
    let done = world.run(&[command, &["-h"]].concat()).ok();
    assert_eq!(done.stderr, "");
    assert!(
        done.stdout.lines().all(|line| line.chars().count() <= 80),
        "{}",
        done.stdout
    );
    let lines = done.stdout.lines().count();
    assert!(lines < 24, "{lines} lines: {}", done.stdout);
    done.stdout
}

#[test]
fn the_first_page() {
    let world = world();
    assert_snapshot!(help(&world, &[]), @r"
    Keep conversations with coding agents going across processes and machines
    Talk:
      send, reply, chat, open  Send a message; to the last one; chat; its terminal
      workflow, watch, wait    Steps in a file; follow a turn; wait for its answer
      cancel, inbox, answer    Stop it; open questions; answer one
      escalate, export, import Climb; a conversation to a file; and back
    Look:
      list, search, show, diff Conversations; find text; one of them; file changes
      explain, costs, chain    Why a turn had its verdict; costs; chains
      handoff, events, share   What a tier is told; its events; a link to read it
    Change:
      edit, retry, fork, merge Change a message; rerun it; branch off; combine two
      undo, reset, set, seen   Undo a change; new sessions; settings; mark as read
      truncate, rename, delete Remove the end; change the title; delete permanently
      archive, snapshot, sweep Hide; saved sessions; free space
      tiers, schedule, hold    Tiers; schedules: list, run, pause; stop climbs
    Set up:
      demo, adopt, completions Try it without a key; bring in sessions; for a shell
      model-server, serve      An offline model; the daemon and its API
      prompt, doctor, config   For shell prompts; check the set-up; values
      trust, models, pair      Trust a repository; models in use; pair a browser
      token, login, logout     Access to the daemon; use a remote one; log out
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
      [PROMPT]  The message; `-` or none: stdin, or your $EDITOR

    Options:
      -c, --conversation <CONV>  Continue this one: handle, id, key, or `last`
      -k, --key <KEY>            Continue the one with this key, or start it
      -a, --agent <AGENT>        Agent; default: the agent of the newest turn
      -w, --workdir <DIR>        Working folder; default: the conversation's
      -m, --model <MODEL>        Model
          --permission <MODE>    Permissions: read-only, edit, full, ask
          --fresh-session        Start a new session with the transcript
          --file <F>             Add a text file to the message (may be repeated)
          --detach               Return at once; the turn runs in the background

    Examples:
      rejoin send "fix the failing test"
      git diff | rejoin send -k review-42 "review this"

    Everywhere: --json, -q, --config FILE, -h; all options: --help
    "#);
    assert_snapshot!(help(&world, &["open"]), @r"
    Continue a conversation in the agent's own terminal interface

    Usage: rejoin open [OPTIONS] [CONV]

    Arguments:
      [CONV]  Conversation: handle, id, key, or `last` [default: last]

    Options:
      -a, --agent <AGENT>  Agent; default: the agent of the newest turn

    Examples:
      rejoin open last               with the agent that answered last
      rejoin open tmqx -a codex      with another agent that has seen every message

    Everywhere: --json, -q, --config FILE, -h
    ");
    assert_snapshot!(help(&world, &["export"]), @r#"
    Export a conversation as one file that can be imported anywhere

    Usage: rejoin export [OPTIONS] [CONV]

    Arguments:
      [CONV]  Conversation: handle, id, key, or `last` [default: last]

    Options:
      -o, --output <FILE>  Write to this file instead of stdout
          --format <FORM>  Form of the file: an archive for import, or a document
                           [default: archive] [possible values: archive, markdown,
                           json]
          --keep-secrets   Leave secrets in a document
          --envelope       Only its session, as {"sessionId","sessionBlob"}
      -a, --agent <AGENT>  The agent of that session

    Examples:
      rejoin export last >talk.rejoin
      rejoin export tmqx -o talk.rejoin
      rejoin export tmqx | ssh elsewhere rejoin import -

    Everywhere: --json, -q, --config FILE, -h
    "#);
    assert_snapshot!(help(&world, &["import"]), @r"
    Import a conversation that was exported elsewhere

    Usage: rejoin import [OPTIONS] <FILE>

    Arguments:
      <FILE>  The archive; `-`: read stdin

    Options:
          --as-copy            Import as a new conversation with new ids
      -k, --key <KEY>          Key of the new conversation
      -w, --workdir <DIR>      Working folder; default: this one
          --permission <MODE>  Permissions: read-only, edit, full, ask
          --envelope           A session from FILE, a URL, or `env` (see docs)
      -a, --agent <AGENT>      The agent of that session [default: claude]

    Examples:
      rejoin import talk.rejoin
      ssh elsewhere rejoin export tmqx | rejoin import -
      rejoin import talk.rejoin --as-copy -w .

    Everywhere: --json, -q, --config FILE, -h
    ");
    assert_snapshot!(help(&world, &["watch"]), @r"
    Follow a running turn; Ctrl-C does not stop it

    Usage: rejoin watch [OPTIONS] [CONV]

    Arguments:
      [CONV]  Conversation or turn [default: last]

    Options:
          --stream  Print events as JSON lines

    Everywhere: --json, -q, --config FILE, -h
    ");
    assert_snapshot!(help(&world, &["wait"]), @r"
    Wait for a turn and print its answer

    Usage: rejoin wait [OPTIONS] [TURN]

    Arguments:
      [TURN]  Turn, message or conversation [default: last]

    Everywhere: --json, -q, --config FILE, -h
    ");
    assert_snapshot!(help(&world, &["cancel"]), @r"
    Stop a turn, or end the processes that it kept

    Usage: rejoin cancel [OPTIONS] [TURN]

    Arguments:
      [TURN]  Turn, message or conversation [default: last]

    Everywhere: --json, -q, --config FILE, -h
    ");
    assert!(
        help(&world, &["reply"])
            .starts_with("Send a message to the last conversation of this folder")
    );
}

/// `-h` leaves out rare options and says how to see them.
#[test]
fn every_option_is_listed_on_request() {
    let world = world();
    for (command, rare) in [
        ("send", "--idempotency-key"),
        ("reply", "--must-save"),
        ("explain", "--permission"),
    ] {
        let short = help(&world, &[command]);
        assert!(
            !short.contains(rare) && short.contains("all options: --help"),
            "{short}"
        );
        let all = world.run(&[command, "--help"]).ok().stdout;
        assert!(all.contains(rare) && !all.contains("all options"), "{all}");
    }
}

#[test]
fn look_and_change() {
    let world = world();
    assert_snapshot!(help(&world, &["list"]), @r"
    List conversations, newest first

    Usage: rejoin list [OPTIONS]

    Options:
          --here             Only conversations of this folder
          --state <STATE>    Only conversations in this state [possible values:
                             idle, queued, running, waiting]
          --agent <AGENT>    Only if this agent answered the newest turn
          --archived         List archived conversations
          --since <TIME>     Only conversations used since, e.g. 24h, 7d
          --title <TITLE>    Only conversations whose title contains this
      -k, --key <KEY>        Only the conversation with this key
          --counts           With --json: add the number of conversations by state
      -n <N>                 Maximum number of results [default: 20]
          --cursor <CURSOR>  Continue after a page: next_cursor of --json

    Examples:
      rejoin list --here             conversations of this folder
      rejoin list --state running    turns that run now
      rejoin list --json -n 100      for a script; continue with --cursor

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
          --all            Include removed messages and earlier versions
          --no-pager       Do not page ($REJOIN_PAGER, $PAGER or less)
          --bundle <FILE>  Read the conversation in this file

    Examples:
      rejoin show                    the last one in this folder
      rejoin show tmqx:4             message 4 of tmqx; piped: its exact text
      rejoin show tmqx:10-20         messages 10 to 20
      rejoin show tmqx --markdown >talk.md

    Everywhere: --json, -q, --config FILE, -h
    ");
    assert_snapshot!(help(&world, &["explain"]), @r"
    Explain the verdict of a turn, or predict the next one

    Usage: rejoin explain [OPTIONS] [TURN]

    Arguments:
      [TURN]  Turn, message or conversation; a conversation means its last turn
              [default: last]

    Options:
          --next           Predict the turn of a message sent now
      -a, --agent <AGENT>  With --next: for this agent
      -w, --workdir <DIR>  With --next: in this folder
      -m, --model <MODEL>  With --next: with this model
          --raw            Show every check, and the whole command
          --prompt         Show what the agent was told, without secrets
          --bundle <FILE>  Explain a turn of the conversation in this file

    Examples:
      rejoin explain                the last turn in this folder
      rejoin explain tmqx:14        the turn that message 14 belongs to
      rejoin explain tmqx --next    predicts the next turn

    Everywhere: --json, -q, --config FILE, -h; all options: --help
    ");
    assert_snapshot!(help(&world, &["reset"]), @r"
    Retire the sessions of a conversation and keep its messages

    Usage: rejoin reset [OPTIONS] [CONV]

    Arguments:
      [CONV]  Conversation: handle, id, key, or `last` [default: last]

    Options:
          --dry-run  Show the effect, and change nothing

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
    assert_snapshot!(help(&world, &["demo"]), @r"
    Run a short demo conversation: no key, no network, leaves no files

    Usage: rejoin demo [OPTIONS]



    Everywhere: --json, -q, --config FILE, -h
    ");
    assert_snapshot!(help(&world, &["doctor"]), @r"
    Check agents, logins, configuration and store

    Usage: rejoin doctor [OPTIONS]

    Options:
          --prove [<AGENT>]  Test installed agents: all, or this one

    Examples:
      rejoin doctor
      rejoin doctor --prove claude    tests whether this binary resumes

    Everywhere: --json, -q, --config FILE, -h
    ");
    assert_snapshot!(help(&world, &["config"]), @r"
    Show or change the configuration

    Usage: rejoin config [OPTIONS] <COMMAND>

    Commands:
      show    Print every value and its source: default, file and line, or variable
      path    Print the files that are read, in order
      schema  Print a JSON Schema of the file, for your editor
      set     Set a key; a list is written a,b
      unset   Remove a key
      edit    Open the file in your $EDITOR; a wrong file is refused

    Examples:
      rejoin config show                        every value and its source
      rejoin config set default_agent codex
      rejoin config set notify.on waiting,failed
    ");
    assert_snapshot!(help(&world, &["trust"]), @r"
    Trust a repository's files to choose programs, servers and permissions

    Usage: rejoin trust [OPTIONS] [PATH]

    Arguments:
      [PATH]  A folder, or the rejoin.toml in it; default: this folder

    Options:
      -n, --dry-run  Only show what trust would allow
          --list     List the files you trust
          --revoke   Revoke the trust

    Examples:
      rejoin trust --dry-run     shows what trust would allow
      rejoin trust               allow it
      rejoin trust --revoke      revoke the trust

    Everywhere: --json, -q, --config FILE, -h
    ");
    assert_snapshot!(help(&world, &["completions"]), @r"
    Print the completion script of a shell

    Usage: rejoin completions [OPTIONS] <SHELL>

    Arguments:
      <SHELL>  [possible values: bash, zsh, fish]

    Handles are completed live. To install:
      bash   echo 'source <(rejoin completions bash)' >>~/.bashrc
      zsh    echo 'source <(rejoin completions zsh)' >>~/.zshrc
      fish   rejoin completions fish >~/.config/fish/completions/rejoin.fish

    Everywhere: --json, -q, --config FILE, -h
    ");
    assert_snapshot!(help(&world, &["model-server"]), @r"
    Run a scripted model on loopback, for running a coding CLI offline

    Usage: rejoin model-server [OPTIONS]

    Options:
          --port <PORT>  Port; 0: any free port [default: 0]
          --log <FILE>   Append every request to this file, as JSON lines
          --strict       Refuse a history that the real API would refuse

    Everywhere: --json, -q, --config FILE, -h
    ");
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
