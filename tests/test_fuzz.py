"""A share of the fuzz run of bench/fuzz.py: mutated inputs of every format end in data or in a report.

The seed is fixed, so that a commit passes or fails whatever its number; ``UNDERSONG_FUZZ_SEED`` sets another.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from itertools import islice
from pathlib import Path
from types import ModuleType

import pytest

from bench.every_place import moves_by_key

COUNT = 5_000  # a twentieth of the 100,000 that another seed has every night
SEED = int(os.environ.get("UNDERSONG_FUZZ_SEED", "20"))


@pytest.fixture(scope="module")
def fuzz() -> ModuleType:
    """The program under bench/, which is no package."""
    path = Path(__file__).parent.parent / "bench" / "fuzz.py"
    spec = importlib.util.spec_from_file_location("bench_fuzz", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["bench_fuzz"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_no_mutated_input_crashes_hangs_loses_words_or_takes_the_memory(fuzz: ModuleType, tmp_path: Path) -> None:
    before = fuzz.growth()
    outcomes = list(fuzz.run(COUNT, SEED, tmp_path))
    failed = [each for each in outcomes if each.verdict in ("crash", "hang", "lost words")]
    assert failed == [], f"seed {SEED}\n{fuzz.table(outcomes)}"
    assert fuzz.growth() - before < fuzz.GROWTH
    assert {each.form for each in outcomes} == {form.name for form in fuzz.FORMATS}
    assert {each.verdict for each in outcomes} == {"ok", "problems", "file error"}


def test_a_text_under_any_other_key_is_read_or_named(fuzz: ModuleType, tmp_path: Path) -> None:
    lost, count = [], 0
    for sample in fuzz.samples():
        for move in islice(moves_by_key(sample), len(sample.data) % 4, None, 4):  # a quarter: all takes seconds
            (tmp_path / sample.name).write_bytes(move.data)
            wanted = fuzz.Wanted.of(sample, move.data, sample.form)
            result = fuzz.attempt(tmp_path / sample.name, sample.form, forced=True, wanted=wanted)
            lost += [(sample.form, move.place, result.detail)] if result.verdict in fuzz.FAILURES else []
            count += 1
    assert lost == []
    assert count > 80


def test_the_same_seed_gives_the_same_inputs(fuzz: ModuleType, tmp_path: Path) -> None:
    verdicts = [[each.verdict for each in fuzz.run(60, 7, tmp_path)] for _ in range(2)]
    assert verdicts[0] == verdicts[1]


def test_a_reader_that_fails_is_found(fuzz: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> object:
        raise KeyError("role")

    assert len([*fuzz.run(5, 1, tmp_path)]) == 5  # reads the samples themselves, once
    monkeypatch.setattr(fuzz, "read", broken)
    assert {each.verdict for each in fuzz.run(5, 1, tmp_path)} == {"crash"}


def test_an_escape_of_json_is_no_part_of_a_word(fuzz: ModuleType) -> None:
    sample = next(each for each in fuzz.samples() if each.name == "agent-a7.jsonl")
    assert "failing" in fuzz.still_there(sample, sample.data)
    assert "failing" not in fuzz.still_there(sample, sample.data.replace(b"failing", b"\\failing"))  # a form feed


def test_a_problem_that_a_sample_always_has_names_no_lost_word(fuzz: ModuleType, tmp_path: Path) -> None:
    sample = next(each for each in fuzz.samples() if each.name == "agent.jsonl")
    (tmp_path / sample.name).write_bytes(sample.data)
    problems = [item for item in fuzz.read([tmp_path / sample.name]) if isinstance(item, fuzz.Problem)]
    wanted = fuzz.Wanted.of(sample, sample.data, None)
    assert problems
    assert "failed" in wanted.words
    assert wanted.lost(set(wanted.words), problems) == []
    assert "failed" in wanted.lost(set(wanted.words) - {"failed"}, problems)
    assert wanted.lost((set(wanted.words) - {"failed"}) | {"hasfailed"}, problems) == []  # parts joined without a space
    there = fuzz.Problem(what=problems[0].what, where="agent.jsonl:8")
    assert wanted.lost(set(wanted.words) - {"failed"}, [there]) == []
