//! The first minutes on a terminal.

use insta::assert_snapshot;

use crate::suite::terminal::{Terminal, masked, world};

/// The README's first steps, typed by a person at 80x24.
#[test]
fn first_use_on_a_terminal() {
    let world = world();
    let Some(terminal) = Terminal::open(&world) else {
        return;
    };
    let seen = |command: &str| masked(&world, &terminal.run(command));
    assert_snapshot!(seen("rejoin"), @r#"
    $ rejoin
    rejoin keeps a conversation with a coding agent going.

      rejoin demo          see what it does: ten seconds, no key
      rejoin send "hello"  start a conversation in this folder
      rejoin --help        everything else
    $
    "#);
    assert_snapshot!(seen("rejoin demo"), @r#"
    rejoin: resumed, knows all 2 messages · tmqx:4 · demo demo · 36 in (0% cached)
    30 out · $0.00 · 0.1s

    # Now the agent's session file is deleted. It comes back from a snapshot, byte
    for byte.
    $ rm -r ~/.rejoin-demo; rejoin reply "What do I like?"
    You said “What do I like?”. Before that you told me: “My name is Ada and I like
    tea.”, “What is my name?”.
    rejoin: restored from snapshot 14:31 by ada · tmqx:6 · demo demo · 71 in (0%
    cached) 38 out · $0.00 · 0.1s

    # Now a message is edited. The session has seen the old text, so a new session
    gets the new transcript.
    $ rejoin edit last:1 "My name is Eve and I like coffee."; rejoin reply "And
    now?"
    You said “And now?”. Before that you told me: “My name is Eve and I like
    coffee.”, “What is my name?”, “What do I like?”.
    rejoin: reseeded, history_changed: message 1 was edited · told 6 of 6 messages
    · tmqx:8 · demo demo · 226 in (0% cached) 45 out · $0.00 · 0.1s · rejoin
    explain tmqx

    The demo left no files. With a coding agent installed: rejoin send "hello"
    and then: rejoin reply "what did I say?", rejoin explain, rejoin list
    $
    "#);
    assert_snapshot!(seen("rejoin send hello"), @r#"
    $ rejoin send hello
    error: claude is not installed: `claude` was not found; nothing was sent
      try: npm install -g @anthropic-ai/claude-code
    $
    "#);
    assert_snapshot!(seen("rejoin send -a demo 'My name is Ada.'"), @r#"
    $ rejoin send -a demo 'My name is Ada.'
    You said “My name is Ada.”. Nothing came before it.
    started · $0.00 · 0.1s · demo · tmqx:2
    $
    "#);
    assert_snapshot!(seen("rejoin reply 'What is my name?'"), @r#"
    $ rejoin reply 'What is my name?'
    You said “What is my name?”. Before that you told me: “My name is Ada.”.
    resumed, knows all 2 messages · $0.00 · 0.1s · demo · tmqx:4
    $
    "#);
    assert_snapshot!(seen("rejoin explain"), @r#"
    $ rejoin explain
    resumed: demo knows all 2 messages               tmqx:4  demo 0.1.0  today 14:31
      ok    capability  resume proven on this binary
      ok    history     seen through message 2 of 2
      ok    folder      same folder
      ok    runtime     same product and version, rejoin demo agent 0.1.0
      ok    context     5 of 200000 tokens (0.0 %, limit 80 %)
      ok    bytes       untouched since confirmed
      ok    also        session, breaker, present, in use, model, compaction
    sent      only the new message; 16 bytes
    cost      $0.00; 28 in (0% cached), 26 out; 0.1s
    allowed   edit: may change files in the working folder
    session   5e551043-0000-4000-8000-000000000000
    next      resumes, unless something changes (rejoin explain tmqx --next)
    command   rejoin demo-agent --resume 5e551043-0000-4000-8000-000000000000
    $
    "#);
    assert_snapshot!(seen("rejoin explain --next"), @r#"
    $ rejoin explain --next
    would resume: demo knows all 4 messages                         tmqx  demo 0.1.0
      ok    capability  resume proven on this binary
      ok    history     seen through message 4 of 4
      ok    folder      same folder
      ok    runtime     same product and version, rejoin demo agent 0.1.0
      ok    context     28 of 200000 tokens (0.0 %, limit 80 %)
      ok    bytes       untouched since confirmed
      ok    also        session, breaker, present, in use, model, compaction
    sends     only your message
    costs     ≈ $0.00, by what earlier turns cost
    allows    edit: may change files in the working folder
    $
    "#);
    assert_snapshot!(seen("rm -r ~/.rejoin-demo; rejoin reply 'Still there?'"), @r"
    $ rm -r ~/.rejoin-demo; rejoin reply 'Still there?'
    You said “Still there?”. Before that you told me: “My name is Ada.”, “What is my
     name?”.
    restored from snapshot 14:31 by ada · $0.00 · 0.1s · demo · tmqx:6
    $
    ");
    assert_snapshot!(seen("rejoin explain"), @r"
    $ rejoin explain
    restored from a snapshot: demo knows all 4 messages
                                                     tmqx:6  demo 0.1.0  today 14:31
      ok    capability  resume proven on this binary
      ok    history     seen through message 4 of 4
      ok    folder      same folder
      ok    runtime     same product and version, rejoin demo agent 0.1.0
      ok    context     28 of 200000 tokens (0.0 %, limit 80 %)
      ok    also        session, breaker, present, in use, model, compaction,
                        snapshot
    why       the session's file was gone; its snapshot was put in its place
    sent      only the new message; 12 bytes
    cost      $0.00; 58 in (0% cached), 33 out; 0.1s
    allowed   edit: may change files in the working folder
    session   5e551043-0000-4000-8000-000000000000
    next      resumes, unless something changes (rejoin explain tmqx --next)
    command   rejoin demo-agent --resume 5e551043-0000-4000-8000-000000000000
    $
    ");
    assert_snapshot!(seen("rejoin send -a demo --title 'another one, with a title that does not fit into this table' hi"), @r#"
    $ rejoin send -a demo --title 'another one, with a title that does not fit into
    this table' hi
    You said “hi”. Nothing came before it.
    started · $0.00 · 0.1s · demo · wnly:2
    $
    "#);
    assert_snapshot!(seen("rejoin list"), @r#"
    $ rejoin list
    wnly  now  demo  idle  $0.00  another one, with a title that does not fit into…
    tmqx  now  demo  idle  $0.00  My name is Ada.
    $
    "#);
    assert_snapshot!(seen("rejoin show last"), @r#"
    $ rejoin show last
    wnly  another one, with a title that does not fit into this table    idle  $0.00
    demo · /world/work · edit · 2 messages · since today 14:31

    wnly:1  you                                                          today 14:31
      hi

    wnly:2  demo                                                         today 14:31
      You said “hi”. Nothing came before it.
      │ started: nothing came before · $0.00 · 0.1s
    $
    "#);
    assert_snapshot!(seen("rejoin"), @r#"
    $ rejoin
    Last in this folder
      wnly  now  demo  idle  $0.00  another one, with a title that does not fit int…
      tmqx  now  demo  idle  $0.00  My name is Ada.

      rejoin reply "…"  go on with wnly
      rejoin show wnly  read it
      rejoin send "…"   start another one
    $
    "#);
    assert_snapshot!(seen("rejoin lsit"), @r"
    $ rejoin lsit
    error: unrecognized subcommand 'lsit'; did you mean `list`?
      try: rejoin list
    $
    ");
}
