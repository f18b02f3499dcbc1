-- Who may see what: a token belongs to a namespace, and so does a conversation. Commands on the store
-- itself use the one without a name. Keys of one namespace say nothing about those of another.
alter table conversations add column namespace text not null default '';
drop index conversations_key;
create unique index conversations_key on conversations (namespace, key) where key is not null;
create index conversations_shown on conversations (namespace, handle);
drop index conversations_updated;
create index conversations_updated on conversations (namespace, updated_at, id);
drop index conversations_workdir;
create index conversations_workdir on conversations (namespace, workdir, updated_at);

alter table turns add column namespace text not null default '';
drop index turns_client_key;
create unique index turns_client_key on turns (namespace, client_key) where client_key is not null;

-- What a message to a conversation does that nothing runs for: auto, ask or never.
alter table conversations add column continues text not null default 'auto'
    check (continues in ('auto', 'ask', 'never'));

-- Who asked for it to be made: asked again, it is the same one.
alter table conversations add column client_key text;
create unique index conversations_client_key on conversations (namespace, client_key)
    where client_key is not null;

-- Who may talk to a daemon. Of a token only its hash is here.
create table tokens (
    id          blob    not null primary key,
    name        text not null,
    hash        blob not null,
    scope       text not null check (scope in ('read', 'send', 'admin', 'runner')),
    namespace   text not null,
    created_at  integer not null,
    expires_at  integer,
    used_at     integer,
    revoked_at  integer
) strict;
create unique index tokens_hash on tokens (hash);
create unique index tokens_name on tokens (name) where revoked_at is null;
