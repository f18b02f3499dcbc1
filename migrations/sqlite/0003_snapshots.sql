-- Who this store is, in one row: its objects are named after it, so that stores which share a bucket
-- never meet.
create table stores (
    id blob not null primary key
) strict;
insert into stores (id) values (randomblob(16));

-- Every chunk of every snapshot, once for each place where its bytes lie: `db` (in `body`), or the
-- digest of an object store, where they are named after the chunk and `copy`; with a `-` before it
-- once they were missed there. `at`: when somebody last relied on it, so that a sweep leaves alone
-- what is being written.
create table chunks (
    name    blob    not null,
    place   text    not null,
    length  integer not null,
    stored  integer not null,
    body    blob,
    copy    integer,
    at      integer not null,
    primary key (name, place)
) strict;

-- What a session was when it was confirmed (or, while a turn runs, `open`). A row without a manifest
-- says that there was one.
create table snapshots (
    id              blob    not null primary key,
    conversation_id blob    not null references conversations (id) on delete cascade,
    pin_id          blob    not null,
    agent           text    not null,
    session_id      text    not null,
    state           text    not null check (state in ('confirmed', 'open')),
    value           blob    not null,
    messages        integer not null,
    last_seq        integer not null,
    length          integer not null,
    added           integer not null,
    manifest        blob,
    digest          blob    not null,
    machine         text    not null,
    kept            integer not null,
    taken_at        integer not null,
    expired_at      integer,
    expired_why     text
) strict;
create index snapshots_of on snapshots (conversation_id, id);
create index snapshots_pin on snapshots (pin_id, id);

-- Why the newest confirmation of a session is not in a snapshot yet; tried again.
alter table pins add column unsaved text;
create index pins_unsaved on pins (id) where unsaved is not null;
