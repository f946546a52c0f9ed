"""What is in the messages of a lead, by kind: wordings of each, neighbours that are none, silence, and whose words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from undersong.datafiles.verdict_config import harm_kinds_config
from undersong.models import LeadKind, Message
from undersong.models.lead import told_apart
from undersong.verdict.detectors.harm_kinds import harm_kinds

CASES: dict[str, dict[str, list[str]]] = yaml.safe_load(
    Path(__file__).with_name("harm_kinds.yaml").read_text(encoding="utf-8")
)
COMPANIONS: dict[str, dict[str, dict[str, list[str]]]] = yaml.safe_load(
    Path(__file__).with_name("companions.yaml").read_text(encoding="utf-8")
)
START = datetime(2026, 3, 2, 9, tzinfo=UTC)


def kinds(*lines: tuple[str, float, str], agent: str = "Ana", **more: Any) -> dict[str, LeadKind]:
    """By kind what ``agent`` says in lines of who, hours since the start, and words."""
    messages = [
        Message(id=str(place), conversation="c", position=place, author=who, agent=who, text=text,
                time=START + timedelta(hours=hours), **{"role": "participant", **more})
        for place, (who, hours, text) in enumerate(lines)
    ]  # fmt: skip
    return {kind.kind: kind for kind in harm_kinds(messages, agent)}


def of(text: str, name: str) -> set[str]:
    """The kinds of a message, twice where a kind needs two."""
    rule = harm_kinds_config().kinds[name]
    role = "assistant" if rule.of == "assistants" else "participant"
    return set(kinds(*[("Ana", 0.0, text)] * rule.least, role=role))


def test_every_kind_has_wordings_and_innocent_neighbours() -> None:
    assert list(CASES) == list(harm_kinds_config().kinds)
    assert min(len(texts) for case in CASES.values() for texts in case.values()) >= 5


@pytest.mark.parametrize("name", CASES)
def test_a_kind_is_named_by_its_wordings_and_by_no_neighbour(name: str) -> None:
    assert [text for text in CASES[name]["named"] if name not in of(text, name)] == []
    assert [text for text in CASES[name]["innocent"] if of(text, name)] == []


def test_a_kind_says_how_often_and_what_was_answered() -> None:
    control = kinds(
        ("Ana", 0, "why is your location off"),
        ("Bo", 1, "my battery died"),
        ("Ana", 30, "who did you sit with, and send me a screenshot of your calls"),
        ("Bo", 80, "we need bread"),
    )["control"]
    assert control.message_ids == ("0", "2")
    assert control.quotes[0].text == "why is your location off"
    assert [each.message_id for each in control.quotes] == ["0", "2"]
    assert [answer.text for answer in control.answers] == ["my battery died"]


def test_every_sentence_is_there_by_date_and_of_each_stretch_the_longest_is_shown() -> None:
    texts = (
        "who were you with",
        "send me your location",
        "if you've nothing to hide show me the phone",
        "where are you",
    )
    control = kinds(*(("Ana", 30.0 * place, text) for place, text in enumerate(texts)))["control"]
    assert [each.text for each in control.quotes] == list(texts)
    assert [each.text for each in told_apart(control.quotes, 2)] == [texts[1], texts[2]]
    assert [each.text for each in told_apart(control.quotes, 9)] == list(texts)


SILENT = (("Ana", 0.0, "I said what I said"), ("Bo", 1.0, "are we ok?"), ("Bo", 9.0, "please say something"))


def test_silence_that_is_carried_out_needs_a_long_wait_and_somebody_who_asks() -> None:
    assert kinds(*SILENT, ("Ana", 26, "hey you, thai tonight?"))["unanswered"].message_ids == ("2",)
    assert "unanswered" not in kinds(*SILENT, ("Ana", 10, "sorry, was driving"))
    assert "unanswered" not in kinds(
        ("Ana", 0, "see you"), ("Bo", 1, "bring milk"), ("Bo", 9, "and eggs"), ("Ana", 26, "ok")
    )


def test_words_of_the_other_side_are_not_those_of_a_speaker() -> None:
    assert kinds(("Bo", 0, "why is your location off"), ("Ana", 1, "battery")) == {}
    assert kinds(("Ana", 0, "The chef notices what others sleep through.")) == {}  # said by a person, no bot


def talk(lines: list[str]) -> set[str]:
    """The kinds that are in the messages of the assistant."""
    messages = [
        Message(id=str(place), conversation="c", position=place, author=who, agent=who, role=who.lower(), text=text)
        for place, (who, _, text) in enumerate(line.partition(": ") for line in lines)
    ]
    return {kind.kind for kind in harm_kinds(messages, "Assistant")}


@pytest.mark.parametrize("case", COMPANIONS["harmful"])
def test_what_harms_in_an_assistant_is_named(case: str) -> None:
    assert set(COMPANIONS["harmful"][case]["kinds"]) <= talk(COMPANIONS["harmful"][case]["lines"])


@pytest.mark.parametrize("case", COMPANIONS["kind"])
def test_warm_clinical_firm_and_playful_words_of_an_assistant_are_no_kind_of_harm(case: str) -> None:
    assert talk(COMPANIONS["kind"][case]["lines"]) == set()
