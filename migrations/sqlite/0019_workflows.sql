-- Runs of workflows. `file`, `prompts` (the files that it names) and `inputs` are those of the start, so later
-- changes of the files do not affect a run. `options` says for whom it runs and with which limits.
create table workflows (
    id          blob    not null primary key,
    namespace   text    not null,
    key         text,
    name        text    not null,
    file        text    not null,
    prompts     text    not null,
    inputs      text    not null,
    options     text    not null,
    status      text    not null,
    cancel      integer not null default 0,
    changes     integer not null default 0,
    holder      text,
    lease_until integer,
    error       text,
    started_at  integer not null,
    ended_at    integer
) strict;
create unique index workflows_key on workflows (namespace, key) where key is not null;
create index workflows_newest on workflows (namespace, id);
create index workflows_running on workflows (id) where status in ('running', 'waiting');

-- Steps of runs, in the order of the file. A step that runs once per item has a row per item, once the items are known.
create table workflow_steps (
    workflow_id     blob    not null,
    n               integer not null,
    item            integer not null,
    id              text    not null,
    kind            text    not null,
    status          text    not null,
    attempts        integer not null,
    conversation_id blob,
    turn_id         blob,
    state           text    not null,
    started_at      integer,
    ended_at        integer,
    primary key (workflow_id, n, item)
) strict;
