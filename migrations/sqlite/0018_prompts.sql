-- Text that rejoin added to the message of a run, compressed: transcript, catch-up, handoff, notices.
create table prompts (
    turn_id blob    not null references turns (id) on delete cascade,
    n       integer not null,
    context blob    not null,
    primary key (turn_id, n)
) strict;

-- Roots of chains, newest first.
create index turns_chains on turns (namespace, id) where chain_id is not null and parent_turn_id is null;
