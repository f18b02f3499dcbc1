//! The pages of what is kept and what travels.

use insta::assert_snapshot;

use super::help;
use crate::suite::terminal::world;

#[test]
fn keep() {
    let world = world();
    assert_snapshot!(help(&world, &["snapshot"]), @r"
    Manage snapshots of sessions: list, verify, save, restore, pin

    Usage: rejoin snapshot [OPTIONS] <COMMAND>

    Commands:
      list     List snapshots, newest first
      verify   Check that snapshots can be restored
      save     Save a snapshot of a conversation's session now
      restore  Restore a session to the place where its agent reads it
      pin      Keep a snapshot, regardless of the configuration
      unpin    Let a snapshot expire as configured
    ");
    assert_snapshot!(help(&world, &["snapshot", "list"]), @r"
    List snapshots, newest first

    Usage: rejoin snapshot list [OPTIONS] [CONV]

    Arguments:
      [CONV]  Conversation: handle, id, key, or `last`

    Options:
      -n <N>  Maximum number of results [default: 20]

    Examples:
      rejoin snapshot list
      rejoin snapshot list tmqx --json

    Everywhere: --json, -q, --config FILE, -h
    ");
    assert_snapshot!(help(&world, &["snapshot", "verify"]), @r"
    Check that snapshots can be restored

    Usage: rejoin snapshot verify [OPTIONS] [CONV]

    Arguments:
      [CONV]  Conversation: handle, id, key, or `last`

    Options:
          --read-data  Read, open and compare every chunk

    Examples:
      rejoin snapshot verify
      rejoin snapshot verify tmqx --read-data

    Everywhere: --json, -q, --config FILE, -h
    ");
    assert_snapshot!(help(&world, &["snapshot", "save"]), @r"
    Save a snapshot of a conversation's session now

    Usage: rejoin snapshot save [OPTIONS] [CONV]

    Arguments:
      [CONV]  Conversation: handle, id, key, or `last` [default: last]

    Options:
      -a, --agent <AGENT>  Agent; default: the agent of the newest turn

    Examples:
      rejoin snapshot save tmqx
      rejoin doctor    lists sessions that are not saved

    Everywhere: --json, -q, --config FILE, -h
    ");
    assert_snapshot!(help(&world, &["snapshot", "restore"]), @r"
    Restore a session to the place where its agent reads it

    Usage: rejoin snapshot restore [OPTIONS] [CONV]

    Arguments:
      [CONV]  Conversation: handle, id, key, or `last` [default: last]

    Options:
      -a, --agent <AGENT>  Agent; default: the agent of the newest turn
      -w, --workdir <DIR>  Working folder; default: the conversation's
          --id <ID>        Write the files of this snapshot into --to instead
          --to <DIR>       Target folder

    Examples:
      rejoin snapshot restore tmqx
      rejoin snapshot restore --id 3f0a91c2 --to /tmp/look

    Everywhere: --json, -q, --config FILE, -h
    ");
    assert_snapshot!(help(&world, &["snapshot", "pin"]), @r"
    Keep a snapshot, regardless of the configuration

    Usage: rejoin snapshot pin [OPTIONS] <ID>

    Arguments:
      <ID>  Snapshot: its id, or the end of it

    Examples:
      rejoin snapshot list tmqx
      rejoin snapshot pin 3f0a91c2

    Everywhere: --json, -q, --config FILE, -h
    ");
    assert_snapshot!(help(&world, &["snapshot", "unpin"]), @r"
    Let a snapshot expire as configured

    Usage: rejoin snapshot unpin [OPTIONS] <ID>

    Arguments:
      <ID>  Snapshot: its id, or the end of it

    Examples:
      rejoin snapshot unpin 3f0a91c2

    Everywhere: --json, -q, --config FILE, -h
    ");
    assert_snapshot!(help(&world, &["sweep"]), @r"
    Remove expired snapshots, unused chunks and streamed pieces of old texts

    Usage: rejoin sweep [OPTIONS]

    Options:
          --dry-run  Show what would be removed, change nothing

    Examples:
      rejoin sweep --dry-run    shows what would be removed
      rejoin sweep

    Everywhere: --json, -q, --config FILE, -h
    ");
}
