ALTER TABLE history ADD COLUMN cells BLOB;
UPDATE history SET cells = cells_of(body);
DROP INDEX history_agent;
CREATE INDEX history_agent ON history (agent, judge, time, position, id, conversation, state, cells);
