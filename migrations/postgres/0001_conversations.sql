-- What the user sees. Times are microseconds since 1970 (UTC); ids are UUIDv7 (uuid). What is put in
-- order is compared by its bytes, whatever the database's language.
create table conversations (
    id          uuid    not null primary key,
    handle      text    collate "C" not null,
    key         text,
    title       text    not null,
    agent       text    collate "C" not null,
    workdir     text    not null,
    permission  text    not null,
    scope       text    not null check (scope in ('full', 'agent')),
    settings    text    not null,
    created_at  bigint not null,
    updated_at  bigint not null
);
create unique index conversations_handle on conversations (handle);
create unique index conversations_key on conversations (key) where key is not null;
create index conversations_updated on conversations (updated_at);
create index conversations_workdir on conversations (workdir, updated_at);

-- History. A message has no place (seq) until its turn is claimed. value_full and value_run are the
-- values of the scopes `full` and `agent` through this message; see rejoin-core/src/scope.rs.
create table messages (
    id              uuid    not null primary key,
    conversation_id uuid    not null references conversations (id) on delete cascade,
    turn_id         uuid    not null,
    seq             bigint,
    role            text    not null check (role in ('user', 'assistant')),
    agent           text,
    text            text    not null,
    attachments     text    not null,
    state           text    not null check (state in ('ok', 'unanswered', 'queued')),
    origin          text    not null,
    edited          bigint not null,
    trail           text    not null,
    value_full      bytea,
    value_run       bytea,
    run_boundary    uuid,
    removed_at      bigint,
    created_at      bigint not null
);
create unique index messages_place on messages (conversation_id, seq)
    where seq is not null and removed_at is null;
create index messages_answers on messages (conversation_id, role, seq)
    where seq is not null and removed_at is null;

create table turns (
    id              uuid    not null primary key,
    conversation_id uuid    not null references conversations (id) on delete cascade,
    message_id      uuid    not null,
    reply_id        uuid,
    agent           text    collate "C" not null,
    status          text    not null check (status in
        ('queued', 'running', 'waiting', 'succeeded', 'failed', 'cancelled', 'lost')),
    request         text    not null,
    client_key      text,
    fence           bigint not null,
    holder          text,
    cancel          bigint not null,
    verdict         text,
    reason          text,
    record          text    not null,
    model           text,
    usage           text,
    cost            bigint,
    context         text,
    denied          text    not null,
    error           text,
    saved           text    not null,
    machine         text    not null,
    summary         text    not null,
    created_at      bigint not null,
    started_at      bigint,
    ended_at        bigint
);
-- One writer: at most one turn of a conversation runs or waits at a time.
create unique index turns_one_running on turns (conversation_id)
    where status in ('running', 'waiting');
create unique index turns_client_key on turns (client_key) where client_key is not null;
create index turns_of on turns (conversation_id, id);
create index turns_unfinished on turns (status) where status in ('queued', 'running', 'waiting');

-- One run of a CLI. Two after a refused resume.
create table attempts (
    turn_id     uuid    not null references turns (id) on delete cascade,
    n           bigint not null,
    verdict     text    not null,
    reason      text,
    status      text    not null,
    session_id  text    collate "C" not null,
    pin_id      uuid    not null,
    prompt_id   text    not null,
    plan        text    not null,
    spool       bigint not null,
    primary key (turn_id, n)
);

create table events (
    seq             bigint generated always as identity primary key,
    conversation_id uuid    not null references conversations (id) on delete cascade,
    turn_id         uuid    not null,
    at              bigint not null,
    type            text    not null,
    body            text    not null
);
create index events_conversation on events (conversation_id, seq);
create index events_turn on events (turn_id, seq);

-- Sessions that could serve a next turn. Everything but state describes the last confirmation.
create table pins (
    id              uuid    not null primary key,
    conversation_id uuid    not null references conversations (id) on delete cascade,
    agent           text    collate "C" not null,
    session_id      text    collate "C" not null,
    state           text    not null check (state in ('open', 'confirmed', 'retired')),
    open_turn       uuid,
    retired_why     text,
    confirmed       text,
    failures        bigint not null,
    created_at      bigint not null,
    updated_at      bigint not null
);
create index pins_of on pins (conversation_id, agent, id);
create unique index pins_session on pins (agent, session_id);

create table epochs (
    conversation_id uuid    not null references conversations (id) on delete cascade,
    agent           text    collate "C" not null,
    epoch           bigint not null,
    primary key (conversation_id, agent)
);

-- What was found out about a binary: version, resume proven or not, what its totals cover.
create table binaries (
    identity    text    not null primary key,
    agent       text    collate "C" not null,
    facts       text    not null,
    seen_at     bigint not null
);
