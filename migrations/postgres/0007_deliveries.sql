-- How far somebody who looks at all events has come.
create table watermarks (
    name    text    not null primary key,
    seq     bigint  not null
);

-- Notifications: what is to be told to whom, and how that went. `target` is `webhook`, `command` or an
-- address that came with the message.
create table deliveries (
    id              uuid    not null primary key,
    turn_id         uuid    not null references turns (id) on delete cascade,
    kind            text    not null,
    target          text    not null,
    state           text    not null check (state in ('pending', 'sent', 'failed')),
    tries           bigint  not null,
    next_at         bigint  not null,
    error           text,
    created_at      bigint  not null,
    sent_at         bigint 
);
create index deliveries_due on deliveries (next_at) where state = 'pending';
create index deliveries_of on deliveries (turn_id);
