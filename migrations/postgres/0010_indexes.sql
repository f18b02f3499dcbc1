-- Every statement is answered by an index, and sums are kept: cost does not grow with what is stored.

-- Where a conversation is listed: 0 among the others, 1 in the archive, 2 nowhere, since it was merged.
alter table conversations add column shelf bigint not null generated always as (case
    when redirect_to is not null then 2 when archived_at is not null then 1 else 0 end) stored;
drop index conversations_updated;
drop index conversations_workdir;
create index conversations_listed on conversations (namespace, shelf, updated_at, id);
create index conversations_workdir on conversations (namespace, shelf, workdir, updated_at, id);
create index conversations_agent on conversations (namespace, shelf, agent, updated_at, id);

-- What its turns cost, as far as that is known, in millionths of a dollar.
alter table conversations add column cost bigint;
update conversations set cost = spent.cost
    from (select conversation_id, sum(cost)::bigint as cost from turns group by conversation_id) as spent
    where spent.conversation_id = conversations.id;
create function rejoin_keep_cost() returns trigger language plpgsql as $$ begin
    if tg_op <> 'INSERT' and old.cost is not null then
        update conversations set cost = coalesce(cost, 0) - old.cost where id = old.conversation_id;
    end if;
    if tg_op <> 'DELETE' and new.cost is not null then
        update conversations set cost = coalesce(cost, 0) + new.cost where id = new.conversation_id;
    end if;
    return null;
end $$;
create trigger turns_cost_added after insert on turns
    for each row when (new.cost is not null) execute function rejoin_keep_cost();
create trigger turns_cost_changed after update of cost, conversation_id on turns
    for each row when (old.cost is distinct from new.cost or old.conversation_id <> new.conversation_id)
    execute function rejoin_keep_cost();
create trigger turns_cost_removed after delete on turns
    for each row when (old.cost is not null) execute function rejoin_keep_cost();

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
update deliveries set namespace = t.namespace from turns t where t.id = deliveries.turn_id;
create index deliveries_newest on deliveries (namespace, id);
