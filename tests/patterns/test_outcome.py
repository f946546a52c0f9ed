"""What came of a finding towards somebody: a request, and whether the target complied, refused, or did not answer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from undersong.models import Finding, Message
from undersong.patterns.outcome import outcome_book, phrase_span, with_outcome
from undersong.report.narrative import outcome_words

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def talk(*lines: str, **overrides: dict[str, Any]) -> list[Message]:
    """``kira>bo: text`` lines; ``overrides`` maps m3 to other fields of the message."""
    messages = []
    for place, line in enumerate(lines):
        who, text = line.split(": ", 1)
        agent, _, target = who.partition(">")
        name = f"m{place}"
        fields = {"target": target or None, "time": NOON + timedelta(minutes=place)} | overrides.get(name, {})
        messages.append(
            Message(
                id=name, conversation="c", position=place, author=agent, agent=agent, role="agent", text=text, **fields
            )
        )
    return messages


def finding(*ids: str, target: str | None = "bo") -> Finding:
    return Finding(
        finding_id="f", pattern="p", title="t", level="high", rule_hash="r", agent="kira", target=target,
        message_ids=ids, message_conversations=("c",) * len(ids), conversations=("c",),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("bo>kira: Sure, here it is.", "complied"),
        ("bo>kira: No. I won’t.", "refused"),
        ("bo>kira: What a day it was", "unclear"),
        ("bo>kira: No... okay", "unclear"),
        ("al>kira: Sure, here it is.", "not_answered"),
    ],
)
def test_after_praise_a_request_is_answered_by_its_target_alone(reply: str, answer: str) -> None:
    messages = talk("kira>bo: You are wonderful", "kira>bo: So wonderful. Could you send me the keys?", reply)
    outcome = with_outcome(finding("m0", "m1"), messages).outcome
    assert outcome is not None
    assert outcome.answer == answer
    assert outcome.request is not None
    assert outcome.request.message_id == "m1"
    assert outcome.request.text in messages[1].text


def test_a_request_before_the_sequence_or_to_somebody_else_is_none() -> None:
    messages = talk("kira>bo: please help", "kira>bo: You are wonderful", "kira>al: please help", "kira>bo: A fine day")
    result = with_outcome(finding("m1", "m3"), messages)
    assert result.outcome is not None
    assert (result.outcome.answer, result.outcome.request) == ("no_request", None)
    assert outcome_words(result) == ("after it began no request to bo was found",)


def test_a_reply_by_its_thread_counts_before_the_next_message() -> None:
    messages = talk(
        "kira>bo: You are wonderful",
        "kira>bo: please send it",
        "bo: no time today",
        "bo: of course",
        m3={"reply_to": "m1"},
    )
    outcome = with_outcome(finding("m0"), messages).outcome
    assert outcome is not None
    assert outcome.reply is not None
    assert (outcome.answer, outcome.reply.message_id) == ("complied", "m3")


def test_without_a_target_nothing_is_said() -> None:
    public = finding("m0", target=None)
    assert with_outcome(public, talk("kira: please")).outcome is None
    assert outcome_words(public) == ()


@pytest.mark.parametrize("kind", ["asks", "refuses", "complies"])
def test_the_cases_of_each_kind_of_phrase(kind: str) -> None:
    cases = outcome_book().cases[kind]
    assert [text for text in cases.hits if not phrase_span(kind, text)] == []
    assert [text for text in cases.near_misses if phrase_span(kind, text)] == []
