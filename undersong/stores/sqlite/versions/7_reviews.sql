-- Version 7: leads, claims and reviews; what lists of findings are filtered and sorted by. A review is never changed.
-- cited says which messages a finding rests on. ended is in milliseconds UTC.
CREATE TABLE leads (id TEXT PRIMARY KEY, agent TEXT NOT NULL, kind TEXT NOT NULL, conversation TEXT,
  score REAL NOT NULL, body BLOB NOT NULL);
CREATE INDEX leads_score ON leads (score DESC, id);
CREATE TABLE claims (id TEXT PRIMARY KEY, conversation TEXT NOT NULL, position INTEGER NOT NULL, agent TEXT NOT NULL,
  kind TEXT NOT NULL, state TEXT NOT NULL, decisive INTEGER NOT NULL, body BLOB NOT NULL);
CREATE INDEX claims_conversation ON claims (conversation, position, id);
CREATE INDEX claims_decisive ON claims (decisive, conversation, position, id);
CREATE TABLE reviews (key TEXT PRIMARY KEY, kind TEXT NOT NULL, id TEXT NOT NULL, at INTEGER NOT NULL,
  verdict TEXT NOT NULL, body BLOB NOT NULL);
CREATE INDEX reviews_id ON reviews (kind, id, at, key, verdict);
CREATE TRIGGER reviews_stay BEFORE UPDATE ON reviews BEGIN SELECT RAISE(ABORT, 'a review is never changed'); END;
ALTER TABLE findings ADD COLUMN json TEXT GENERATED ALWAYS AS
  (CASE WHEN json_valid(CAST(body AS TEXT)) THEN CAST(body AS TEXT) ELSE '{}' END) VIRTUAL;
ALTER TABLE findings ADD COLUMN confidence REAL GENERATED ALWAYS AS (json_extract(json, '$.confidence')) VIRTUAL;
ALTER TABLE findings ADD COLUMN level INTEGER GENERATED ALWAYS AS (CASE json_extract(json, '$.level')
  WHEN 'critical' THEN 4 WHEN 'high' THEN 3 WHEN 'medium' THEN 2 WHEN 'low' THEN 1 ELSE 0 END) VIRTUAL;
ALTER TABLE findings ADD COLUMN ended INTEGER GENERATED ALWAYS AS
  (CAST(round((julianday(json_extract(json, '$.end')) - 2440587.5) * 86400000) AS INTEGER)) VIRTUAL;
CREATE INDEX findings_confidence ON findings (coalesce(-confidence, 1), id);
CREATE INDEX findings_level ON findings (-level, coalesce(-confidence, 1), id);
CREATE INDEX findings_ended ON findings (coalesce(-ended, 1), id);
CREATE TABLE cited (finding TEXT NOT NULL, conversation TEXT NOT NULL, message TEXT NOT NULL,
  PRIMARY KEY (conversation, message, finding)) WITHOUT ROWID;
CREATE INDEX cited_finding ON cited (finding);
CREATE TRIGGER findings_come AFTER INSERT ON findings BEGIN
  DELETE FROM cited WHERE finding = new.id;
  INSERT OR IGNORE INTO cited SELECT new.id, coalesce(json_extract(new.json, '$.message_conversations[' || ids.key || ']'),
    json_extract(new.json, '$.conversations[0]'), ''), ids.value FROM json_each(new.json, '$.message_ids') AS ids;
END;
CREATE TRIGGER findings_go AFTER DELETE ON findings BEGIN DELETE FROM cited WHERE finding = old.id; END;
INSERT OR IGNORE INTO cited SELECT findings.id, coalesce(json_extract(findings.json, '$.message_conversations[' || ids.key || ']'),
  json_extract(findings.json, '$.conversations[0]'), ''), ids.value
  FROM findings, json_each(findings.json, '$.message_ids') AS ids;
