-- Every statement is answered by an index, and sums are kept: cost does not grow with what is stored.

-- Where a conversation is listed: 0 among the others, 1 in the archive, 2 nowhere, since it was merged.
alter table conversations add column shelf integer generated always as (case
    when redirect_to is not null then 2 when archived_at is not null then 1 else 0 end) virtual;
drop index conversations_updated;
drop index conversations_workdir;
create index conversations_listed on conversations (namespace, shelf, updated_at, id);
create index conversations_workdir on conversations (namespace, shelf, workdir, updated_at, id);
create index conversations_agent on conversations (namespace, shelf, agent, updated_at, id);

-- What its turns cost, as far as that is known, in millionths of a dollar.
alter table conversations add column cost integer;
update conversations set cost =
    (select sum(t.cost) from turns t where t.conversation_id = conversations.id);
create trigger turns_cost_added after insert on turns when new.cost is not null begin
    update conversations set cost = coalesce(cost, 0) + new.cost where id = new.conversation_id;
end;
create trigger turns_cost_changed after update of cost, conversation_id on turns
    when old.cost is not new.cost or old.conversation_id <> new.conversation_id begin
    update conversations set cost = coalesce(cost, 0) - old.cost
        where id = old.conversation_id and old.cost is not null;
    update conversations set cost = coalesce(cost, 0) + new.cost
        where id = new.conversation_id and new.cost is not null;
end;
create trigger turns_cost_removed after delete on turns when old.cost is not null begin
    update conversations set cost = coalesce(cost, 0) - old.cost where id = old.conversation_id;
end;

-- How many rows a table holds.
create table counts (
    name    text    not null primary key,
    value   integer not null
) strict;
insert into counts (name, value)
    select 'conversations', count(*) from conversations union all select 'snapshots', count(*) from snapshots;
create trigger conversations_added after insert on conversations begin
    update counts set value = value + 1 where name = 'conversations';
end;
create trigger conversations_removed after delete on conversations begin
    update counts set value = value - 1 where name = 'conversations';
end;
create trigger snapshots_added after insert on snapshots begin
    update counts set value = value + 1 where name = 'snapshots';
end;
create trigger snapshots_removed after delete on snapshots begin
    update counts set value = value - 1 where name = 'snapshots';
end;

create index messages_of on messages (conversation_id, seq);
create index messages_queued on messages (conversation_id, id) where seq is null and removed_at is null;
create index messages_outside on messages (conversation_id, created_at) where origin = 'outside';

drop index turns_unfinished;
create index turns_running on turns (id) where status in ('running', 'waiting');
create index turns_queued on turns (conversation_id, id) where status = 'queued';
create index turns_message on turns (message_id);
create index attempts_pin on attempts (pin_id, turn_id, n);
create index attempts_session on attempts (session_id);
create index pins_newest on pins (conversation_id, id);

create index questions_gone on questions (turn_id) where state = 'gone';
create index questions_answer on questions (answer_message) where answer_message is not null;

alter table deliveries add column namespace text not null default '';
update deliveries set namespace = (select t.namespace from turns t where t.id = deliveries.turn_id);
create index deliveries_newest on deliveries (namespace, id);
