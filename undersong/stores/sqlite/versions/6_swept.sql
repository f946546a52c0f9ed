-- Version 6: the packed histories that sweeps have read. They hold where changed is that of the agent.
CREATE TABLE swept (judge INTEGER NOT NULL, agent TEXT NOT NULL, changed INTEGER NOT NULL, cells BLOB NOT NULL,
  PRIMARY KEY (judge, agent));
