//! The pages of what is kept and what travels.

use insta::assert_snapshot;

use super::help;
use crate::suite::terminal::world;

#[test]
fn keep() {
    let world = world();
    assert_snapshot!(help(&world, &["snapshot"]), @r#"
    Sessions that are kept: list, check, save and restore them

    Usage: rejoin snapshot [OPTIONS] <COMMAND>

    Commands:
      list     List the sessions that are kept, newest first
      verify   Check that what was kept can be restored
      save     Save the session of a conversation now
      restore  Put a session back where its agent looks for it
      pin      Keep a snapshot, whatever the configuration says
      unpin    Let a snapshot go when its time comes
    "#);
    assert_snapshot!(help(&world, &["snapshot", "list"]), @r#"
    List the sessions that are kept, newest first

    Usage: rejoin snapshot list [OPTIONS] [CONV]

    Arguments:
      [CONV]  Only of this conversation: handle, id, key, or `last`

    Options:
      -n <N>  How many [default: 20]

    Examples:
      rejoin snapshot list
      rejoin snapshot list tmqx --json

    Everywhere: --json, -q, --config FILE, -h
    "#);
    assert_snapshot!(help(&world, &["snapshot", "verify"]), @r#"
    Check that what was kept can be restored

    Usage: rejoin snapshot verify [OPTIONS] [CONV]

    Arguments:
      [CONV]  Only of this conversation: handle, id, key, or `last`

    Options:
          --read-data  Read, open and compare every chunk

    Examples:
      rejoin snapshot verify
      rejoin snapshot verify tmqx --read-data

    Everywhere: --json, -q, --config FILE, -h
    "#);
    assert_snapshot!(help(&world, &["snapshot", "save"]), @r#"
    Save the session of a conversation now

    Usage: rejoin snapshot save [OPTIONS] [CONV]

    Arguments:
      [CONV]  Conversation: handle, id, key, or `last` [default: last]

    Options:
      -a, --agent <AGENT>  Agent; else the one of the newest turn

    Examples:
      rejoin snapshot save tmqx
      rejoin doctor    says which are not saved

    Everywhere: --json, -q, --config FILE, -h
    "#);
    assert_snapshot!(help(&world, &["snapshot", "restore"]), @r#"
    Put a session back where its agent looks for it

    Usage: rejoin snapshot restore [OPTIONS] [CONV]

    Arguments:
      [CONV]  Conversation: handle, id, key, or `last` [default: last]

    Options:
      -a, --agent <AGENT>  Agent; else the one of the newest turn
      -w, --workdir <DIR>  Working folder; else the conversation's
          --id <ID>        Write the files of this snapshot into a folder instead
          --to <DIR>       That folder

    Examples:
      rejoin snapshot restore tmqx
      rejoin snapshot restore --id 3f0a91c2 --to /tmp/look

    Everywhere: --json, -q, --config FILE, -h
    "#);
    assert_snapshot!(help(&world, &["snapshot", "pin"]), @r#"
    Keep a snapshot, whatever the configuration says

    Usage: rejoin snapshot pin [OPTIONS] <ID>

    Arguments:
      <ID>  Snapshot: its id, or the end of it

    Examples:
      rejoin snapshot list tmqx
      rejoin snapshot pin 3f0a91c2

    Everywhere: --json, -q, --config FILE, -h
    "#);
    assert_snapshot!(help(&world, &["snapshot", "unpin"]), @r#"
    Let a snapshot go when its time comes

    Usage: rejoin snapshot unpin [OPTIONS] <ID>

    Arguments:
      <ID>  Snapshot: its id, or the end of it

    Examples:
      rejoin snapshot unpin 3f0a91c2

    Everywhere: --json, -q, --config FILE, -h
    "#);
    assert_snapshot!(help(&world, &["sweep"]), @r#"
    Give up old snapshots, and free what nothing needs any more

    Usage: rejoin sweep [OPTIONS]

    Options:
          --dry-run  Show what would go, change nothing

    Examples:
      rejoin sweep --dry-run    shows what would go
      rejoin sweep

    Everywhere: --json, -q, --config FILE, -h
    "#);
}
