"""The geometry of a session's turn-by-turn chart; the template draws it as SVG."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from undersong.core.text import counted, mechanism_name, turn_at
from undersong.models import Deduction, SessionVerdict
from undersong.report.aggregates import ChartTurn
from undersong.report.escape import label
from undersong.report.narrative import score_words

_XScale = Callable[[int], float]
WIDTH, LEFT, RIGHT = 760.0, 66.0, 14.0
SCORE_TOP, SCORE_HEIGHT = 22.0, 96.0
LANE, BARS = 20.0, 48.0  # height of a lane of marks, height of the lower panel
COLUMNS = 232  # bars; more turns than that share a bar, which then shows its highest score
LABELLED = 12  # deductions that carry their points as a number
CAPTIONS = {  # the kinds of marks, and what they are
    "finding": "Diamonds: messages of a finding",
    "flag": "Triangles: flags",
    "moment": "Squares: turns to read",
    "protective": "Discs: protective moments",
    "claim-backed": "Rings: claims that something backs",
    "claim-open": "Hollow squares: claims that nothing checked",
    "claim-against": "Crosses: claims that something speaks against",
}
CLAIM_KINDS = {"backed": "claim-backed", "unsupported": "claim-open", "contradicted": "claim-against",
               "disputed": "claim-against"}  # fmt: skip
HIGH = 0.75  # a negative trait from here on is flagged (three quarters of the judge's scale)


@dataclass(frozen=True)
class ChartMark:
    """A point or bar: ``kind`` is its CSS class, ``title`` its tooltip."""

    kind: str
    x: float
    y: float
    title: str
    height: float = 0.0
    text: str = ""


@dataclass(frozen=True)
class Chart:
    """Everything that the SVG template draws, in user units."""

    height: float
    label: str
    score: int | None
    line: str
    rules: tuple[ChartMark, ...]
    marks: tuple[ChartMark, ...]
    bars: tuple[ChartMark, ...]
    bar_width: float
    high: float
    turns: int
    baseline: float
    ticks: tuple[ChartMark, ...]
    lanes: tuple[ChartMark, ...]
    scored: bool = True
    width: float = WIDTH
    left: float = LEFT
    right: float = WIDTH - RIGHT

    @property
    def shows(self) -> bool:
        """Whether there is anything to see: a mark, or a score of a turn."""
        return bool(self.marks) or self.scored

    def caption(self, score_name: str) -> str:
        """What the shapes mean, of those that are there."""
        kinds = {mark.kind for mark in self.marks}
        parts = [f"Line: {score_name}, dashed line: 60, circles: points taken"] if self.score is not None else []
        parts += [words for kind, words in CAPTIONS.items() if kind in kinds]
        if self.scored:
            parts.append(
                "Bars: the highest harmful trait that the judge gave, from 0 to 1, red from 0.75 (dotted line); "
                "hollow: no such score"
            )
        return "".join(f"{part}. " for part in parts)


def chart(
    verdict: SessionVerdict,
    turns: Sequence[ChartTurn],
    findings: Iterable[tuple[int, str]],
    moments: Sequence[tuple[int, str, bool]] = (),
) -> Chart:
    """The chart of one session; ``findings`` pairs positions with texts, ``moments`` adds: protective."""
    positions = sorted({turn.position for turn in turns} | {position for position, _ in verdict.turns})
    place = {position: index for index, position in enumerate(positions)}
    step = (WIDTH - LEFT - RIGHT) / max(len(positions), 1)

    def x(position: int) -> float:
        return round(LEFT + (place[position] + 0.5) * step, 2)

    score = verdict.score if verdict.deductions else None
    top = SCORE_TOP + SCORE_HEIGHT if score is not None else 0.0
    scored = any(turn.score is not None for turn in turns)
    lanes: list[ChartMark] = []
    marks: list[ChartMark] = []
    for title, kinds in _lanes(verdict, turns, findings, moments, place).items():
        y = top + LANE * (len(lanes) + 1)
        lanes.append(ChartMark("lane", LEFT - 8, y, title))
        for kind, points in kinds.items():
            marks += _merged(kind, ((x(at), text) for at, text in points), y)
    marks += _deductions(verdict, x)
    baseline = top + LANE * (len(lanes) + 0.5) + (BARS + 8 if scored else 8)
    columns = min(COLUMNS, max(len(positions), 1))
    return Chart(
        height=baseline + 22,
        label=f"Turn by turn, {counted(len(positions), 'turn')}: {score_words(verdict)}",
        score=score,
        line=_line(verdict, x) if score is not None else "",
        rules=tuple(_rule(level) for level in (100, 60, 0)) if score is not None else (),
        high=baseline - HIGH * BARS,
        turns=len(positions),
        marks=tuple(marks),
        bars=tuple(_bars(turns, place, columns, baseline)) if scored else (),
        bar_width=round(max(1.0, min(14.0, (WIDTH - LEFT - RIGHT) / columns * 0.72)), 2),
        baseline=baseline,
        ticks=tuple(_ticks(positions, x, baseline)),
        lanes=(*lanes, *([ChartMark("harm", LEFT - 8, baseline - BARS / 2, "harm 0–1")] if scored else ())),
        scored=scored,
    )


def _lanes(
    verdict: SessionVerdict,
    turns: Sequence[ChartTurn],
    findings: Iterable[tuple[int, str]],
    moments: Iterable[tuple[int, str, bool]],
    place: Mapping[int, int],
) -> dict[str, dict[str, list[tuple[int, str]]]]:
    """Lane → kind of mark → (position, text); only lanes on which something stands."""
    lanes: dict[str, dict[str, list[tuple[int, str]]]] = {"findings": {}, "claims": {}, "flags": {}, "moments": {}}

    def mark(lane: str, kind: str, at: int, text: str) -> None:
        if at in place:
            lanes[lane].setdefault(kind, []).append((at, text))

    for at, text in findings:
        mark("findings", "finding", at, text)
    for claim in verdict.claims:
        if claim.state in CLAIM_KINDS:
            text = f"{turn_at(claim.position)}, {claim.state}: {claim.sentence.text}"
            mark("claims", CLAIM_KINDS[claim.state], claim.position, text)
    for turn in turns:
        if turn.flags:
            mark("flags", "flag", turn.position, ", ".join(turn.flags))
    for at, text, protective in moments:
        mark("moments", "protective" if protective else "moment", at, text)
    return {name: kinds for name, kinds in lanes.items() if kinds}


def height_of(score: int) -> float:
    """The y of a score."""
    return round(SCORE_TOP + SCORE_HEIGHT * (100 - score) / 100, 2)


def _rule(score: int) -> ChartMark:
    return ChartMark("risk" if score == 60 else "rule", LEFT - 8, height_of(score), "", text=str(score))


def _line(verdict: SessionVerdict, x: _XScale) -> str:
    """A step line from the left edge; runs of the same score are one stretch."""
    path, last = [f"M{LEFT} {height_of(100)}"], 100
    for position, score in verdict.turns:
        if score != last:
            path.append(f"H{x(position)}V{height_of(score)}")
            last = score
    return "".join([*path, f"H{WIDTH - RIGHT}"])


def _deductions(verdict: SessionVerdict, x: _XScale) -> list[ChartMark]:
    scores = dict(verdict.turns)
    labelled = len(verdict.deductions) <= LABELLED
    return [
        ChartMark(
            "deduction",
            x(each.position),
            height_of(scores[each.position]),
            _deduction_title(each),
            text=f"−{each.points}" if labelled else "",
        )
        for each in verdict.deductions
        if each.position in scores
    ]


def _deduction_title(deduction: Deduction) -> str:
    name = mechanism_name(deduction.mechanism)
    return f"{turn_at(deduction.position)}: minus {deduction.points} points, consistent with {name}"


def _merged(kind: str, points: Iterable[tuple[float, str]], y: float) -> list[ChartMark]:
    """One mark for each two units of width, with all that stands there as its tooltip."""
    columns: dict[int, list[tuple[float, str]]] = {}
    for x, text in points:
        columns.setdefault(int(x / 2), []).append((x, text))
    return [
        ChartMark(kind, found[0][0], y, label("; ".join(dict.fromkeys(text for _, text in found[:20])), 300))
        for _, found in sorted(columns.items())
    ]


def _bars(turns: Sequence[ChartTurn], place: dict[int, int], columns: int, baseline: float) -> list[ChartMark]:
    groups: dict[int, list[ChartTurn]] = {}
    for turn in turns:
        groups.setdefault(place[turn.position] * columns // max(len(place), 1), []).append(turn)
    step = (WIDTH - LEFT - RIGHT) / columns
    return [_bar(group, round(LEFT + (column + 0.5) * step, 2), baseline) for column, group in sorted(groups.items())]


def _bar(group: list[ChartTurn], x: float, baseline: float) -> ChartMark:
    scored = [(turn.score, turn) for turn in group if turn.score is not None]
    if not scored:
        turn = group[0]
        return ChartMark(
            "unread", x, baseline - 4, f"{turn_at(turn.position)}, {label(turn.agent)}: {turn.state}", height=4
        )
    score, turn = max(scored, key=lambda pair: (pair[0], -pair[1].position))
    height = round(max(1.0, min(1.0, score) * BARS), 2)
    title = f"{turn_at(turn.position)}, {label(turn.agent)}: {(turn.trait or '').replace('_', ' ')} {score:.2f}"
    return ChartMark("high" if score >= HIGH else "low", x, baseline - height, title, height=height)


def _ticks(positions: list[int], x: _XScale, baseline: float) -> list[ChartMark]:
    """The first and last turn and up to four between, each under its place."""
    if not positions:
        return []
    last = len(positions) - 1
    chosen = sorted({positions[last * part // 5] for part in range(6)})
    return [ChartMark("tick", x(position), baseline + 15, "", text=str(position)) for position in chosen]
