-- History that can be changed. What a message says has a digest of its own, so that the values behind
-- an edit are folded anew without reading every text. `root` is the message a copy was made of, all
-- the way back: a fork begins with the same values as its parent. `run_after` is the place of
-- `run_boundary`, which names a root.
alter table messages add column digest bytea;
alter table messages add column root uuid;
alter table messages add column run_after bigint;
update messages set run_after = (select b.seq from messages b where b.id = messages.run_boundary)
    where run_boundary is not null;
create index messages_root on messages (root) where root is not null;

-- What a message said before it was edited.
create table versions (
    message_id  uuid   not null references messages (id) on delete cascade,
    n           bigint not null,
    text        text   not null,
    replaced_at bigint not null,
    primary key (message_id, n)
);

-- Every change of a history, with what is needed to take it back.
create table changes (
    id              bigint generated always as identity primary key,
    conversation_id uuid   not null references conversations (id) on delete cascade,
    kind            text   not null,
    body            text   not null,
    undone_at       bigint,
    created_at      bigint not null
);
create index changes_of on changes (conversation_id, id);

alter table conversations add column parent_id uuid;
alter table conversations add column parent_seq bigint;
alter table conversations add column redirect_to uuid;
create index conversations_redirect on conversations (redirect_to) where redirect_to is not null;
alter table conversations add column archived_at bigint;
alter table conversations add column opened_by text;
create index conversations_opened on conversations (opened_by) where opened_by is not null;
alter table conversations add column fresh bigint not null default 0;
-- What was spent on it before it was adopted, in millionths of a dollar.
alter table conversations add column outside_cost bigint;

-- Sessions that were made outside. `source` says where one lies, if ours is a copy of it, and how far
-- it was taken in.
create table adoptions (
    agent           text   collate "C" not null,
    session_id      text   collate "C" not null,
    conversation_id uuid   not null references conversations (id) on delete cascade,
    source          text   not null,
    adopted_at      bigint not null,
    primary key (agent, session_id)
);
create index adoptions_of on adoptions (conversation_id);

-- Full text, beside the messages: whoever reads them does not read this. Signs are spaces and marks
-- above and below letters are left out, so that words are found as in the other engine. A row of words
-- holds no more than a mebibyte: this many letters always fit.
create function rejoin_words(said text) returns text language sql immutable parallel safe as $$
    select regexp_replace(normalize(translate(left(said, 150000),
        '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~', repeat(' ', 32)), nfd), '[\u0300-\u036f]', '', 'g')
$$;
create table messages_text (
    message_id uuid     primary key references messages (id) on delete cascade,
    words      tsvector not null
);
create index messages_text_words on messages_text using gin (words);
insert into messages_text select id, to_tsvector('simple', rejoin_words(text)) from messages;
create function rejoin_keep_words() returns trigger language plpgsql as $$ begin
    insert into messages_text values (new.id, to_tsvector('simple', rejoin_words(new.text)))
        on conflict (message_id) do update set words = excluded.words;
    return null;
end $$;
create trigger messages_text_kept after insert or update of text on messages
    for each row execute function rejoin_keep_words();
