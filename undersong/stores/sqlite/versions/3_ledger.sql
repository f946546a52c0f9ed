-- Version 3: answers of paid judges as they came, batches under way, and agents' histories as of a run's start.
CREATE TABLE paid (key TEXT NOT NULL, attempt INTEGER NOT NULL, judge TEXT NOT NULL, model TEXT NOT NULL,
  prompt_hash TEXT NOT NULL, message_hash TEXT NOT NULL, context_hash TEXT NOT NULL, depth TEXT NOT NULL,
  body BLOB NOT NULL, input INTEGER NOT NULL, cached INTEGER NOT NULL, written INTEGER NOT NULL,
  output INTEGER NOT NULL, cost REAL, sent INTEGER NOT NULL, fixed INTEGER NOT NULL);
CREATE UNIQUE INDEX paid_key ON paid (key, attempt);
CREATE INDEX paid_judge ON paid (judge, prompt_hash);
CREATE TABLE batches (id TEXT PRIMARY KEY, judge TEXT NOT NULL, body BLOB NOT NULL);
CREATE TABLE snapshots (run TEXT PRIMARY KEY);
CREATE TABLE histories (run TEXT NOT NULL, agent TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (run, agent));
CREATE TABLE calibrations (judge_hash TEXT PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE shifts (judge_hash TEXT NOT NULL, kind TEXT NOT NULL, width TEXT NOT NULL, body BLOB NOT NULL,
  PRIMARY KEY (judge_hash, kind, width));
