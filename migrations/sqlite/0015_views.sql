-- Figures of a row in the list: kept, not counted.
alter table conversations add column turns integer not null default 0;
-- Turns that ran and whose cost is unknown.
alter table conversations add column unpriced integer not null default 0;
-- Position of the newest message that was read.
alter table conversations add column seen integer not null default 0;
update conversations set
    turns = (select count(*) from turns t where t.conversation_id = conversations.id),
    unpriced = (select count(*) from turns t where t.conversation_id = conversations.id and t.cost is null
        and t.verdict is not null and t.status in ('succeeded', 'failed', 'cancelled', 'lost')),
    seen = coalesce((select max(m.seq) from messages m where m.conversation_id = conversations.id), 0);
create trigger turns_counted_added after insert on turns begin
    update conversations set turns = turns + 1, unpriced = unpriced
        + (new.cost is null and new.verdict is not null and new.status in ('succeeded', 'failed', 'cancelled', 'lost'))
        where id = new.conversation_id;
end;
create trigger turns_counted_changed after update of status, cost, conversation_id on turns
    when old.conversation_id <> new.conversation_id or old.status <> new.status or old.cost is not new.cost begin
    update conversations set turns = turns - 1, unpriced = unpriced
        - (old.cost is null and old.verdict is not null and old.status in ('succeeded', 'failed', 'cancelled', 'lost'))
        where id = old.conversation_id;
    update conversations set turns = turns + 1, unpriced = unpriced
        + (new.cost is null and new.verdict is not null and new.status in ('succeeded', 'failed', 'cancelled', 'lost'))
        where id = new.conversation_id;
end;
create trigger turns_counted_removed after delete on turns begin
    update conversations set turns = turns - 1, unpriced = unpriced
        - (old.cost is null and old.verdict is not null and old.status in ('succeeded', 'failed', 'cancelled', 'lost'))
        where id = old.conversation_id;
end;

-- Number of conversations by namespace and shelf.
create table shelves (
    namespace     text    not null,
    shelf         integer not null,
    conversations integer not null,
    primary key (namespace, shelf)
) strict;
insert into shelves select namespace, shelf, count(*) from conversations group by namespace, shelf;
create trigger shelves_added after insert on conversations begin
    insert into shelves values (new.namespace, new.shelf, 1)
        on conflict (namespace, shelf) do update set conversations = conversations + 1;
end;
create trigger shelves_changed after update of redirect_to, archived_at on conversations
    when old.shelf <> new.shelf begin
    update shelves set conversations = conversations - 1 where namespace = old.namespace and shelf = old.shelf;
    insert into shelves values (new.namespace, new.shelf, 1)
        on conflict (namespace, shelf) do update set conversations = conversations + 1;
end;
create trigger shelves_removed after delete on conversations begin
    update shelves set conversations = conversations - 1 where namespace = old.namespace and shelf = old.shelf;
end;

-- Conversations that were deleted, as events: their own events are deleted with them. The numbers are those of
-- the table `events`.
create table tombstones (
    seq             integer primary key,
    namespace       text    not null,
    conversation_id blob    not null,
    at              integer not null
) strict;

-- Links that show a conversation without a token. Of the secret only its hash is stored.
create table shares (
    id              blob    not null primary key,
    conversation_id blob    not null references conversations (id) on delete cascade,
    hash            blob    not null,
    through         integer,
    created_by      text    not null,
    created_at      integer not null,
    expires_at      integer,
    closed_at       integer,
    views           integer not null,
    viewed_at       integer
) strict;
create unique index shares_hash on shares (hash);
create index shares_of on shares (conversation_id, id);

-- Estimated cost without the session that a turn continued, in millionths of a dollar.
alter table turns add column fresh_estimate integer;
-- Ended turns in the order of their end, for figures over time.
create index turns_ended on turns (namespace, ended_at, id) where ended_at is not null;
