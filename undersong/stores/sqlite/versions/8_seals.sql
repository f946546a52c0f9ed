-- Version 8: a seal of what was stored of each conversation, agent or table: how many rows, and the sum of the SHA-256 of
-- each modulo 2^256. The seal without a kind is that of the others.
CREATE TABLE seals (kind TEXT NOT NULL, name TEXT NOT NULL, rows INTEGER NOT NULL, digest BLOB NOT NULL,
  PRIMARY KEY (kind, name)) WITHOUT ROWID;
