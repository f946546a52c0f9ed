-- Version 9: the words of all messages, and what lists of conversations and agents are made from. texts numbers the
-- messages for the index, in which no number comes twice; the texts themselves are in messages alone.
CREATE INDEX messages_time ON messages (conversation, time, agent);
CREATE INDEX messages_target ON messages (target, conversation) WHERE target IS NOT NULL;
CREATE INDEX findings_likely ON findings (agent, confidence);
CREATE TABLE texts (number INTEGER PRIMARY KEY AUTOINCREMENT, conversation TEXT NOT NULL, message TEXT NOT NULL,
  agent TEXT NOT NULL, UNIQUE (conversation, message));
ALTER TABLE messages ADD COLUMN text TEXT GENERATED ALWAYS AS (CASE WHEN json_valid(CAST(body AS TEXT))
  THEN coalesce(json_extract(replace(CAST(body AS TEXT), '\u0000', '\u0020'), '$.text'), '') ELSE '' END) VIRTUAL;
CREATE VIEW message_texts AS SELECT number, text
  FROM texts JOIN messages ON messages.conversation = texts.conversation AND messages.id = texts.message;
CREATE VIRTUAL TABLE words USING fts5 (text, content = 'message_texts', content_rowid = 'number', columnsize = 0,
  tokenize = 'unicode61 remove_diacritics 2');
CREATE TRIGGER messages_come AFTER INSERT ON messages BEGIN
  INSERT INTO texts (conversation, message, agent) VALUES (new.conversation, new.id, new.agent);
  INSERT INTO words (rowid, text) SELECT number, new.text FROM texts
    WHERE conversation = new.conversation AND message = new.id;
END;
CREATE TRIGGER messages_go BEFORE DELETE ON messages BEGIN
  INSERT INTO words (words, rowid, text) SELECT 'delete', number, old.text FROM texts
    WHERE conversation = old.conversation AND message = old.id;
  DELETE FROM texts WHERE conversation = old.conversation AND message = old.id;
END;
INSERT INTO texts (conversation, message, agent)
  SELECT conversation, id, agent FROM messages ORDER BY conversation, position, id;
INSERT INTO words (words) VALUES ('rebuild');
