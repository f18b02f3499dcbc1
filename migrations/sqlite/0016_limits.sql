-- Requests for a higher tier that wait for a person: questions of a turn that has ended. The runs of a turn
-- are numbered from 1, so 0 is no run.
create index questions_climbs on questions (turn_id) where state = 'pending' and attempt = 0;
