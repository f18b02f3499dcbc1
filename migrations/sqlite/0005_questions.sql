-- What an agent asked a person in a turn. `attempt` and `call_id` are the run and the agent's own name for
-- it; `decision` is what was said, by whom. A question whose process went away is `gone`.
create table questions (
    id              blob    not null primary key,
    turn_id         blob    not null references turns (id) on delete cascade,
    conversation_id blob    not null references conversations (id) on delete cascade,
    attempt         integer not null,
    call_id         text    not null,
    kind            text    not null check (kind in ('approval', 'question')),
    tool            text    not null,
    input           text    not null,
    questions       text    not null,
    state           text    not null check (state in ('pending', 'answered', 'gone')),
    decision        text,
    by              text,
    asked_at        integer not null,
    answered_at     integer
) strict;
create unique index questions_call on questions (turn_id, attempt, call_id);
create index questions_conversation on questions (conversation_id);
