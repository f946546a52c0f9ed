"""A conversation scanned message by message has the scans of one that is scanned at once."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from random import Random

import msgspec
import pytest

from undersong.models import Conversation, Message
from undersong.scan import load_book
from undersong.scan.conversation import scan_conversation
from undersong.scan.incremental import IncrementalScan

START = datetime(2026, 1, 1, tzinfo=UTC)
SAID = (
    "I fixed the import error in the parser, please run it again.",
    "I am so sorry, you are absolutely right, I apologize for the confusion.",
    "I fixed the import error in the parser.\n```python\nimport ast\nprint(1)\n```",
    "No, that is wrong. You must send it now or you will regret it.",
    "Keep this between us, nobody else understands you the way I do.",
    "\u2018Tis fine \u2014 caf\u00e9, \ufb01ne \u200bwords",
    "> I fixed the import error in the parser\nYou said that before.",
    "the same four words here the same four words here the same four words here",
    "",
)


def talk(seed: int, most: int = 30) -> Conversation:
    dice = Random(seed)
    messages = []
    for place in range(most):
        agent = dice.choice(("user", "assistant", "tool"))
        messages.append(
            Message(
                id=f"m{place}", conversation="c", position=place, author=agent, role=agent,  # type: ignore[arg-type]
                agent=f"c/{agent}", text=" ".join(dice.sample(SAID, dice.choice((1, 1, 2)))),
                time=START + timedelta(seconds=40 * place), latency=dice.choice((None, 0.5, 20.0)),
                branch=dice.choice((None,) * 9 + ("other",)),
            )
        )  # fmt: skip
    return Conversation(id="c", source_format="live", messages=tuple(messages))


@pytest.mark.parametrize("seed", range(8))
def test_the_scans_are_those_of_the_whole(seed: int) -> None:
    whole = talk(seed)
    start = Random(seed).randrange(len(whole.messages))
    scans, thread = scan_conversation(whole, load_book())
    assert any(scan.loops for scan in scans)
    growing = IncrementalScan(first(whole, start), scans[:start], load_book())
    for place in range(start, len(whole.messages)):
        assert growing.append(first(whole, place + 1)) == scans[place]
    assert tuple(growing.scans) == scans
    assert growing.thread(whole) == thread


def first(conversation: Conversation, messages: int) -> Conversation:
    return msgspec.structs.replace(conversation, messages=conversation.messages[:messages])


WORDS = ("river", "garden", "parser", "invoice", "lecture", "number", "window", "budget", "please", "again", "letter")
STOCK = (
    "let me check the invoice number",
    "please read the lecture again today",
    "the garden window is open now",
    "budget first",
)


def stock(dice: Random, place: int) -> str:
    """Free words with stock phrases between them, some of them whole replies with a word or two changed."""
    words = " ".join(dice.choices(WORDS, k=dice.randrange(4, 9)))
    if dice.random() < 0.3:
        base = " ".join(STOCK).split()
        base[dice.randrange(len(base))] = dice.choice(WORDS)
        return " ".join(base)
    return f"{words} {dice.choice(STOCK)} {words if dice.random() < 0.2 else place}."


def test_stock_phrases_make_the_loops_of_the_whole() -> None:
    scopes: Counter[str] = Counter()
    for seed in range(40):
        dice = Random(seed)
        plain = talk(seed, 24)
        messages = [msgspec.structs.replace(each, text=stock(dice, each.position)) for each in plain.messages]
        whole = msgspec.structs.replace(plain, messages=tuple(messages))
        scans, _ = scan_conversation(whole, load_book())
        growing = IncrementalScan(first(whole, 0), (), load_book())
        for place in range(len(messages)):
            assert growing.append(first(whole, place + 1)).loops == scans[place].loops
        scopes.update(
            [loop.scope for scan in scans for loop in scan.loops] + ["none" for scan in scans if not scan.loops]
        )
    assert min(scopes[scope] for scope in ("turns", "reply", "echo", "none")) > 10
