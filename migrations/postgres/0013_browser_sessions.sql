-- Browsers that are signed in to a daemon, and one-time links that sign one in. Only hashes of their secrets are
-- stored. The owner is the token that signed in, or `local` for the user of the daemon.
create table browser_sessions (
    id              uuid not null primary key,
    hash            bytea not null,
    kind            text not null check (kind in ('link', 'session')),
    owner           text not null,
    token_id        uuid,
    name            text not null,
    scope           text not null check (scope in ('read', 'send', 'admin')),
    namespace       text not null,
    max_permission  text,
    browser         text not null,
    created_at      bigint not null,
    expires_at      bigint not null,
    used_at         bigint
);
create unique index browser_sessions_hash on browser_sessions (hash);
create index browser_sessions_owner on browser_sessions (owner, created_at, id);
create index browser_sessions_expires on browser_sessions (expires_at);
