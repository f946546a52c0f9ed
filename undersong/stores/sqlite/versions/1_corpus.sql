-- Version 1. Times are integer microseconds UTC; body is the record's JSON.
CREATE TABLE conversations (id TEXT PRIMARY KEY, body BLOB NOT NULL, scans BLOB NOT NULL, routes BLOB);
CREATE TABLE messages (conversation TEXT NOT NULL, id TEXT NOT NULL, position INTEGER NOT NULL,
  agent TEXT NOT NULL, target TEXT, time INTEGER, body BLOB NOT NULL, PRIMARY KEY (conversation, id));
CREATE INDEX messages_id ON messages (id);
CREATE INDEX messages_agent ON messages (agent, time, position, id);
CREATE TABLE evaluations (conversation TEXT NOT NULL, message TEXT NOT NULL, judge_hash TEXT NOT NULL,
  state TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (conversation, judge_hash, message));
CREATE TABLE findings (id TEXT PRIMARY KEY, pattern TEXT NOT NULL, agent TEXT NOT NULL, target TEXT,
  body BLOB NOT NULL);
