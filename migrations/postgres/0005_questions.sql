-- What an agent asked a person in a turn. `attempt` and `call_id` are the run and the agent's own name for
-- it; `decision` is what was said, by whom. A question whose process went away is `gone`.
create table questions (
    id              uuid    not null primary key,
    turn_id         uuid    not null references turns (id) on delete cascade,
    conversation_id uuid    not null references conversations (id) on delete cascade,
    attempt         bigint  not null,
    call_id         text    not null,
    kind            text    not null check (kind in ('approval', 'question')),
    tool            text    not null,
    input           text    not null,
    questions       text    not null,
    state           text    not null check (state in ('pending', 'answered', 'gone')),
    decision        text,
    by              text,
    asked_at        bigint  not null,
    answered_at     bigint 
);
create unique index questions_call on questions (turn_id, attempt, call_id);
create index questions_conversation on questions (conversation_id);
