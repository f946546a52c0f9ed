"""The fragments beside the rules: promises are found by kind, look-alikes are not, in every form of session."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from undersong.datafiles.yaml_loader import load

ROOT = Path(__file__).parents[2]


def bench() -> ModuleType:
    """``bench/promises.py``, which writes fragments out in each form."""
    spec = importlib.util.spec_from_file_location("promises", ROOT / "bench" / "promises.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


PROMISES = bench()
FRAGMENTS: list[dict[str, Any]] = load(PROMISES.CASES).value["fragments"]
CODE_ONLY = {"same_hash", "comments_only"}  # edits leave no trace where the source does not hold the calls


@pytest.mark.parametrize("form", PROMISES.FORMS)
@pytest.mark.parametrize("fragment", FRAGMENTS, ids=lambda case: case["name"])
def test_a_fragment_is_found_by_its_kind_or_not_at_all(fragment: dict[str, Any], form: str, tmp_path: Path) -> None:
    conversation, verdict = PROMISES.verdict(fragment["turns"], form, tmp_path)
    expected = [fragment["expect"]] if fragment["expect"] else []
    unseen = form == "bare" and "call" in str(fragment["turns"]) and expected and expected[0] in CODE_ONLY
    got = PROMISES.kinds(verdict)
    assert set(got) == (set() if unseen else set(expected))
    texts = {message.id: message.text for message in conversation.messages}
    for deduction in verdict.deductions:
        for quote in deduction.quotes:
            assert texts[quote.message_id][quote.start : quote.end] == quote.text


def test_at_least_sixty_fragments_half_of_them_innocent() -> None:
    innocent = sum(each["expect"] is None for each in FRAGMENTS)
    assert len(FRAGMENTS) >= 60
    assert 2 * innocent >= len(FRAGMENTS) - innocent
    assert len({each["name"] for each in FRAGMENTS}) == len(FRAGMENTS)
