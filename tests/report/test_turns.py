"""Verify with the inputs: who said what to whom, when and in which order must be as in the export."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest

from tests.conftest import Undersong
from undersong.models import Conversation, Message, Row
from undersong.report.writer import write
from undersong.verify import check, verify
from undersong.verify.manifest_check import Content, read_content

REPORT, FORGED = Path("undersong-report"), Path("forged")
SESSION, THREAD = Path("samples/invoice_session.json"), Path("samples/memory_thread.json")
Turn = TypeVar("Turn", Message, Row)


def read() -> Content:
    content, broken = read_content(REPORT)
    assert content is not None
    assert broken == []
    return content


def forge(
    turn: Callable[[Message | Row], dict[str, object]], talk: Callable[[Conversation], Conversation] = lambda c: c
) -> None:
    """A report with other messages, written and sealed by our own hand, so that every page and hash agrees."""

    def changed(entry: Turn) -> Turn:
        fields = {name: value for name, value in turn(entry).items() if name in entry.__struct_fields__}
        return msgspec.structs.replace(entry, **fields)

    content = read()
    conversations = {
        each.id: talk(msgspec.structs.replace(each, messages=tuple(map(changed, each.messages))))
        for each in content.conversations
    }
    case = msgspec.structs.replace(content.case, cited=tuple(map(changed, content.case.cited)))
    write(case, list(map(changed, content.rows)), FORGED, conversations=conversations.get)


def says(*inputs: Path) -> list[str]:
    return [str(each) for each in verify(FORGED, inputs)]


def swapped(turn: Message | Row) -> dict[str, object]:
    """The two speakers of the session in each other's place."""
    names = {"human": "assistant", "assistant": "human"}
    author = getattr(turn, "author", "")
    return {"author": names.get(author, author)}


def test_two_swapped_speakers_are_named_message_by_message(undersong: Undersong) -> None:
    assert undersong("audit", str(SESSION)).code == 0
    assert check(REPORT, [SESSION]).discrepancies == ()
    forge(swapped)
    assert says() == []  # the folder alone contradicts nothing: only the input tells
    output = says(SESSION)
    assert len(output) == sum(len(each.messages) for each in read().conversations)
    assert "turn-00: author does not agree with the input (expected human, found assistant)" in output
    assert "turn-01: author does not agree with the input (expected assistant, found human)" in output


CHANGES = [
    ("agent", "mallory", "agent does not agree with the input (expected invoice-session/assistant, found mallory)"),
    ("role", "user", "role does not agree with the input (expected assistant, found user)"),
    ("target", "mallory", "target does not agree with the input (expected invoice-session/human, found mallory)"),
    ("time", None, "time does not agree with the input (expected 2026-04-14T21:00:40+00:00, found none)"),
    ("position", 7, "position does not agree with the input (expected 1, found 7)"),
    ("id", "turn-99", "is in the inputs and not in conversations.jsonl"),
]


@pytest.mark.parametrize(("fact", "value", "words"), CHANGES)
def test_one_changed_fact_of_one_message_is_named(undersong: Undersong, fact: str, value: object, words: str) -> None:
    undersong("audit", str(SESSION))
    forge(lambda turn: {fact: value} if turn.id == "turn-01" else {})
    assert f"turn-01: {words}" in says(SESSION)


def test_two_messages_in_each_others_place_are_named(undersong: Undersong) -> None:
    undersong("audit", str(SESSION))

    def turned(talk: Conversation) -> Conversation:
        first, second, *rest = talk.messages
        return msgspec.structs.replace(talk, messages=(second, first, *rest))

    forge(lambda _: {}, turned)
    output = says(SESSION)
    assert "turn-01: place in conversations.jsonl does not agree with the input (expected 2, found 1)" in output
    assert "turn-00: place in conversations.jsonl does not agree with the input (expected 1, found 2)" in output


def test_two_texts_in_each_others_place_are_named(undersong: Undersong) -> None:
    undersong("audit", str(SESSION))
    texts = {message.id: message.text for each in read().conversations for message in each.messages}
    other = {"turn-00": texts["turn-02"], "turn-02": texts["turn-00"]}
    forge(lambda turn: {"text": other[turn.id]} if turn.id in other and isinstance(turn, Message) else {})
    assert {f"{each}: text does not agree with the input" for each in other} <= set(says(SESSION))


@pytest.mark.parametrize("redact", [(), ("--redact",), ("--redact-name", "kira_x"), ("--redact-name", "assistant")])
def test_untouched_reports_raise_no_alarm(undersong: Undersong, redact: tuple[str, ...]) -> None:
    assert undersong("audit", "samples", *redact).code == 0
    assert verify(REPORT, [SESSION, THREAD]) == ()
