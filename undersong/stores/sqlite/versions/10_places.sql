-- Version 10: a stretch of a transcript is read without the rest of it.
CREATE INDEX messages_place ON messages (conversation, position, id);
