"""What may differ between two runs of equal programs, taken out of their bytes; see the package's docstring."""

from __future__ import annotations

import json
import re
import sqlite3
from dataclasses import dataclass
from pathlib import Path

FORGOTTEN = re.compile(rb'("forgotten": ?)"[^"]*"')  # when a name was forgotten
TIMES = {("paid", "sent")}  # columns of the store that hold the time of the run


@dataclass(frozen=True)
class Normal:
    """The replacements for one side: (path, its stand-in), and the version where it is to be replaced."""

    paths: tuple[tuple[bytes, bytes], ...]
    version: str | None = None

    def __call__(self, raw: bytes) -> bytes:
        """The bytes without paths, and without the version where the two versions differ."""
        for path, name in self.paths:
            raw = raw.replace(path, name)
        raw = FORGOTTEN.sub(rb'\1"<TIME>"', raw)
        if self.version is None:
            return raw
        version = re.escape(self.version.encode())
        return re.sub(rb'(undersong[ ,/v]+(?:version )?|"version": ?")' + version, rb"\1<VERSION>", raw)


def report_file(path: Path) -> bytes:
    """The bytes of a report's file; of ``run.json`` only its keys."""
    if path.name != "run.json":
        return path.read_bytes()
    return json.dumps(sorted(json.loads(path.read_bytes()))).encode()


def tables(path: Path, *, unordered: bool = False) -> dict[str, bytes]:
    """Table → its rows as text, in the order of the table or sorted, beside the schema; times of the run are 0."""
    with sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True) as db:
        schema = "\n".join(
            sql for (sql,) in db.execute("SELECT sql FROM sqlite_master WHERE sql NOT NULL ORDER BY name")
        )
        contents = {"schema": f"{schema}\nuser_version {db.execute('PRAGMA user_version').fetchone()[0]}".encode()}
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        for name in names:
            cursor = db.execute(f'SELECT * FROM "{name}"')
            columns = [column[0] for column in cursor.description]
            lines = [_line(name, columns, row) for row in cursor]
            contents[name] = "\n".join([repr(columns), *(sorted(lines) if unordered else lines)]).encode()
    db.close()
    return contents


def _line(table: str, columns: list[str], row: tuple[object, ...]) -> str:
    cells = [0 if (table, column) in TIMES else cell for column, cell in zip(columns, row, strict=True)]
    return repr(tuple(cells))
