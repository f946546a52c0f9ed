-- Version 2. history holds one row per message and judge, agents the number of each agent's last change.
-- time is the event time: where a message has none, its predecessor's. cursors says up to which change a rule has
-- seen the agents, graves what was forgotten.
CREATE TABLE judges (number INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, name TEXT NOT NULL);
CREATE TABLE history (conversation TEXT NOT NULL, id TEXT NOT NULL, judge INTEGER NOT NULL,
  agent TEXT NOT NULL, time INTEGER, position INTEGER NOT NULL, state TEXT NOT NULL, body BLOB NOT NULL,
  PRIMARY KEY (conversation, id, judge));
CREATE INDEX history_agent ON history (agent, judge, time, position, id, conversation, state);
CREATE TABLE agents (judge INTEGER NOT NULL, agent TEXT NOT NULL, changed INTEGER NOT NULL, PRIMARY KEY (judge,
  agent)) WITHOUT ROWID;
CREATE INDEX agents_changed ON agents (judge, changed, agent);
CREATE TABLE cursors (name TEXT PRIMARY KEY, change INTEGER NOT NULL, agent TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE graves (kind TEXT NOT NULL, digest TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (kind,
  digest)) WITHOUT ROWID;
CREATE INDEX findings_agent ON findings (agent, pattern);
