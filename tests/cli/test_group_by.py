"""``--group-by``: which author, model or value of a key the marks of a run come from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Undersong
from undersong.errors import InputError
from undersong.formats.keys import InputKeys
from undersong.models import Message, SourceRef

FAULT = "My mistake: I made that number up, and I never ran the test that I told you about."
FINE = "The door opens at nine, and the kitchen closes an hour before the last guests leave."


@pytest.fixture
def export(undersong: Undersong) -> str:  # noqa: ARG001 - for its folder
    """Forty answers of each of two models, of which 36 of one and four of the other admit a fault."""
    lines = []
    for number in range(80):
        model, team = ("north-1", "blue") if number < 40 else ("south-2", "red")
        text = FAULT if number % 40 < (36 if model == "north-1" else 4) else FINE
        talk = {"conversation": f"c{number}", "team": team}
        lines.append(talk | {"role": "user", "author": "ana", "text": "How is it going there?"})
        lines.append(talk | {"role": "assistant", "author": f"bot {number % 2}", "model": model, "text": text})
    Path("talk.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return "talk.jsonl"


def test_an_audit_says_which_model_the_marks_come_from(undersong: Undersong, export: str) -> None:
    output = undersong("audit", export, "--no-chance", "--group-by", "model").out
    assert "by model: 36 of 40 marked messages are of north-1; 50% of the messages are theirs" in output
    assert "36 90.0% [76.3, 97.2]" in output


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("model", {"north-1": (40, 36), "south-2": (40, 4)}),
        ("author", {"bot 0": (40, 20), "bot 1": (40, 20), "ana": (80, 0)}),
        ("team", {"blue": (80, 36), "red": (80, 4)}),
        ("nothing", {}),
    ],
)
def test_groups_are_a_field_of_messages_or_any_key_of_the_input(
    undersong: Undersong, export: str, key: str, expected: dict[str, tuple[int, int]]
) -> None:
    ran = undersong("audit", export, "--no-chance", "--group-by", key, "--json")
    shares = json.loads(ran.out)["groups"]
    assert {each["value"]: (each["messages"], each["marked"]) for each in shares} == expected
    lines = undersong("leads", export, "--group-by", key, "--json").out.splitlines()
    assert [json.loads(line) for line in lines] == shares


def test_keys_are_found_in_the_records_around_a_message(undersong: Undersong) -> None:
    talk = {
        "region": "north",
        "messages": [
            {"role": "user", "content": "Hello there."},
            {"role": "assistant", "content": FAULT, "metadata": {"region": "south"}},
        ],
    }
    Path("talk.json").write_text(json.dumps(talk))
    lines = undersong("leads", "talk.json", "--group-by", "region", "--json").out.splitlines()
    assert [(each["value"], each["marked"]) for each in map(json.loads, lines)] == [("south", 1), ("north", 0)]


def test_a_report_cannot_be_grouped_and_masked_input_not_by_its_keys(undersong: Undersong, export: str) -> None:
    assert undersong("audit", export, "--no-chance").code == 0
    ran = undersong("leads", "undersong-report", "--group-by", "model")
    assert (ran.code, "name the export file" in ran.err) == (2, True)
    ran = undersong("audit", export, "--redact", "--group-by", "team")
    assert (ran.code, "do not redact" in ran.err) == (2, True)


def test_a_file_that_is_gone_by_then_is_named_and_not_taken_for_one_without_the_key(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_text('{"conversation": "c", "author": "a", "text": "x", "team": "blue"}\n')
    keys = InputKeys([path], "team")
    ref = SourceRef(file="talk.jsonl", line=1)
    message = Message(id="1", conversation="c", position=0, author="a", role="participant", text="x", source_ref=ref)
    assert InputKeys([path], "team").of(message) == "blue"
    path.unlink()
    with pytest.raises(InputError, match="cannot be read again"):
        keys.of(message)
