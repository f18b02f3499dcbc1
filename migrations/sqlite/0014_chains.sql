-- Chains: turns of tiers, linked by climbs. `chain_id` is the root; `escalation` is the request of a
-- turn for a higher tier, with the decision about it. One turn has at most one climb.
alter table turns add column tier text;
alter table turns add column parent_turn_id blob;
alter table turns add column chain_id blob;
alter table turns add column started_by text;
alter table turns add column escalation text;
create unique index turns_parent on turns (parent_turn_id) where parent_turn_id is not null;
create index turns_chain on turns (chain_id, id) where chain_id is not null;
create index turns_climbed on turns (conversation_id, tier, id)
    where tier is not null and parent_turn_id is not null;

-- Namespaces in which no climb is allowed.
create table holds (
    namespace text    not null primary key,
    machine   text    not null,
    held_at   integer not null
) strict;
