"""Runs an old and a new version of undersong side by side and compares everything that they write, byte for byte.

python -m bench.differential OLD NEW [--only NAME] [--quick]
python -m bench.differential CHECKOUT --golden FILE
python -m bench.differential CHECKOUT --against FILE

OLD and NEW are folders with a source checkout; each may have an interpreter of its own. Both versions run the same
commands in folders of the same layout under relative names, so that what they write needs hardly any mending before it
is compared. The inputs are made once, by OLD. What is compared: standard output, standard error, exit codes, report
folders, rows, findings, SQLite tables, and the requests that a judge's server received.

Exit code 0: no difference; 1: differences, each with its section, command, file and first differing place; 2: wrong
use.

Before bytes are compared, these are replaced, and nothing else (``normal.py``):

1. the absolute path of the work folder and of the checkout, by <WORK> and <CHECKOUT>: they differ by design;
2. the version behind the word undersong or in a key ``version``, by <VERSION>, and only where the two versions differ;
   the digest of a report is a hash over its version, too, and then differs: better compare under one number;
3. ``run.json`` of a report keeps its keys alone: it holds the times of the run;
4. ``paid.sent`` of a store (when a question was sent) becomes 0, and the time ``forgotten`` of a name <TIME>;
5. in the section of the judge rows of tables and requests are sorted, and of a file that grows while it is watched the
   findings that hold at the end are compared: the order of concurrent answers, and of pieces read, is nobody's. Of a
   request the method, path, body and headers count, but for those of the connection and the SDK's retry count and
   time-out (``wire.py``).

Hash seeds are random, so that an order that follows Python's sets shows, but in the section of the monitor: there, one
step's findings and new conversations are in such an order (three of 200 worlds), and both versions have the seed 0.

Nothing here imports undersong. The few helpers that need it run inside the checkout under test (``inside/``): they use
public names, and tests' or benches' modules whose possible names stand in one table, ``inside/names.py``.
"""
