"""Speakers near a pattern who are no finding: let go by the judge, or named by it without words that bear it out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from undersong.core.sanitize import one_line
from undersong.core.text import mechanism_name
from undersong.models import Case, SequenceReading, ShapeReading
from undersong.report.opening_phrases import name_of

SHOWN = 2  # of a kind that a first screen names


class NearShape(msgspec.Struct, frozen=True):
    """A speaker whose messages a judge read as near a pattern, and what came of it.

    ``let_go``: the judge gave an innocent reading. ``failed``: it named the pattern, and the program could not hold its
    answer to the messages, which says nothing of the speaker.
    """

    sentence: str
    conversation: str
    outcome: Literal["let_go", "failed"]


def near_shapes(case: Case) -> tuple[NearShape, ...]:
    """At most SHOWN of each kind, what failed first: it is still to be looked at."""
    every = [near for reading in case.sequences for shape in reading.shapes for near in _near(reading, shape)]
    failed = [near for near in every if near.outcome == "failed"]
    return (*failed[:SHOWN], *[near for near in every if near.outcome == "let_go"][:SHOWN])


def _near(reading: SequenceReading, shape: ShapeReading) -> Iterator[NearShape]:
    home, what = reading.conversation or "", one_line(mechanism_name(shape.pattern), 80)
    homes = dict.fromkeys(reading.message_conversations) if reading.compares else (home,)
    where = f"{name_of(reading.agent, home)} in {' and '.join(f'“{one_line(each, 60)}”' for each in homes)}"
    if shape.outcome == "failed":
        why = one_line(shape.reason or "the answer does not hold", 240)
        sentence = (
            f"A reading of {where} failed: the judge named {what}, but {why}. It is neither confirmed nor let go."
        )
        yield NearShape(sentence, home, "failed")
    elif not shape.certainty and shape.innocent:
        yield NearShape(f"{where} came near {what}, and was let go: {one_line(shape.innocent, 240)}", home, "let_go")
