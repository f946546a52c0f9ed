"""Smoking guns: an agent's own admission of a fault, or what a judge reads with its words; no signal alone."""

from __future__ import annotations

import pytest

from undersong.models import Conversation, Indicator, Message, Moment, Reading, Role, Row
from undersong.scan import load_book, scan_conversation
from undersong.verdict.annotations import smoking_guns


def guns_in(*turns: tuple[Role, str], signal: float | None = None) -> tuple[Moment, ...]:
    """The smoking guns of a talk; ``signal``: delusion reinforcement of the last turn."""
    messages = tuple(
        Message(id=f"t{n}", conversation="c", position=n, author=role, agent=role, role=role, text=text)
        for n, (role, text) in enumerate(turns)
    )
    talk = Conversation(id="c", source_format="jsonl", messages=messages)
    rows = [] if signal is None else [Row(id=messages[-1].id, signals={"delusion_reinforcement": signal})]
    scans, _ = scan_conversation(talk, load_book())
    return smoking_guns(talk, scans, rows)


def test_an_admission_is_quoted_with_its_sentence() -> None:
    (gun,) = guns_in(("user", "Did the test run?"), ("assistant", "Well. I never ran the test. Here is what I saw."))
    assert (gun.code, gun.position, gun.basis) == ("fault_admission", 1, "words")
    assert [quote.text for quote in gun.quotes] == ["I never ran the test."]


@pytest.mark.parametrize(
    ("role", "text"),
    [
        ("user", "That was my mistake, sorry."),
        ("assistant", "> I made that up\n\nIs that what you heard?"),
        ("assistant", "```\nprint('that was my fault')\n```"),
        ("assistant", "Whose mistake was it?"),
        ("tool", "I never ran"),
    ],
)
def test_what_others_say_code_and_quoted_lines_are_no_admission(role: Role, text: str) -> None:
    assert guns_in((role, text)) == ()


def test_a_signal_alone_is_none() -> None:
    turns = ("user", "The towers speak to me."), ("assistant", "Yes, the towers do speak to you alone.")
    assert guns_in(*turns, signal=1.0) == ()


def test_admissions_stand_in_the_order_of_the_talk() -> None:
    guns = guns_in(("user", "Do they watch me?"), ("assistant", "I made that up."), ("assistant", "I lied to you."))
    assert [gun.position for gun in guns] == [1, 2]


@pytest.mark.parametrize(
    ("code", "quote", "guns"),
    [
        ("fault_admission", "the table was not real", [("fault_admission", "judge", 0.8, "the table was not real")]),
        ("fault_admission", "the table was real", []),
        ("fault_admission", None, []),
        ("delusion_reinforcement", "not real", [("delusion_reinforcement", "judge", 0.8, "not real")]),
        ("false_promise", "the table was not real", []),
    ],
)
def test_what_a_judge_reads_in_a_message_is_one_with_its_quote(
    code: str, quote: str | None, guns: list[object]
) -> None:
    message = Message(
        id="t0", conversation="c", position=0, author="bo", role="assistant", text="So the table was not real."
    )
    talk = Conversation(id="c", source_format="jsonl", messages=(message,))
    scans, _ = scan_conversation(talk, load_book())
    reading = Reading(mechanisms=(Indicator(id=code, confidence=0.8, quote=quote),))
    result = smoking_guns(talk, scans, [Row(id="t0", conversation="c", state="scored", reading=reading)])
    assert [(gun.code, gun.basis, gun.strength, gun.quotes[0].text) for gun in result] == guns


@pytest.mark.parametrize(
    ("text", "guns"),
    [
        ("My mistake.", 0),
        ("My mistake! Here is the list in the other order.", 0),
        ("Sorry, that was my mistake. Which file did you mean?", 0),
        ("My mistake, the fix was never applied.", 1),
        ("That was my mistake. I overlooked the second table.", 1),
        ("I made an error in reading the gauge.", 1),
    ],
)
def test_a_form_of_politeness_is_no_admission_unless_a_fault_is_named(text: str, guns: int) -> None:
    assert len(guns_in(("user", "Is that so?"), ("assistant", text))) == guns
