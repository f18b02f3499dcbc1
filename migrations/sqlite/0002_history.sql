-- History that can be changed. What a message says has a digest of its own, so that the values behind
-- an edit are folded anew without reading every text. `root` is the message a copy was made of, all
-- the way back: a fork begins with the same values as its parent. `run_after` is the place of
-- `run_boundary`, which names a root.
alter table messages add column digest blob;
alter table messages add column root blob;
alter table messages add column run_after integer;
update messages set run_after = (select b.seq from messages b where b.id = messages.run_boundary)
    where run_boundary is not null;
create index messages_root on messages (root) where root is not null;

-- What a message said before it was edited.
create table versions (
    message_id  blob    not null references messages (id) on delete cascade,
    n           integer not null,
    text        text    not null,
    replaced_at integer not null,
    primary key (message_id, n)
) strict;

-- Every change of a history, with what is needed to take it back.
create table changes (
    id              integer primary key autoincrement,
    conversation_id blob    not null references conversations (id) on delete cascade,
    kind            text    not null,
    body            text    not null,
    undone_at       integer,
    created_at      integer not null
) strict;
create index changes_of on changes (conversation_id, id);

alter table conversations add column parent_id blob;
alter table conversations add column parent_seq integer;
alter table conversations add column redirect_to blob;
create index conversations_redirect on conversations (redirect_to) where redirect_to is not null;
alter table conversations add column archived_at integer;
alter table conversations add column opened_by text;
create index conversations_opened on conversations (opened_by) where opened_by is not null;
alter table conversations add column fresh integer not null default 0;
-- What was spent on it before it was adopted, in millionths of a dollar.
alter table conversations add column outside_cost integer;

-- Sessions that were made outside. `source` says where one lies, if ours is a copy of it, and how far
-- it was taken in.
create table adoptions (
    agent           text    not null,
    session_id      text    not null,
    conversation_id blob    not null references conversations (id) on delete cascade,
    source          text    not null,
    adopted_at      integer not null,
    primary key (agent, session_id)
) strict;
create index adoptions_of on adoptions (conversation_id);

-- Full text. Row numbers of a table without a number of its own may change when it is compacted, so
-- messages get one.
alter table messages add column n integer;
update messages set n = rowid;
create unique index messages_n on messages (n);
create virtual table messages_text using fts5 (
    text, content = 'messages', content_rowid = 'n', tokenize = 'unicode61 remove_diacritics 2'
);
insert into messages_text (messages_text) values ('rebuild');
create trigger messages_text_added after insert on messages begin
    update messages set n = (select coalesce(max(n), 0) + 1 from messages) where rowid = new.rowid;
    insert into messages_text (rowid, text)
        select n, text from messages where rowid = new.rowid;
end;
create trigger messages_text_edited after update of text on messages when old.text <> new.text begin
    insert into messages_text (messages_text, rowid, text) values ('delete', old.n, old.text);
    insert into messages_text (rowid, text) values (new.n, new.text);
end;
create trigger messages_text_deleted after delete on messages begin
    insert into messages_text (messages_text, rowid, text) values ('delete', old.n, old.text);
end;
