-- Version 4: conversations that grow by a message at a time. version is another one after every write. Where live is
-- set, messages.live has the scan and the route of each message, and the columns of the conversation have none.
ALTER TABLE conversations ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
ALTER TABLE conversations ADD COLUMN live INTEGER NOT NULL DEFAULT 0;
ALTER TABLE messages ADD COLUMN live BLOB;
