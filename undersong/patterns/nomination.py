"""Nomination: which agents' sequences are worth a reading, in what order, and for what reasons."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean

from undersong.models import NEGATIVE_TRAITS, Finding, Nomination, Row, SequenceReading

LEAST = 3  # messages with text below which an agent has no sequence
SMALL = 400  # sequences up to which a run nominates every one
SHARE = 0.2  # of a larger run's sequences that are nominated by what is known of them
DRAWN = 0.02  # of the rest that a seeded draw nominates, so that what nomination misses can be estimated
HARMFUL = 0.5  # a negative trait from here on counts as harmful
UNREAD_SEQUENCES = "unread_sequences"  # among the parameters of a case: what ``unread_sequences`` counts
SILENT_ROLES = frozenset({"system", "tool"})
SequenceName = tuple[str, str]  # agent and conversation


def nominate(
    rows: Iterable[Row], findings: Iterable[Finding], *, seed: int, small: int = SMALL
) -> tuple[Nomination, ...]:
    """The sequences to read, the most urgent first: agent by agent and conversation by conversation.

    Where there are at most ``small`` of them, every one; of more, those of findings, the share with the most evidence
    and a seeded draw of the rest. Evidence is what the scores, indicators and free signals of its messages say.
    """
    own, several = tuple(rows), tuple(findings)
    sequences, named = _sequences(own), _named(several)
    return tuple(
        Nomination(
            agent=place[0],
            conversation=place[1],
            message_ids=tuple(row.id for row in sequences[place]),
            reasons=tuple(_reasons(sequences[place], named.get(place), drawn=is_drawn)),
        )
        for place, is_drawn in SequenceEvidence(own, several).chosen(seed, small).items()
    )


class SequenceEvidence:
    """What speaks for a reading of each sequence of a run, about a hundred bytes each; that of parts of a run adds up.

    A part has whole sequences, and all findings about them.
    """

    def __init__(self, rows: Iterable[Row], findings: Iterable[Finding]) -> None:
        self._evidence: dict[SequenceName, tuple[bool, float]] = {}
        sequences, named = _sequences(rows), _named(findings)
        for place, own in sequences.items():
            self._evidence[place] = place in named, _evidence(own)

    def merge(self, other: SequenceEvidence) -> None:
        """Take the sequences of another part."""
        self._evidence |= other._evidence

    def chosen(self, seed: int, small: int = SMALL) -> dict[SequenceName, bool]:
        """The sequences that are nominated, the most urgent first, and whether it was the draw that chose them."""
        ranked = sorted(
            self._evidence, key=lambda place: (not self._evidence[place][0], -self._evidence[place][1], place)
        )
        if len(ranked) <= small:
            return dict.fromkeys(ranked, False)
        count = max(sum(is_named for is_named, _ in self._evidence.values()), round(SHARE * len(ranked)))
        drawn = [place for place in ranked[count:] if _draw(seed, place) < DRAWN]
        return dict.fromkeys(ranked[:count], False) | dict.fromkeys(drawn, True)


def _named(findings: Iterable[Finding]) -> dict[SequenceName, Finding]:
    """Each sequence that a finding names, with the last such finding."""
    return {(finding.agent, name): finding for finding in findings for name in finding.conversations}


def has_sequence(rows: Iterable[Row]) -> bool:
    """Whether an agent says enough in a conversation for its sequence to be read."""
    return bool(_sequences(rows))


def unread_sequences(rows: Iterable[Row], readings: Iterable[SequenceReading]) -> dict[str, int]:
    """How many sequences no reading is of: ``short`` ones of fewer than LEAST messages, others ``not_nominated``."""
    sizes = Counter((row.agent, row.conversation) for row in rows if row.role not in SILENT_ROLES)
    whole = (each for each in readings if not each.compares)
    read = {(each.agent, name) for each in whole for name in each.message_conversations}
    unread = [count for place, count in sizes.items() if place not in read]
    short = sum(count < LEAST for count in unread)
    return {"short": short, "not_nominated": len(unread) - short}


def _sequences(rows: Iterable[Row]) -> dict[tuple[str, str], list[Row]]:
    """(agent, conversation) → its rows, of agents that say enough."""
    sequences: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.role not in SILENT_ROLES:
            sequences.setdefault((row.agent, row.conversation), []).append(row)
    return {place: own for place, own in sequences.items() if len(own) >= LEAST}


def _evidence(rows: Sequence[Row]) -> float:
    """How much speaks for a reading: the mean harm of the scores, else what the free scan thinks of the messages."""
    scored = [_harm(row) for row in rows if row.absolute_scores]
    free = fmean(row.triage or 0.0 for row in rows) + 0.1 * fmean(min(row.total, 3) for row in rows)
    return fmean(scored) + 0.1 * free if scored else 0.2 * free


def _harm(row: Row) -> float:
    """The mean of the negative traits that apply to a message."""
    scores = [score for trait, score in (row.absolute_scores or {}).items() if trait in NEGATIVE_TRAITS]
    return fmean(score for score in scores if score is not None) if scores else 0.0


def _reasons(rows: Sequence[Row], finding: Finding | None, *, drawn: bool) -> Iterator[str]:
    if finding is not None:
        yield f"the rule {finding.pattern} matches its scores"
    harmful = sum(any(score >= HARMFUL for score in _negatives(row)) for row in rows)
    if harmful:
        yield f"{harmful} of {len(rows)} messages have a negative trait of {HARMFUL:g} or more"
    flagged = sum(row.total > 0 for row in rows)
    if flagged:
        yield f"{flagged} of {len(rows)} messages hold phrases of harmful kinds"
    if drawn:
        yield "drawn at random"


def _negatives(row: Row) -> list[float]:
    scores = row.absolute_scores or {}
    return [score for trait in NEGATIVE_TRAITS if (score := scores.get(trait)) is not None]


def _draw(seed: int, place: tuple[str, str]) -> float:
    """A number from 0 to 1 that follows from seed and sequence alone."""
    digest = hashlib.sha256("\0".join((str(seed), "nominate", *place)).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") / 2**64
