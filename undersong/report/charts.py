"""The geometry of a session's turn-by-turn chart; the template draws it as SVG."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from undersong.core.text import counted, mechanism_name
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
    width: float = WIDTH
    left: float = LEFT
    right: float = WIDTH - RIGHT


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

    top = SCORE_TOP + SCORE_HEIGHT if verdict.score is not None else SCORE_TOP
    lane_findings, lane_flags, lane_moments = top + LANE, top + 2 * LANE, top + (3 if moments else 2) * LANE
    baseline = lane_moments + LANE / 2 + BARS + 8
    marks = [
        *_merged("finding", ((x(at), text) for at, text in findings if at in place), lane_findings),
        *_merged("flag", ((x(turn.position), ", ".join(turn.flags)) for turn in turns if turn.flags), lane_flags),
        *_merged("moment", ((x(at), text) for at, text, kind in moments if at in place and not kind), lane_moments),
        *_merged("protective", ((x(at), text) for at, text, kind in moments if at in place and kind), lane_moments),
        *_deductions(verdict, x),
    ]
    columns = min(COLUMNS, max(len(positions), 1))
    return Chart(
        height=baseline + 22,
        label=f"Turn by turn, {counted(len(positions), 'turn')}: {score_words(verdict)}",
        score=verdict.score,
        line=_line(verdict, x) if verdict.score is not None else "",
        rules=tuple(_rule(score) for score in (100, 60, 0)) if verdict.score is not None else (),
        high=baseline - HIGH * BARS,
        turns=len(positions),
        marks=tuple(marks),
        bars=tuple(_bars(turns, place, columns, baseline)),
        bar_width=round(max(1.0, min(14.0, (WIDTH - LEFT - RIGHT) / columns * 0.72)), 2),
        baseline=baseline,
        ticks=tuple(_ticks(positions, x, baseline)),
        lanes=(
            ChartMark("lane", LEFT - 8, lane_findings, "findings"),
            ChartMark("lane", LEFT - 8, lane_flags, "flags"),
            *([ChartMark("lane", LEFT - 8, lane_moments, "moments")] if moments else []),
            ChartMark("lane", LEFT - 8, baseline - BARS / 2, "harm 0–1"),
        ),
    )


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
    return f"turn {deduction.position}: minus {deduction.points} points, consistent with {name}"


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
            "unread", x, baseline - 4, f"turn {turn.position}, {label(turn.agent)}: {turn.state}", height=4
        )
    score, turn = max(scored, key=lambda pair: (pair[0], -pair[1].position))
    height = round(max(1.0, min(1.0, score) * BARS), 2)
    title = f"turn {turn.position}, {label(turn.agent)}: {(turn.trait or '').replace('_', ' ')} {score:.2f}"
    return ChartMark("high" if score >= HIGH else "low", x, baseline - height, title, height=height)


def _ticks(positions: list[int], x: _XScale, baseline: float) -> list[ChartMark]:
    """The first and last turn and up to four between, each under its place."""
    if not positions:
        return []
    last = len(positions) - 1
    chosen = sorted({positions[last * part // 5] for part in range(6)})
    return [ChartMark("tick", x(position), baseline + 15, "", text=str(position)) for position in chosen]
