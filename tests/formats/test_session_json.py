"""Session JSON and its telemetry."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from tests.formats.conftest import outcome

FOLDER = Path(__file__).parent.parent / "samples" / "session"


def session(*turns: Any, **fields: Any) -> dict[str, Any]:
    return {"schema": "undersong.session", "version": 1, "session": {"id": "s"}, "turns": list(turns)} | fields


def turn(index: int, text: Any = "x", role: str = "user", **fields: Any) -> dict[str, Any]:
    return {"index": index, "role": role, "text": text} | fields


def test_telemetry_beside_a_session_fills_times_and_breaks() -> None:
    result = outcome(FOLDER)
    night = result.only
    assert [message.time.isoformat() if message.time else None for message in night.messages] == [
        "2026-01-10T00:00:10+00:00", "2026-01-10T00:00:16+00:00", "2026-01-10T00:40:00+00:00", None
    ]  # fmt: skip
    assert (night.timezone, len(night.breaks), night.context) == ("Europe/Vienna", 1, ("deadline",))
    assert [each.source_format for each in result.files] == ["telemetry", "session"]


def test_telemetry_is_read_once_even_when_it_is_named(tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "s")
    result = outcome(tmp_path / "s" / "night.telemetry.json", tmp_path / "s" / "night.json")
    assert [Path(each.name).name for each in result.files] == ["night.telemetry.json", "night.json"]
    assert result.problem_texts("file") == []


def test_a_session_without_telemetry_is_complete_in_itself(tmp_path: Path) -> None:
    path = tmp_path / "night.json"
    path.write_bytes((FOLDER / "night.json").read_bytes())
    assert [message.time is None for message in outcome(path).only.messages] == [False, True, True, True]
    assert outcome(path).only.messages[1].latency == 4.2


def test_telemetry_of_another_session_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(session(turn(0))))
    telemetry = {"session": "other", "turn_times": ["2026-01-01T00:00:00Z"]}
    (tmp_path / "telemetry.json").write_text(json.dumps(telemetry))
    assert outcome(tmp_path).only.messages[0].time is None
    (tmp_path / "telemetry.json").write_text(json.dumps(telemetry | {"session": "s"}))
    assert outcome(tmp_path).only.messages[0].time is not None


def test_telemetry_that_says_nothing_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(session(turn(0))))
    (tmp_path / "a.telemetry.json").write_text('{"turn_tmes": []}')
    result = outcome(tmp_path)
    assert result.problem_texts("record") == ["telemetry without 'turn_times' or 'breaks'"]
    assert len(result.only.messages) == 1


def test_turns_are_ordered_by_their_index(ingest: Any) -> None:
    result = ingest(session(turn(2, "c"), turn(0, "a"), turn(1, "b", "assistant")))
    assert [message.text for message in result.only.messages] == ["a", "b", "c"]


def test_wrong_turns_are_reported_with_their_pointer(ingest: Any) -> None:
    result = ingest(session(turn(0), turn(1, None), turn(2, role="ghost"), 3, turn(4, ts="later")), "a.json")
    assert [message.position for message in result.only.messages] == [0, 1]
    assert [problem.where.rsplit("/", 1)[1] for problem in result.problems if problem.kind == "record"] == [
        "1",
        "2",
        "3",
    ]


def test_an_unknown_version_and_code_hashes_are_noted(ingest: Any) -> None:
    blocks = [{"lang": "python", "sha256": "0" * 64}]
    notes = ingest(session(turn(0, code_blocks=blocks), version=9)).problem_texts("note")
    assert len(notes) == 2


def test_sessions_in_a_list_are_known_by_their_content(ingest: Any) -> None:
    result = ingest({"sessions": [{"session": {"id": "s1"}, "turns": [{"role": "user", "text": "Hello."}]}]})
    assert (result.only.id, result.problems) == ("s1", [])
