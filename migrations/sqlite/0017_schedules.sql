-- Schedules that a daemon has begun. Occurrences up to `settled_until` are recorded, or are none of the schedule:
-- it did not exist, or had another rule.
create table schedules (
    namespace     text    not null,
    name          text    not null,
    rule          text    not null,
    settled_until integer not null,
    paused_at     integer,
    primary key (namespace, name)
) strict;

-- Occurrences of schedules, each once. They outlive their turn.
create table occurrences (
    namespace       text    not null,
    schedule        text    not null,
    at              integer not null,
    status          text    not null,
    conversation_id blob,
    turn_id         blob,
    reason          text,
    machine         text    not null,
    recorded_at     integer not null,
    primary key (namespace, schedule, at)
) strict;
create index occurrences_ran on occurrences (namespace, schedule, at) where turn_id is not null;
