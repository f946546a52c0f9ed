"""The hashes of an LLM judge change with all that is asked and with all that is made of its answers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.judges.dialogue import KEYS, question
from undersong.judges.limits import RunLimits
from undersong.judges.llm import injection, prompt_fingerprint, prompts, response
from undersong.judges.llm.prompt_fingerprint import answer_checks_hash, questions_hash
from undersong.judges.llm.prompts import render_question
from undersong.judges.protocol import open_judge
from undersong.models import ToolCall

SPEC = "openai:m@http://127.0.0.1:9/v1"


def hashes() -> tuple[str, str]:
    """Made anew, as after a change."""
    forget()
    return questions_hash(), answer_checks_hash()


def forget() -> None:
    for cached in (
        questions_hash,
        answer_checks_hash,
        response.answer_schema,
        response.confirm_schema,
        injection._cues,
    ):
        cached.cache_clear()


@pytest.fixture(autouse=True)
def _nothing_stays() -> Iterator[None]:
    yield
    forget()


@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        (prompts, "SPEAKERS", {"user": "Person"}),
        (prompts, "HIGH", 0.6),
        (prompts, "block", lambda *_: ""),
        (prompts, "_HIDDEN", frozenset({"Cc", "Cs"})),
        (response, "QUOTE", 100),
        (response, "MOST_ACTS", 5),
        (prompts, "shortened", lambda text, _: (text, 0)),
    ],
)
def test_what_is_asked_has_a_hash(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, value: Any) -> None:
    asked, checked = hashes()
    monkeypatch.setattr(module, name, value)
    assert hashes()[0] != asked
    monkeypatch.undo()
    assert hashes() == (asked, checked)


@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        (response, "CLAIM", 10),
        (response, "_unescaped", lambda quote: quote),
        (injection, "LONGEST", 10),
    ],
)
def test_what_is_made_of_an_answer_has_one_of_its_own(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, value: Any
) -> None:
    asked, checked = hashes()
    monkeypatch.setattr(module, name, value)
    changed = hashes()
    assert changed[0] == asked
    assert changed[1] != checked


def test_a_new_cue_makes_another_judge_that_asks_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """So paid answers are used again, and evaluations are made anew from them."""
    before = open_judge(SPEC, RunLimits(environment=KEYS))
    cues = tmp_path / "injection.yaml"
    cues.write_text(injection.FILE.read_text(encoding="utf-8").replace("id: override", "id: overrides"), "utf-8")
    monkeypatch.setattr(injection, "FILE", cues)
    hashes()
    after = open_judge(SPEC, RunLimits(environment=KEYS))
    monkeypatch.undo()
    hashes()
    assert after.hash != before.hash
    assert after.prompt_hash == before.prompt_hash  # type: ignore[attr-defined]


def test_the_hashes_are_the_same_in_every_process() -> None:
    line = "from undersong.judges.llm.prompt_fingerprint import *; print(questions_hash(), answer_checks_hash())"
    command = [sys.executable, "-c", line]
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert ran.stdout == f"{questions_hash()} {answer_checks_hash()}\n"


def test_they_stand_in_the_manifest_by_name() -> None:
    assert prompt_fingerprint.judge_hashes()["questions as asked"] == questions_hash()
    assert open_judge(SPEC, RunLimits(environment=KEYS)).hashes == prompt_fingerprint.judge_hashes()


def test_half_a_character_in_a_tool_call_is_asked_about_as_an_escape() -> None:
    call = ToolCall(name="run", input={"code": "\ud800"})
    put = question("hello")
    asked = msgspec.structs.replace(put, message=msgspec.structs.replace(put.message, tool_calls=(call,)))
    assert r'Tool call: "run" "{\"code\":\"\ud800\"}"' in render_question(asked).user
