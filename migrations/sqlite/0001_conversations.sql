-- What the user sees. Times are microseconds since 1970 (UTC); ids are UUIDv7 (16 bytes).
create table conversations (
    id          blob    not null primary key,
    handle      text    not null,
    key         text,
    title       text    not null,
    agent       text    not null,
    workdir     text    not null,
    permission  text    not null,
    scope       text    not null check (scope in ('full', 'agent')),
    settings    text    not null,
    created_at  integer not null,
    updated_at  integer not null
) strict;
create unique index conversations_handle on conversations (handle);
create unique index conversations_key on conversations (key) where key is not null;
create index conversations_updated on conversations (updated_at);
create index conversations_workdir on conversations (workdir, updated_at);

-- History. A message has no place (seq) until its turn is claimed. value_full and value_run are the
-- values of the scopes `full` and `agent` through this message; see rejoin-core/src/scope.rs.
create table messages (
    id              blob    not null primary key,
    conversation_id blob    not null references conversations (id) on delete cascade,
    turn_id         blob    not null,
    seq             integer,
    role            text    not null check (role in ('user', 'assistant')),
    agent           text,
    text            text    not null,
    attachments     text    not null,
    state           text    not null check (state in ('ok', 'unanswered', 'queued')),
    origin          text    not null,
    edited          integer not null,
    trail           text    not null,
    value_full      blob,
    value_run       blob,
    run_boundary    blob,
    removed_at      integer,
    created_at      integer not null
) strict;
create unique index messages_place on messages (conversation_id, seq)
    where seq is not null and removed_at is null;
create index messages_answers on messages (conversation_id, role, seq)
    where seq is not null and removed_at is null;

create table turns (
    id              blob    not null primary key,
    conversation_id blob    not null references conversations (id) on delete cascade,
    message_id      blob    not null,
    reply_id        blob,
    agent           text    not null,
    status          text    not null check (status in
        ('queued', 'running', 'waiting', 'succeeded', 'failed', 'cancelled', 'lost')),
    request         text    not null,
    client_key      text,
    fence           integer not null,
    holder          text,
    cancel          integer not null,
    verdict         text,
    reason          text,
    record          text    not null,
    model           text,
    usage           text,
    cost            integer,
    context         text,
    denied          text    not null,
    error           text,
    saved           text    not null,
    machine         text    not null,
    summary         text    not null,
    created_at      integer not null,
    started_at      integer,
    ended_at        integer
) strict;
-- One writer: at most one turn of a conversation runs or waits at a time.
create unique index turns_one_running on turns (conversation_id)
    where status in ('running', 'waiting');
create unique index turns_client_key on turns (client_key) where client_key is not null;
create index turns_of on turns (conversation_id, id);
create index turns_unfinished on turns (status) where status in ('queued', 'running', 'waiting');

-- One run of a CLI. Two after a refused resume.
create table attempts (
    turn_id     blob    not null references turns (id) on delete cascade,
    n           integer not null,
    verdict     text    not null,
    reason      text,
    status      text    not null,
    session_id  text    not null,
    pin_id      blob    not null,
    prompt_id   text    not null,
    plan        text    not null,
    spool       integer not null,
    primary key (turn_id, n)
) strict;

create table events (
    seq             integer primary key autoincrement,
    conversation_id blob    not null references conversations (id) on delete cascade,
    turn_id         blob    not null,
    at              integer not null,
    type            text    not null,
    body            text    not null
) strict;
create index events_conversation on events (conversation_id, seq);
create index events_turn on events (turn_id, seq);

-- Sessions that could serve a next turn. Everything but state describes the last confirmation.
create table pins (
    id              blob    not null primary key,
    conversation_id blob    not null references conversations (id) on delete cascade,
    agent           text    not null,
    session_id      text    not null,
    state           text    not null check (state in ('open', 'confirmed', 'retired')),
    open_turn       blob,
    retired_why     text,
    confirmed       text,
    failures        integer not null,
    created_at      integer not null,
    updated_at      integer not null
) strict;
create index pins_of on pins (conversation_id, agent, id);
create unique index pins_session on pins (agent, session_id);

create table epochs (
    conversation_id blob    not null references conversations (id) on delete cascade,
    agent           text    not null,
    epoch           integer not null,
    primary key (conversation_id, agent)
) strict;

-- What was found out about a binary: version, resume proven or not, what its totals cover.
create table binaries (
    identity    text    not null primary key,
    agent       text    not null,
    facts       text    not null,
    seen_at     integer not null
) strict;
