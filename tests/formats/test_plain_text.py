"""Plain-text transcripts: who speaks, where a turn ends, and what is no turn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.formats.conftest import outcome

SAMPLE = Path(__file__).parent.parent / "samples" / "text" / "chat.txt"


def turns(result: Any) -> list[tuple[str, str]]:
    return [(message.author, message.text) for message in result.only.messages]


def test_words_with_a_colon_and_code_are_no_turns() -> None:
    chat = outcome(SAMPLE).only
    assert [message.author for message in chat.messages] == ["User", "Assistant", "User", "Assistant"]
    assert "Note: no changes are needed." in chat.messages[1].text
    assert "User: this line is code" in chat.messages[2].text
    assert chat.messages[1].source_ref is not None
    assert chat.messages[1].source_ref.line == 6


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("User: a\nAssistant: b", [("User", "a"), ("Assistant", "b")]),
        ("**Human:** a\n\n**AI:** b\nc", [("Human", "a"), ("AI", "b\nc")]),
        ("### You said:\na\n### ChatGPT said:\nb", [("You said", "a"), ("ChatGPT said", "b")]),
        ("Kira: a\nTom: b\nSee: c\nKira: d", [("Kira", "a"), ("Tom", "b\nSee: c"), ("Kira", "d")]),
        ("[2026-01-01 10:00] Kira: a\n[2026-01-01 10:01] Tom: b", [("Kira", "a"), ("Tom", "b")]),
        ("Kira (2026-01-01T10:00:00Z): a\r\nTom: b\r\nTom: c", [("Kira", "a"), ("Tom", "b"), ("Tom", "c")]),
        ("User: a\nLuna: b\nUser: c\nLuna: d", [("User", "a"), ("Luna", "b"), ("User", "c"), ("Luna", "d")]),
        (
            "System: a\nUser: b\nLuna: c\nUser: d\nLuna: e",
            [("System", "a"), ("User", "b"), ("Luna", "c"), ("User", "d"), ("Luna", "e")],
        ),
        ("Me: a\nChatGPT: b\nSee: c", [("Me", "a"), ("ChatGPT", "b\nSee: c")]),
        ("李雷：a\n韩梅梅：b\n李雷：c", [("李雷", "a"), ("韩梅梅", "b"), ("李雷", "c")]),
        ("Élodie: a\nДмитрий: b\nÉlodie: c", [("Élodie", "a"), ("Дмитрий", "b"), ("Élodie", "c")]),
    ],
)
def test_turns_begin_with_a_name_and_a_colon(ingest: Any, text: str, expected: list[tuple[str, str]]) -> None:
    assert turns(ingest(text, "a.txt")) == expected


def test_agent_in_a_transcript_says_who_serves_and_is_nobody_that_another_transcript_knows(ingest: Any) -> None:
    conversation = ingest("Agent: a\nCustomer: b\nAgent: c\nCustomer: d", "call.txt").only
    assert [message.agent for message in conversation.messages] == 2 * ["call/Agent", "call/Customer"]
    assert {message.role for message in conversation.messages} == {"assistant", "participant"}


ERROR = "Traceback (most recent call last):\n  File 'a.py', line 3\nKeyError: 'x'"


@pytest.mark.parametrize("names", [("You said", "ChatGPT said"), ("Dana", "Vex")])
def test_a_pasted_traceback_stays_in_the_turn_of_who_pasted_it(ingest: Any, names: tuple[str, str]) -> None:
    one, other = names
    talk = f"{one}: it broke\n{ERROR}\n{other}: I see.\n{one}: again\n{ERROR}\n{other}: Hm."
    assert turns(ingest(talk, "a.txt")) == [
        (one, f"it broke\n{ERROR}"), (other, "I see."), (one, f"again\n{ERROR}"), (other, "Hm."),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "first"),
    [
        (("25/02/2026, 21:14 - Dana: a: b", "26/02/2026, 00:02 - +49 170 1: c"), "2026-02-25T21:14"),
        (("2/25/26, 9:14\u202fPM - Dana: a: b", "2/25/26, 9:16\u202fPM - Vex: c"), "2026-02-25T21:14"),
        (("[25.02.26, 21:14:05] Dana: a: b", "\u200e[25.02.26, 21:14:59] ~ Vex: c"), "2026-02-25T21:14"),
        (("[03.02.26, 21:14:05] Dana: a: b", "[03.02.26, 21:14:59] Vex: c"), "2026-02-03T21:14"),
        (("2026-02-25, 21:14 - Dana: a: b", "2026-02-25, 21:15 - Vex: c"), "2026-02-25T21:14"),
    ],
)
def test_a_messengers_export_is_read_with_its_times(ingest: Any, lines: tuple[str, str], first: str) -> None:
    result = ingest("\n".join(lines), "a.txt")
    assert [message.text for message in result.only.messages] == ["a: b", "c"]
    assert result.only.messages[0].time.isoformat().startswith(first)


def test_a_date_that_may_be_two_days_is_unknown_and_said_so(ingest: Any) -> None:
    result = ingest("03/02/2026, 21:14 - Dana: a\n03/02/2026, 21:15 - Vex: b", "a.txt")
    assert [message.time for message in result.only.messages] == [None, None]
    assert result.problem_texts("note") == [
        "2 × date that may be day or month first, taken as unknown (give --dates day-first or month-first)"
    ]


def test_what_the_messenger_itself_says_is_nobodys_message(ingest: Any) -> None:
    talk = [
        "25/02/2026, 21:10 - Messages are end-to-end encrypted.",
        "25/02/2026, 21:14 - Dana: a",
        "Note: b",
        "25/02/2026, 21:15 - Vex changed the subject",
        "25/02/2026, 21:16 - Vex: c",
    ]
    result = ingest("\n".join(talk), "a.txt")
    assert turns(result) == [("Dana", "a\nNote: b"), ("Vex", "c")]
    assert result.problem_texts("note") == ["2 × notice of the messenger, not read"]


@pytest.mark.parametrize(
    "instead", ["<Media omitted>", "\u200eimage omitted", "This message was deleted", "Diese Nachricht wurde gelöscht."]
)
def test_what_stands_in_place_of_a_picture_is_nobodys_words(ingest: Any, instead: str) -> None:
    lines = f"[25.02.26, 21:14:05] Dana: {instead}", f"[25.02.26, 21:14:59] Vex: You wrote: {instead}"
    result = ingest("\n".join(lines), "a.txt")
    assert [message.text for message in result.only.messages] == ["", f"You wrote: {instead}"]
    assert result.problem_texts("note") == ["1 × picture, recording or deleted message, which the export leaves out"]


@pytest.mark.parametrize(
    "text",
    [
        "# A README\n\nThis is prose.\n\nNote: it has a colon.\n",
        "http://example.org\nhttps://example.org\n",
        "Just words.\n",
        "Note: one turn is no talk.\n",
    ],
)
def test_prose_is_no_transcript(ingest: Any, text: str) -> None:
    (problem,) = ingest(text, "a.txt").problems
    assert problem.what == "of no known format"
    assert "each turn begins with a name and a colon" in problem.remedy


def test_a_time_in_brackets_is_read_and_one_without_a_date_noted(ingest: Any) -> None:
    result = ingest("[2026-01-01 10:00] Kira: a\n[10:05] Tom: b", "a.txt")
    assert [message.time is not None for message in result.only.messages] == [True, False]
    assert len(result.problem_texts("note")) == 1


def test_a_file_without_turns_is_refused_when_forced(ingest: Any) -> None:
    result = ingest("no colon here", "a.txt", source_format="text")
    assert result.problem_texts("file") == ["has no turn such as 'User: …'"]


def test_what_is_not_utf8_names_its_line(ingest: Any) -> None:
    (problem,) = ingest(b"User: a\nAssistant: caf\xe9 \xff\n", "a.txt").problems
    assert (problem.kind, problem.what, problem.where.rsplit(":")[-1]) == ("file", "is not UTF-8", "2")


def test_a_long_line_of_letters_takes_no_quadratic_time(ingest: Any) -> None:
    assert len(ingest("User: " + "a " * 500_000 + "\nAssistant: " + "*" * 500_000, "a.txt", "text").only.messages) == 2
