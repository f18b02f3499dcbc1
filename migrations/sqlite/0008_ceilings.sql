-- The most that a token may ask an agent to do; null: the configured ceiling.
alter table tokens add column max_permission text
    check (max_permission in ('read-only', 'ask', 'edit', 'full'));
