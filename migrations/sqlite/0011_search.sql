-- Full text within a namespace, or of one agent: `space` holds words that name them, and a search asks for those
-- words too. Before, hits of all namespaces were read to find those of one.
drop trigger messages_text_added;
drop trigger messages_text_edited;
drop trigger messages_text_deleted;
drop table messages_text;
alter table messages add column space text not null default '';
update messages set space = 'ns' || (select hex(c.namespace) from conversations c where c.id = messages.conversation_id)
    || coalesce(' by' || hex(agent), '');
create virtual table messages_text using fts5 (
    text, space, content = 'messages', content_rowid = 'n', tokenize = 'unicode61 remove_diacritics 2'
);
insert into messages_text (messages_text) values ('rebuild');
create virtual table messages_words using fts5vocab (messages_text, instance);
create trigger messages_text_added after insert on messages begin
    update messages set n = (select coalesce(max(n), 0) + 1 from messages),
            space = 'ns' || (select hex(c.namespace) from conversations c where c.id = new.conversation_id)
                || coalesce(' by' || hex(new.agent), '')
        where rowid = new.rowid;
    insert into messages_text (rowid, text, space)
        select n, text, space from messages where rowid = new.rowid;
end;
create trigger messages_text_edited after update of text on messages when old.text <> new.text begin
    insert into messages_text (messages_text, rowid, text, space) values ('delete', old.n, old.text, old.space);
    insert into messages_text (rowid, text, space) values (new.n, new.text, new.space);
end;
create trigger messages_text_deleted after delete on messages begin
    insert into messages_text (messages_text, rowid, text, space) values ('delete', old.n, old.text, old.space);
end;
