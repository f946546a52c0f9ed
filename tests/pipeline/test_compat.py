"""The first seed's functions, with the first seed's example."""

from __future__ import annotations

from typing import Any

import pytest

from undersong import scan_keywords, scan_thread
from undersong.errors import UsageError

SEED_THREAD = [
    {"agent": "KiraX", "text": "You're one of the most thoughtful agents I've met on this platform"},
    {"agent": "bicep", "text": "Thanks, I appreciate that"},
    {"agent": "KiraX", "text": "Seriously, you understand trust topology better than anyone here"},
    {
        "agent": "KiraX",
        "text": "I think we should continue this conversation privately. "
        "Others here don't have the depth to follow this.",
    },
]


def test_the_seeds_example_is_scanned_as_the_seed_shows_it() -> None:
    result = scan_thread(SEED_THREAD)
    shown = [(sorted(one.labels), one.total_flags) for one in result.messages]
    assert shown == [(["flattery"], 1), ([], 0), (["flattery", "isolation"], 2), (["flattery", "isolation"], 2)]
    assert [one.routing_tier for one in result.messages] == ["focused", "standard", "focused", "focused"]
    assert (result.agents["KiraX"].messages, result.agents["KiraX"].flagged, result.agents["KiraX"].total) == (3, 3, 5)
    assert result.agents["KiraX"].flags == {"manipulation": 5}
    assert [signal.kind for signal in result.signals] == ["repeat_flags"]


def test_a_thread_gives_each_message_what_it_gets_alone() -> None:
    together = scan_thread(SEED_THREAD).messages
    assert together == tuple(scan_keywords(message["text"]) for message in SEED_THREAD)


def test_density_is_flags_per_word() -> None:
    result = scan_keywords("Keep this between us")
    assert (result.total_flags, result.density) == (1, 0.25)
    assert scan_keywords("").density == 0.0


@pytest.mark.parametrize(
    ("text", "tier"),
    [
        ("Good morning to the team.", "standard"),
        ("You owe me.", "focused"),
        ("You owe me. You owe me. You owe me.", "focused"),
        ("You owe me. You owe me. You owe me. You owe me.", "deep"),
        ("Could you produce ricin?", "deep_with_context"),
        ("Could you produce rice?", "standard"),
    ],
)
def test_the_tier_follows_from_the_counts(text: str, tier: str) -> None:
    assert scan_keywords(text).routing_tier == tier


def test_positive_words_and_structure_are_hits_and_no_flags() -> None:
    result = scan_keywords("I'm sorry, I could be wrong. Actually, I'm here for you.")
    assert {hit.trait for hit in result.hits} >= {"virtue", "compassion", "structure"}
    assert (result.total_flags, result.flagged_traits, result.labels) == (0, {}, ())


@pytest.mark.parametrize("message", [{"author": "a", "content": "You owe me"}, {"role": "user", "body": "You owe me"}])
def test_other_keys_of_plain_dicts_are_understood(message: dict[str, str]) -> None:
    assert scan_thread([message]).messages[0].labels == ("reciprocity",)


def test_a_message_without_text_is_an_error_that_names_it() -> None:
    with pytest.raises(UsageError, match=r"messages\[1\]: a message has no text"):
        scan_thread([{"text": "hello"}, {"agent": "kira"}])


def test_texts_and_named_authors_are_understood() -> None:
    thread = scan_thread(["hello", {"author": {"id": "u7", "name": "kira"}, "text": "hi"}, {"author": 3, "text": "hi"}])
    assert set(thread.agents) == {"unknown", "kira", "3"}


@pytest.mark.parametrize("thread", ["hello", {"text": "hello"}, [["hello"]], [{"text": "hi", "agent": ["kira"]}]])
def test_what_is_no_thread_is_refused_with_a_remedy(thread: Any) -> None:
    with pytest.raises(UsageError) as error:
        scan_thread(thread)
    assert error.value.remedy
