-- Full text within a namespace, of one agent, or of the newest messages. Words that no message can hold, since they
-- have a colon, say which those are, and a search asks for those words too: of a frequent word only the newest
-- messages are read. `n` counts messages; `at0`, `at1` and `at2` name runs of 4096, 65536 and 1048576 of them.
create sequence rejoin_messages_n;
create function rejoin_text_words(said text, space text, by text, n bigint) returns tsvector
    language sql immutable parallel safe as $$
    select to_tsvector('simple', rejoin_words(said)) || array_to_tsvector(array_remove(array['ns:' || space,
        'by:' || by, 'at0:' || (n >> 12), 'at1:' || (n >> 16), 'at2:' || (n >> 20)], null))
$$;
alter table messages_text add column n bigint not null default 0;
create function rejoin_index_words() returns void language sql as $$
    delete from messages_text;
    insert into messages_text (message_id, n, words)
        select id, n, rejoin_text_words(text, namespace, agent, n) from (
            select m.id, m.text, m.agent, c.namespace, nextval('rejoin_messages_n') as n
            from (select * from messages order by id) as m join conversations c on c.id = m.conversation_id) as said;
$$;
select rejoin_index_words();
create or replace function rejoin_keep_words() returns trigger language plpgsql as $$ begin
    insert into messages_text (message_id, n, words)
        select new.id, k.n, rejoin_text_words(new.text, c.namespace, new.agent, k.n)
        from conversations c, (select coalesce((select t.n from messages_text t where t.message_id = new.id),
            nextval('rejoin_messages_n')) as n) as k
        where c.id = new.conversation_id
        on conflict (message_id) do update set words = excluded.words;
    return null;
end $$;
