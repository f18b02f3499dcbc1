-- The numbers of a namespace's messages are adjacent, so a search reads no other namespace's part of the index.
-- Before, a word that was frequent in other namespaces only was looked for in all of their messages.
create table spaces (
    name    text    not null primary key,
    base    integer not null unique
) strict;
insert into spaces (name, base)
    select namespace, (row_number() over (order by namespace) - 1) * 1099511627776 from conversations group by namespace;
update messages set n = n + (select s.base from conversations c join spaces s on s.name = c.namespace
        where c.id = messages.conversation_id)
    where conversation_id in (select id from conversations where namespace <> (select name from spaces where base = 0));
insert into messages_text (messages_text) select 'rebuild' where (select count(*) from spaces) > 1;
drop trigger messages_text_added;
create trigger messages_text_added after insert on messages begin
    insert into spaces (name, base)
        select c.namespace, (select coalesce(max(base) + 1099511627776, 0) from spaces) from conversations c
        where c.id = new.conversation_id and not exists (select 1 from spaces where name = c.namespace);
    update messages set
            n = (select coalesce((select m.n from messages m where m.n > s.base and m.n < s.base + 1099511627776
                    order by m.n desc limit 1), s.base) + 1
                from conversations c join spaces s on s.name = c.namespace where c.id = new.conversation_id),
            space = coalesce('by' || hex(new.agent), '')
        where rowid = new.rowid;
    insert into messages_text (rowid, text, space)
        select n, text, space from messages where rowid = new.rowid;
end;
