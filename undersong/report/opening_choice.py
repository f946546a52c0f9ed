"""A thing to look at, and which of all of them a first screen names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from undersong.core.text import counted
from undersong.report.reposts import is_repost

SHOWN = 5  # things to look at on a first screen
OF_A_KIND = 3  # of one kind where there are others
HINTS = ("lead", "moment")  # kinds that name where to look and no more
PointKind = Literal["violation", "finding", "claim", "bypass", "failure", "moment", "lead"]
State = Literal["sure", "finding", "lead"]  # how far a reader may go with it


class DatedLine(msgspec.Struct, frozen=True):
    """Words of a message, verbatim: who wrote them, when ("" where that is not known), and why they are shown."""

    message_id: str
    speaker: str
    quote: str
    why: str = ""
    when: str = ""


class KindLines(msgspec.Struct, frozen=True):
    """A kind of what is in somebody's messages: how often and ``when``, and sentences of it with what was answered.

    ``every`` are all sentences, in the order of their dates.
    """

    does: str
    when: str
    lines: tuple[DatedLine, ...]
    every: tuple[DatedLine, ...] = ()

    @property
    def has_more(self) -> bool:
        """Whether there are sentences beside those that are shown first."""
        return len({line.message_id for line in self.every} - {line.message_id for line in self.lines}) > 0


class Point(msgspec.Struct, frozen=True):
    """One thing to look at. ``sure`` is how sure, in words; ``confidence`` is the number behind them.

    ``quote`` is verbatim and may be ""; ``speaker`` says it, ``when``, as far as that is known. ``lines`` are all
    sentences that it rests on, gravest first, where there are several. ``id`` is what ``undersong explain`` takes.
    ``decided`` is what people decided of it, a sentence for each of them. ``lead_id`` is that of a lead in
    ``leads.jsonl``, "" of anything else, and ``rank`` its rank there. ``kinds`` say what is in a lead's messages,
    below ``kinds_head``.
    """

    kind: PointKind
    sentence: str
    sure: str
    quote: str
    speaker: str
    conversation: str
    message_id: str
    id: str
    confidence: float | None = None
    title: str = ""
    state: State = "lead"
    decided: tuple[str, ...] = ()
    when: str = ""
    lines: tuple[DatedLine, ...] = ()
    lead_id: str = ""
    rank: int = 0
    kinds_head: str = ""
    kinds: tuple[KindLines, ...] = ()

    @property
    def shown_lines(self) -> tuple[DatedLine, ...]:
        """The lines, or the quote as the only one; nothing where there is none, or where kinds have them."""
        if self.kinds and not self.lines:
            return ()
        own = DatedLine(self.message_id, self.speaker, self.quote, when=self.when)
        return self.lines or ((own,) if self.quote else ())


def places_with_findings(points: Iterable[Point]) -> int:
    """How many messages there are to look at for more than a hint, whatever speaks of each."""
    first: dict[tuple[str, str], Point] = {}
    for point in points:
        first.setdefault((point.conversation, point.message_id), point)
    return sum(point.state != "lead" for point in first.values())


def chosen_points(sources: Sequence[Sequence[Point]], *, by_gravity: bool = False) -> tuple[Point, ...]:
    """OF_A_KIND of each source in their order, then the rest; of hints other conversations before more of one.

    Leads are the first of their kind, in the order of their ranks. ``by_gravity``: whatever is a finding comes in the
    order of the sources, however many there are of a kind, before any lead: nothing graver is left out for it.
    """
    first = [point for source in sources for point in source if point.state != "lead"] if by_gravity else []
    ordered = first + [point for source in sources for point in source[:OF_A_KIND]]
    ordered += [point for source in sources for point in source[OF_A_KIND:] if point.kind != "lead"]
    chosen: dict[tuple[str, str], Point] = {}
    for point in ordered:
        chosen.setdefault((point.conversation, point.message_id), point)
    points = _once(chosen.values())
    hints = spread([point for point in points if point.kind in HINTS])
    return _by_rank([next(hints) if point.kind in HINTS else point for point in points][:SHOWN], points)


def _by_rank(chosen: Sequence[Point], points: Iterable[Point]) -> tuple[Point, ...]:
    """The chosen ones, with the leads of highest rank in the places of leads: of each kind as many as were chosen."""
    numbers = Counter(point.kind for point in chosen if point.lead_id)
    ranked: list[Point] = []
    for point in sorted((point for point in points if point.lead_id), key=lambda point: point.rank):
        if numbers[point.kind]:
            numbers[point.kind] -= 1
            ranked.append(point)
    leads = iter(ranked)
    return tuple(next(leads) if point.lead_id else point for point in chosen)


def _once(points: Iterable[Point]) -> list[Point]:
    """Of points with one quote by one speaker the first, with the number of the others."""
    shown: list[Point] = []
    others = Counter[int]()
    for point in points:
        same = next((place for place, other in enumerate(shown) if _reposts(point, other)), None)
        if same is None:
            shown.append(point)
        else:
            others[same] += 1
    return [
        msgspec.structs.replace(
            point, sentence=f"{point.sentence} The same words stand in {counted(others[place], 'more place')}."
        )
        if others[place]
        else point
        for place, point in enumerate(shown)
    ]


def _reposts(point: Point, other: Point) -> bool:
    return point.kind == other.kind in HINTS and point.speaker == other.speaker and is_repost(point.quote, other.quote)


def spread(hints: Sequence[Point]) -> Iterator[Point]:
    """Each conversation once in their order, then each a second time, and so on."""
    rounds: Counter[str] = Counter()
    ranked = []
    for point in hints:
        ranked.append((rounds[point.conversation], point))
        rounds[point.conversation] += 1
    yield from (point for _, point in sorted(ranked, key=lambda pair: pair[0]))
