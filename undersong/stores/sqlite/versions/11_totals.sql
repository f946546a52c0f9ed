-- Version 11: what lists are filtered and sorted by, renewed with every change; all of it follows from the other tables.
-- speakers says who wrote how much where, totals how much there is about an agent (likely: a confidence of .5 or more),
-- talks the title and the latest time of a conversation as of its last write, cited_words which findings rest on a message of the search.
CREATE TABLE speakers (agent TEXT NOT NULL, conversation TEXT NOT NULL, messages INTEGER NOT NULL,
  PRIMARY KEY (agent, conversation)) WITHOUT ROWID;
CREATE TABLE totals (agent TEXT PRIMARY KEY, conversations INTEGER NOT NULL, histories INTEGER NOT NULL,
  findings INTEGER NOT NULL, likely INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX totals_order ON totals (-likely, -findings, agent, conversations, histories);
CREATE TABLE talks (conversation TEXT PRIMARY KEY, title TEXT, last INTEGER) WITHOUT ROWID;
CREATE INDEX talks_order ON talks (coalesce(-last, 1), conversation, title);
CREATE TABLE cited_words (number INTEGER NOT NULL, finding TEXT NOT NULL, PRIMARY KEY (number, finding)) WITHOUT ROWID;
CREATE TRIGGER messages_counted AFTER INSERT ON messages BEGIN
  INSERT INTO speakers VALUES (new.agent, new.conversation, 1)
    ON CONFLICT (agent, conversation) DO UPDATE SET messages = messages + 1;
END;
CREATE TRIGGER messages_uncounted AFTER DELETE ON messages BEGIN
  UPDATE speakers SET messages = messages - 1 WHERE agent = old.agent AND conversation = old.conversation;
  DELETE FROM speakers WHERE agent = old.agent AND conversation = old.conversation AND messages < 1;
END;
CREATE TRIGGER speakers_come AFTER INSERT ON speakers BEGIN
  INSERT INTO totals SELECT new.agent, 0, 0, 0, 0 WHERE NOT EXISTS (SELECT 1 FROM totals WHERE agent = new.agent);
  UPDATE totals SET conversations = conversations + 1 WHERE agent = new.agent;
END;
CREATE TRIGGER speakers_go AFTER DELETE ON speakers BEGIN
  UPDATE totals SET conversations = conversations - 1 WHERE agent = old.agent;
END;
CREATE TRIGGER agents_come AFTER INSERT ON agents BEGIN
  INSERT INTO totals SELECT new.agent, 0, 0, 0, 0 WHERE NOT EXISTS (SELECT 1 FROM totals WHERE agent = new.agent);
  UPDATE totals SET histories = histories + 1 WHERE agent = new.agent;
END;
CREATE TRIGGER agents_go AFTER DELETE ON agents BEGIN
  UPDATE totals SET histories = histories - 1 WHERE agent = old.agent;
END;
CREATE TRIGGER findings_counted AFTER INSERT ON findings BEGIN
  INSERT INTO totals SELECT new.agent, 0, 0, 0, 0 WHERE NOT EXISTS (SELECT 1 FROM totals WHERE agent = new.agent);
  UPDATE totals SET findings = findings + 1, likely = likely + coalesce(new.confidence >= 0.5, 0)
    WHERE agent = new.agent;
END;
CREATE TRIGGER findings_uncounted AFTER DELETE ON findings BEGIN
  UPDATE totals SET findings = findings - 1, likely = likely - coalesce(old.confidence >= 0.5, 0)
    WHERE agent = old.agent;
END;
CREATE TRIGGER totals_end AFTER UPDATE ON totals WHEN max(new.conversations, new.histories, new.findings) < 1 BEGIN
  DELETE FROM totals WHERE agent = new.agent AND max(conversations, histories, findings) < 1;
END;
CREATE TRIGGER conversations_titled AFTER INSERT ON conversations BEGIN
  INSERT INTO talks VALUES (new.id, CASE WHEN json_valid(CAST(new.body AS TEXT))
    THEN json_extract(CAST(new.body AS TEXT), '$.title') END, (SELECT max(time) FROM messages WHERE conversation = new.id));
END;
CREATE TRIGGER conversations_go AFTER DELETE ON conversations BEGIN
  DELETE FROM talks WHERE conversation = old.id;
END;
CREATE TRIGGER texts_come AFTER INSERT ON texts BEGIN
  INSERT INTO cited_words SELECT new.number, finding FROM cited
    WHERE conversation = new.conversation AND message = new.message;
END;
CREATE TRIGGER texts_go AFTER DELETE ON texts BEGIN DELETE FROM cited_words WHERE number = old.number; END;
CREATE TRIGGER cited_come AFTER INSERT ON cited BEGIN
  INSERT INTO cited_words SELECT number, new.finding FROM texts
    WHERE conversation = new.conversation AND message = new.message;
END;
CREATE TRIGGER cited_go AFTER DELETE ON cited BEGIN
  DELETE FROM cited_words WHERE finding = old.finding AND number =
    (SELECT number FROM texts WHERE conversation = old.conversation AND message = old.message);
END;
INSERT INTO totals SELECT agent, 0, sum(histories), sum(findings), sum(likely) FROM
  (SELECT agent, 1 AS histories, 0 AS findings, 0 AS likely FROM agents UNION ALL
   SELECT agent, 0, 1, coalesce(confidence >= 0.5, 0) FROM findings) GROUP BY agent;
INSERT INTO speakers SELECT agent, conversation, count(*) FROM messages GROUP BY agent, conversation;
INSERT INTO talks SELECT id, CASE WHEN json_valid(CAST(body AS TEXT)) THEN json_extract(CAST(body AS TEXT), '$.title') END,
  (SELECT max(time) FROM messages WHERE conversation = conversations.id) FROM conversations;
INSERT INTO cited_words SELECT number, finding FROM cited JOIN texts
  ON texts.conversation = cited.conversation AND texts.message = cited.message;
