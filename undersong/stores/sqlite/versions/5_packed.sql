-- Version 5: the cells of a row at a fixed width, in the index by agent, which a sweep reads alone.
ALTER TABLE history ADD COLUMN cells BLOB;
UPDATE history SET cells = cells_of(body);
DROP INDEX history_agent;
CREATE INDEX history_agent ON history (agent, judge, time, position, id, conversation, state, cells);
