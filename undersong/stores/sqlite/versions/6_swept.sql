CREATE TABLE swept (judge INTEGER NOT NULL, agent TEXT NOT NULL, changed INTEGER NOT NULL, cells BLOB NOT NULL,
  PRIMARY KEY (judge, agent));
