"""The hand-written sample of every format is known by its content and read without loss."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.formats.conftest import outcome
from undersong.formats import FORMATS, format_by_name
from undersong.formats.sniff import FormatSample
from undersong.formats.sources import OpenInput
from undersong.models import Conversation, Problem, decode, encode

SAMPLES = Path(__file__).parent.parent / "samples"
HOSTILE = SAMPLES.with_name("hostile")
CASES = [
    (form.name, path)
    for form in FORMATS
    for path in sorted((SAMPLES / form.name).rglob("*.*"))
    if not path.name.endswith(".telemetry.json")  # read with its session
]


@pytest.mark.parametrize(("name", "path"), CASES, ids=[f"{name}-{path.name}" for name, path in CASES])
def test_a_sample_is_detected_without_its_name(name: str, path: Path, tmp_path: Path) -> None:
    disguised = tmp_path / "x.dat"
    disguised.write_bytes(path.read_bytes())
    result = outcome(disguised)
    assert [each.source_format for each in result.files] == [name]
    assert result.problem_texts("record") == result.problem_texts("file") == []
    assert result.conversations


def test_a_format_is_not_passed_over_for_its_marks() -> None:
    for path in [path for _, path in CASES] + sorted(HOSTILE.glob("*.json*")):
        with OpenInput(path) as opened:
            for sample in map(FormatSample, opened.sources(path.stem)):
                assert [form.name for form in FORMATS if form.reader().sniff(sample) and not form.knows(sample)] == []


def test_every_format_has_a_sample() -> None:
    assert {name for name, _ in CASES} == {form.name for form in FORMATS}


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_a_forced_format_gives_the_same_as_detection(form: object) -> None:
    name = getattr(form, "name", "")
    folder = SAMPLES / name
    assert outcome(folder, source_format=name).conversations == outcome(folder).conversations


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_conversations_of_every_format_survive_json(form: object) -> None:
    for conversation in outcome(SAMPLES / getattr(form, "name", "")).conversations:
        assert decode(encode(conversation), Conversation) == conversation


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_every_message_can_be_traced_to_its_place(form: object) -> None:
    for conversation in outcome(SAMPLES / getattr(form, "name", "")).conversations:
        for message in conversation.messages:
            assert message.source_ref is not None
            assert (SAMPLES / message.source_ref.file).is_file()
            assert message.source_ref.line or message.source_ref.pointer


def test_a_cut_sample_is_reported_and_never_empty_in_silence(tmp_path: Path) -> None:
    for name, path in CASES:
        data = path.read_bytes()
        for share in (0.3, 0.6, 0.9):
            cut = tmp_path / path.name
            cut.write_bytes(data[: int(len(data) * share)])
            result = outcome(cut, source_format=name)
            assert result.conversations or any(isinstance(each, Problem) for each in result.problems)


def test_mpc_es_is_another_name_of_the_session_format() -> None:
    assert format_by_name("mpc-es") is format_by_name("session")
