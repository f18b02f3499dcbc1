-- Who this store is, in one row: its objects are named after it, so that stores which share a bucket
-- never meet.
create table stores (
    id uuid not null primary key
);
insert into stores (id) values (gen_random_uuid());

-- Every chunk of every snapshot, once for each place where its bytes lie: `db` (in `body`), or the
-- digest of an object store, where they are named after the chunk and `copy`; with a `-` before it
-- once they were missed there. `at`: when somebody last relied on it, so that a sweep leaves alone
-- what is being written.
create table chunks (
    name    bytea not null,
    place   text not null,
    length  bigint not null,
    stored  bigint not null,
    body    bytea,
    copy    bigint,
    at      bigint not null,
    primary key (name, place)
);

-- What a session was when it was confirmed (or, while a turn runs, `open`). A row without a manifest
-- says that there was one.
create table snapshots (
    id              uuid not null primary key,
    conversation_id uuid not null references conversations (id) on delete cascade,
    pin_id          uuid not null,
    agent           text not null,
    session_id      text not null,
    state           text not null check (state in ('confirmed', 'open')),
    value           bytea not null,
    messages        bigint not null,
    last_seq        bigint not null,
    length          bigint not null,
    added           bigint not null,
    manifest        bytea,
    digest          bytea not null,
    machine         text not null,
    kept            bigint not null,
    taken_at        bigint not null,
    expired_at      bigint,
    expired_why     text
);
create index snapshots_of on snapshots (conversation_id, id);
create index snapshots_pin on snapshots (pin_id, id);

-- Why the newest confirmation of a session is not in a snapshot yet; tried again.
alter table pins add column unsaved text;
create index pins_unsaved on pins (id) where unsaved is not null;
