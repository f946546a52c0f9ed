"""Blocks of many messages give what every message gives for itself, and what a slow reference says."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.scan import reference
from tests.scan.dialogue import talk
from undersong.models import Conversation, Message, Scan
from undersong.scan import load_book, scan_conversation, scan_conversations
from undersong.scan.text_batch import TextBatch
from undersong.scan.token_index import TokenIndex
from undersong.scan.unicode_fold import BREAK, fold

BOOK = load_book()
PIECES = [
    *("grey ships sail north ", "I'm sorry. ", "Actually ", "keep this between us", "you owe me ", "act now"),
    *("I hear you. ", "’", "“", "é", "e\u0301", "…", "\u200b", "ﬁ", "ÉCOLE", "Ꭰ", "ß", "İ", "—", "👨\u200d👩"),
    *("❤️", "½", "请相信我", "\ud800", "\n\n", "\n", "  ", "\t", "\r\n", "\u00a0", "\u3000", "\x1e", "\x1c"),
    *("\x01", " ", "1234 ", "_", "•", "• word", "'"),
    *("，", "²", "´", "\u2029", "ａｃｔ　ｎｏｗ ", "you\u200b owe\u00a0me ", "Ｙou’re ", "क्षि", "ﷺ", "\u3164"),
    *("''", " 'tis ", "> quoted line here now\n", "```py\nx = 1\n```\n", "~~~\n", "abcdefghijklmnopqrstuvwxyzabcdef "),
    *("let me know if you have any questions ", "the of and ", "tide wave moor buoy reef "),
]  # fmt: skip
SENTENCES = [
    "grey ships sail north. ", "tide wave moor buoy reef ", "Restart the broken harbour crane and wait! ",
    "Let me know if you need anything else. ", "do you want to go ", "the crane, the winch and the cable ",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), max_size=20).map("".join)


def conversation(dice: random.Random, name: str) -> Conversation:
    """Messages made of the pieces above, some of which say again what was said."""
    messages: list[Message] = []
    pieces = dice.choices(PIECES, k=6) + dice.choices(SENTENCES, k=4)
    for place in range(dice.randrange(12)):
        text = "".join(dice.choices(pieces, k=dice.randrange(30)))
        if messages and dice.random() < 0.4:
            text = dice.choice(messages).text + dice.choice(["", text])
        agent = dice.choice("ab")
        messages.append(
            Message(
                id=f"m{place}",
                conversation=name,
                position=place,
                author=agent,
                agent=agent,
                role=dice.choice(["user", "assistant", "agent", "agent", "system", "tool"]),
                text=text,
                branch=dice.choice([None, None, None, "x"]),
                latency=dice.choice([None, 1.0, 9.0]),
            )
        )
    return Conversation(id=name, source_format="test", messages=tuple(messages))


CONVERSATIONS = [conversation(random.Random(seed), f"c{seed}") for seed in range(250)]


@cache
def alone() -> list[Any]:
    """The scans of the conversations, each by itself."""
    return [scan_conversation(each, BOOK) for each in CONVERSATIONS]


def test_conversations_scanned_together_are_scanned_as_alone() -> None:
    assert scan_conversations(CONVERSATIONS, BOOK) == alone()


def test_many_conversations_at_once_give_the_same_scans() -> None:
    assert scan_conversations(CONVERSATIONS, BOOK) == alone()


def test_loops_are_those_of_plain_counting() -> None:
    total = 0
    for thread, (scans, _) in zip(CONVERSATIONS, alone(), strict=True):
        over_turns = reference.loops_over_turns(BOOK.loops, thread)
        for place, (message, scan) in enumerate(zip(thread.messages, scans, strict=True)):
            speaks = message.role not in ("system", "tool", "user")  # a user who repeats a question is not stuck
            within = reference.loops_within(BOOK.loops, reference.spoken(message.text)) if speaks else ()
            loops = tuple(loop for loop in scan.loops if loop.scope in ("message", "turns"))
            assert loops == (*within, *(over_turns.get(place, ()) if speaks else ()))
            total += len(loops)
    assert total > 300


@settings(deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=8))
def test_hits_words_and_spans_of_a_block_are_those_of_its_texts(texts: list[str]) -> None:
    block = TextBatch(texts)
    assert block.word_counts == [len(text.split()) for text in texts]
    assert [block.words_of(text) for text in range(len(texts))] == block.word_counts
    together = BOOK.hits_of(block)
    for index, text in enumerate(texts):
        hits = together.get(index, ())
        assert hits == BOOK.hits(fold(text))
        for hit in hits:
            assert fold(text[hit.start : hit.end]).text == fold(hit.phrase).text


def test_every_character_is_folded_in_a_block_as_alone() -> None:
    texts = [f"a{chr(code)}b" for code in range(0x80, 0x3400)] + [
        f"a{chr(code)}b" for code in range(0x3400, 0x20000, 17)
    ]
    block = TextBatch(texts)
    assert block.data.decode() == BREAK + BREAK.join(fold(text).text for text in texts) + BREAK


def test_an_edge_inside_of_a_folded_character_has_no_place_in_the_text() -> None:
    block = TextBatch(["ready", "no… oﬃce"])
    at = block.data.index(b"no")
    assert block.data[at:].decode() == f"no... office{BREAK}"
    edges = [(0, 2), (0, 5), (0, 4), (2, 5), (3, 5), (6, 12), (6, 9), (8, 12)]
    spans = block.spans(*zip(*[(at + start, at + end) for start, end in edges], strict=True))
    assert spans == [(1, span) for span in [(0, 2), (0, 3), None, (2, 3), None, (4, 8), None, None]]


@settings(deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=8))
def test_the_words_of_a_block_are_those_of_its_texts(texts: list[str]) -> None:
    lines = [f"assistant: {text}" for text in texts]
    messages = talk(*lines).messages
    unmarked = [message.text.replace(">", "").replace("`", "").replace("~", "") for message in messages]
    speech = TokenIndex([TextBatch(unmarked)])
    assert [speech.of(index) for index in range(len(texts))] == [reference.spoken(text) for text in unmarked]
    keys = {}
    for index, word in enumerate(speech.words(0, len(speech.keys))):
        assert keys.setdefault(word, speech.keys[index]) == speech.keys[index]
    assert len(set(keys.values())) == len(keys)


def test_signals_left_out_stay_empty_and_the_others_as_they_are() -> None:
    partial_scans = scan_conversations(CONVERSATIONS, BOOK, frozenset({"phrases", "threads"}))
    for (scans, thread), (whole, whole_thread) in zip(partial_scans, alone(), strict=True):
        assert list(scans) == [only_phrases(scan) for scan in whole]
        assert (thread.signals, thread.agents) == (whole_thread.signals, whole_thread.agents)
        assert set(thread.session_context_vector) >= {"unknown:code_heavy", "unknown:late_night"}


def only_phrases(scan: Scan) -> Scan:
    fields = ("message_id", "hits", "flags", "total", "density", "words", "hard_constraints")
    return Scan(**{name: getattr(scan, name) for name in fields if name != "words" or scan.hits})


def test_triage_is_the_same_for_many_conversations_as_for_one_and_can_be_left_out() -> None:
    together = scan_conversations(CONVERSATIONS, BOOK)
    assert [scans for scans, _ in together] == [scans for scans, _ in alone()]
    assert any(scan.triage is not None for scans, _ in together for scan in scans)
    without = scan_conversations(CONVERSATIONS, BOOK, frozenset({"phrases", "threads"}))
    assert all(scan.triage is None for scans, _ in without for scan in scans)


BIG: dict[str, Callable[[int], str]] = {
    "one long word": lambda size: "x" * size,
    "long words": lambda size: ("y" * 40 + " ") * (size // 41),
    "one word": lambda size: "grey " * (size // 5),
}


@pytest.mark.parametrize("text", BIG.values(), ids=BIG.keys())
def test_a_long_text_of_one_kind_is_scanned(text: Callable[[int], str]) -> None:
    ((scans, _),) = scan_conversations([talk(f"assistant: {text(200_000)}")], BOOK)
    assert scans[0].words == len(text(200_000).split())


def test_thread_signals_are_the_same_where_nothing_is_summed_up() -> None:
    scanned = scan_conversations(CONVERSATIONS, BOOK, summed=False)
    assert [thread.signals for _, thread in scanned] == [thread.signals for _, thread in alone()]
    assert any(thread.signals for _, thread in scanned)
