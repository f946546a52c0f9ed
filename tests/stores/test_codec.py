"""Statements lie in files by name: each name that the code uses is there, and each that is there is used."""

from __future__ import annotations

import re
from pathlib import Path

import undersong
from undersong.stores.codec import listed_statements, named_statements

FOLDER = Path(undersong.__file__).parent / "stores"


def test_the_named_statements_are_those_that_the_code_uses() -> None:
    code = "".join(path.read_text(encoding="utf-8") for path in (FOLDER / "neo4j").glob("*.py"))
    used = set(re.findall(r"\bcypher\.(\w+)", code)) - {"glob"}
    used |= {f"count_{kind}" for kind in ("conversations", "messages", "evaluations", "findings")}
    assert used == set(vars(named_statements(FOLDER / "neo4j" / "queries.cypher")))


def test_comments_and_line_breaks_are_no_part_of_a_statement(tmp_path: Path) -> None:
    file = tmp_path / "some.sql"
    file.write_text("-- what they are\n\n-- one: the first\nSELECT 1\n-- a heading of more\n\n-- two\nSELECT\n  2\n")
    assert vars(named_statements(file)) == {"one": "SELECT 1", "two": "SELECT\n  2"}
    file.write_text("-- what they are\nCREATE TABLE a (b,\n  c);\nDROP TABLE a;\n")
    assert listed_statements(file) == ["CREATE TABLE a (b, c)", "DROP TABLE a"]
