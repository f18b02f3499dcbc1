-- Figures of a row in the list: kept, not counted.
alter table conversations add column turns bigint not null default 0;
-- Turns that ran and whose cost is unknown.
alter table conversations add column unpriced bigint not null default 0;
-- Position of the newest message that was read.
alter table conversations add column seen bigint not null default 0;
create function rejoin_unpriced(cost bigint, verdict text, status text) returns bigint language sql immutable as $$
    select case when cost is null and verdict is not null and status in ('succeeded', 'failed', 'cancelled', 'lost')
        then 1 else 0 end::bigint
$$;
update conversations set turns = found.turns, unpriced = found.unpriced
    from (select conversation_id, count(*) as turns, sum(rejoin_unpriced(cost, verdict, status))::bigint as unpriced
        from turns group by conversation_id) as found
    where found.conversation_id = conversations.id;
update conversations set seen = found.seq
    from (select conversation_id, max(seq) as seq from messages where seq is not null group by conversation_id) as found
    where found.conversation_id = conversations.id;
create function rejoin_count_turns() returns trigger language plpgsql as $$ begin
    if tg_op <> 'INSERT' then
        update conversations set turns = turns - 1, unpriced = unpriced - rejoin_unpriced(old.cost, old.verdict, old.status)
            where id = old.conversation_id;
    end if;
    if tg_op <> 'DELETE' then
        update conversations set turns = turns + 1, unpriced = unpriced + rejoin_unpriced(new.cost, new.verdict, new.status)
            where id = new.conversation_id;
    end if;
    return null;
end $$;
create trigger turns_counted_added after insert on turns for each row execute function rejoin_count_turns();
create trigger turns_counted_changed after update of status, cost, conversation_id on turns for each row
    when (old.conversation_id <> new.conversation_id or rejoin_unpriced(old.cost, old.verdict, old.status)
        <> rejoin_unpriced(new.cost, new.verdict, new.status)) execute function rejoin_count_turns();
create trigger turns_counted_removed after delete on turns for each row execute function rejoin_count_turns();

-- Number of conversations by namespace and shelf.
create table shelves (
    namespace     text   not null,
    shelf         bigint not null,
    conversations bigint not null,
    primary key (namespace, shelf)
);
insert into shelves select namespace, shelf, count(*) from conversations group by namespace, shelf;
create function rejoin_count_shelves() returns trigger language plpgsql as $$ begin
    if tg_op <> 'INSERT' then
        update shelves set conversations = conversations - 1 where namespace = old.namespace and shelf = old.shelf;
    end if;
    if tg_op <> 'DELETE' then
        insert into shelves values (new.namespace, new.shelf, 1)
            on conflict (namespace, shelf) do update set conversations = shelves.conversations + 1;
    end if;
    return null;
end $$;
create trigger shelves_added after insert on conversations for each row execute function rejoin_count_shelves();
create trigger shelves_changed after update of redirect_to, archived_at on conversations for each row
    when (old.shelf <> new.shelf) execute function rejoin_count_shelves();
create trigger shelves_removed after delete on conversations for each row execute function rejoin_count_shelves();

-- Conversations that were deleted, as events: their own events are deleted with them. The numbers are those of
-- the table `events`.
create table tombstones (
    seq             bigint not null primary key,
    namespace       text   not null,
    conversation_id uuid   not null,
    at              bigint not null
);

-- Links that show a conversation without a token. Of the secret only its hash is stored.
create table shares (
    id              uuid   not null primary key,
    conversation_id uuid   not null references conversations (id) on delete cascade,
    hash            bytea  not null,
    through         bigint,
    created_by      text   not null,
    created_at      bigint not null,
    expires_at      bigint,
    closed_at       bigint,
    views           bigint not null,
    viewed_at       bigint
);
create unique index shares_hash on shares (hash);
create index shares_of on shares (conversation_id, id);

-- Estimated cost without the session that a turn continued, in millionths of a dollar.
alter table turns add column fresh_estimate bigint;
-- Ended turns in the order of their end, for figures over time.
create index turns_ended on turns (namespace, ended_at, id) where ended_at is not null;
