-- The message that an answer became, where the process that asked was gone; and the key under which the answer was
-- sent: the same key again is the same answer.
alter table questions add column answer_message blob;
alter table questions add column answer_key text;
