-- Requests for a higher tier that wait for a person: questions of a turn that has ended. The runs of a turn
-- are numbered from 1, so 0 is no run.
create index questions_climbs on questions (turn_id) where state = 'pending' and attempt = 0;

-- Calls of tools that tiers limit. A row without a time is reserved for a turn; a call that was made has one.
-- The rows outlive their turn.
create table limit_calls (
    turn_id   uuid   not null,
    tool      text   not null,
    n         bigint not null,
    namespace text   not null,
    at        bigint,
    primary key (turn_id, tool, n)
);
create index limit_calls_made on limit_calls (namespace, tool, at) where at is not null;
create index limit_calls_open on limit_calls (namespace, tool, turn_id) where at is null;
