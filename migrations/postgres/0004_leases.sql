-- Who may go on with a turn. `place`: the machine and home in which its folder lies. `lease_until`: on a
-- store that machines share, whoever is elsewhere takes it only after this, by the database's clock.
alter table turns add column place text;
alter table turns add column lease_until bigint;
alter table conversations add column opened_until bigint;
