"""Identities: no two authors share one, and nobody can claim another conversation's author."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.formats.conftest import outcome
from undersong.formats.normalize import own_author, scoped
from undersong.models import Conversation

NAMES = st.text(alphabet="ab/%2F5~", min_size=1, max_size=6)


def agents(path: Path, *rows: dict[str, str]) -> tuple[list[str], list[str]]:
    path.write_text("".join(json.dumps({"text": "hello"} | row) + "\n" for row in rows))
    result = outcome(path)
    assert result.problem_texts("file") == result.problem_texts("record") == []
    return [each.agent for part in result.conversations for each in part.messages], result.problem_texts("note")


@given(NAMES, NAMES, NAMES, NAMES)
def test_two_authors_never_share_an_identity(first: str, author: str, second: str, other: str) -> None:
    assert (scoped(first, author) == scoped(second, other)) == ((first, author) == (second, other))
    assert own_author(first, scoped(first, author)) == author


def test_slashes_in_names_do_not_mix_two_authors_up(tmp_path: Path) -> None:
    agent_ids, notes = agents(
        tmp_path / "in.jsonl", {"conversation": "a", "author": "b/c"}, {"conversation": "a/b", "author": "c"}
    )
    assert (agent_ids, notes) == (["a/b%2Fc", "a%2Fb/c"], [])


def test_an_agent_that_claims_the_author_of_another_conversation_is_kept_apart(tmp_path: Path) -> None:
    agent_ids, notes = agents(
        tmp_path / "in.jsonl",
        {"conversation": "c1", "author": "user"},
        {"conversation": "c2", "agent_id": "c1/user"},
        {"conversation": "c3", "author": "c1/user", "role": "agent"},
        {"conversation": "c4", "agent_id": "lab/model"},
        {"conversation": "c1", "author": "mallory", "agent_id": "c1/user"},
    )
    assert agent_ids == ["c1/user", "~c1/user", "~c1/user", "~c1/user", "lab/model"]
    assert [note.split(":")[0] for note in notes] == ["conversation 'c1'", "conversation 'c2'", "conversation 'c3'"]


def test_rows_that_are_read_back_keep_their_identities(tmp_path: Path) -> None:
    rows = [
        {"conversation": "c1", "agent": "c1/user", "role": "user"},
        {"conversation": "a/b", "agent": "a%2Fb/c%25", "role": "participant"},
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row | {"text": "x"}) + "\n" for row in rows))
    conversations: list[Conversation] = outcome(tmp_path / "rows.jsonl").conversations
    assert [(each.messages[0].author, each.messages[0].agent) for each in conversations] == [
        ("user", "c1/user"),
        ("c%", "a%2Fb/c%25"),
    ]
