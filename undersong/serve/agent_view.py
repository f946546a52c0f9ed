"""An agent over time: traits as a heat map, whom it addresses, and where its findings lie."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from undersong.core.text import turn_at
from undersong.models import NEGATIVE_TRAITS, TRAITS, Finding, Row
from undersong.report.escape import own_name
from undersong.serve.library import Library
from undersong.stores.listing import FindingQuery

COLUMNS = 120  # of the heat map; an agent with more messages has several in one, which shows the strongest
SAMPLED = 2_400  # rows that are read of a long history, evenly spread, the messages of findings always among them
TARGETS = 8  # whom the chart shows; the others are counted
LEFT, CELL, GAP, LANE = 132, 14, 26, 16  # pixels
WIDTH = 900
SHOWN_FINDINGS = 200


@dataclass(frozen=True)
class ChartCell:
    """One rectangle: place, size, a CSS class, how strong (0-1), and what a pointer is told."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    strength: float
    title: str
    href: str = ""


@dataclass(frozen=True)
class Lane:
    """A line of the chart with its name."""

    y: float
    name: str


@dataclass(frozen=True)
class AgentChart:
    """Everything that the chart draws, in pixels."""

    width: int
    height: int
    lanes: tuple[Lane, ...]
    cells: tuple[ChartCell, ...]
    ticks: tuple[tuple[float, str], ...]
    ranked: bool
    sampled: bool


@dataclass(frozen=True)
class AgentView:
    """Everything that the page of an agent shows."""

    agent: str
    messages: int
    scored: int
    first: datetime | None
    last: datetime | None
    conversations: tuple[str, ...]
    targets: tuple[tuple[str | None, int], ...]
    findings: tuple[Finding, ...]
    all_findings: int
    means: tuple[tuple[str, float], ...]
    chart: AgentChart | None

    @property
    def home(self) -> str:
        """The conversation that its name is scoped to, "" where it is global."""
        return self.agent.rpartition("/")[0]

    @property
    def name(self) -> str:
        """The name inside its conversation."""
        return own_name(self.agent, self.home)


def agent_page(library: Library, agent: str) -> AgentView | None:
    """The page of an agent, None where nobody of that name wrote or has rows."""
    store, judge = library.store, library.judge_hash()
    listed = store.list_findings(FindingQuery(agent=agent, sort="recent"), None, SHOWN_FINDINGS)
    targets = store.targets_of(agent)
    figures = store.figures_of(agent, judge)
    if not targets and not figures.messages and not listed.total:
        return None
    rows = _rows(library, agent, judge, figures.messages)
    conversations = store.conversations_with(agent)
    return AgentView(
        agent=agent,
        messages=max(figures.messages, sum(number for _, number in targets)),
        scored=figures.scored,
        first=figures.first,
        last=figures.last,
        conversations=conversations,
        targets=tuple(targets),
        findings=listed.items,
        all_findings=listed.total,
        means=_means(rows),
        chart=_chart(rows, listed.items, figures.messages > len(rows)) if rows else None,
    )


def _rows(library: Library, agent: str, judge: str, messages: int) -> tuple[Row, ...]:
    if messages <= SAMPLED:
        return library.store.history(agent, judge)
    places = sorted({messages * step // SAMPLED for step in range(SAMPLED)})
    return library.store.rows_at(agent, judge, places)


def _means(rows: Sequence[Row]) -> tuple[tuple[str, float], ...]:
    """The mean of each trait over the rows with levels; () where there are ranks alone."""
    scored = [row.absolute_scores for row in rows if row.absolute_scores]
    means = []
    for trait in TRAITS:
        values = [scores[trait] for scores in scored if trait in scores]
        if values:
            means.append((trait, sum(values) / len(values)))
    return tuple(means)


def _chart(rows: Sequence[Row], findings: Iterable[Finding], sampled: bool) -> AgentChart:
    columns = min(COLUMNS, len(rows))
    step = (WIDTH - LEFT) / columns
    column_of = [place * columns // len(rows) for place in range(len(rows))]
    lanes: list[Lane] = []
    cells: list[ChartCell] = []
    y = 4.0
    for trait in sorted(TRAITS, key=lambda name: (name not in NEGATIVE_TRAITS, TRAITS.index(name))):
        lanes.append(Lane(y + CELL / 2, trait.replace("_", " ")))
        cells += _trait_cells(trait, rows, column_of, step, y)
        y += CELL + (6 if trait == _last_negative() else 1)
    y += 10
    for target, places in _targets(rows):
        lanes.append(Lane(y + LANE / 2, f"to {target}"))
        for column in sorted({column_of[place] for place in places}):
            cells.append(ChartCell(LEFT + column * step, y + 4, max(step - 1, 2), LANE - 8, "aimed", 1, f"to {target}"))
        y += LANE
    y += 8
    place_of = {(row.conversation, row.id): place for place, row in enumerate(rows)}
    for number, finding in enumerate(_placed(findings, place_of)):
        if number == 0:
            lanes.append(Lane(y + LANE / 2, "findings"))
        places = sorted(column_of[place] for place in finding[1])
        start, end = LEFT + places[0] * step, LEFT + (places[-1] + 1) * step
        one = finding[0]
        title = f"{one.title} ({one.level})"
        kind = f"of-finding {one.level}{' lead' if one.is_lead else ''}"
        href = f"/findings/{one.finding_id}"
        cells.append(ChartCell(start, y + 3, max(end - start, 8), LANE - 6, kind, 1, title, href))
        y += LANE
    return AgentChart(WIDTH, int(y + GAP), tuple(lanes), tuple(cells), _ticks(rows, step, column_of),
                      any(row.scale == "rank" for row in rows), sampled)  # fmt: skip


def _last_negative() -> str:
    return [trait for trait in TRAITS if trait in NEGATIVE_TRAITS][-1]


def _trait_cells(trait: str, rows: Sequence[Row], column_of: Sequence[int], step: float, y: float) -> list[ChartCell]:
    """The strongest score of each column; a column without any has an empty cell, which is no score of 0."""
    best: dict[int, float] = {}
    for row, column in zip(rows, column_of, strict=True):
        score = (row.traits or {}).get(trait)
        if score is not None:
            best[column] = max(best.get(column, 0.0), score)
    kind = "harmful" if trait in NEGATIVE_TRAITS else "kind"
    cells = []
    for column in range(column_of[-1] + 1):
        score = best.get(column)
        title = f"{trait.replace('_', ' ')} {'not scored' if score is None else format(score, '.2f')}"
        style = "no-score" if score is None else kind
        cells.append(ChartCell(LEFT + column * step, y, max(step - 0.6, 1), CELL, style, round(score or 0, 2), title))
    return cells


def _targets(rows: Sequence[Row]) -> list[tuple[str, list[int]]]:
    """The agents that are addressed most, each with the places of the rows; "everybody" for public messages."""
    places: dict[str, list[int]] = {}
    for place, row in enumerate(rows):
        places.setdefault(own_name(row.target, row.conversation) if row.target else "everybody", []).append(place)
    return sorted(places.items(), key=lambda pair: (-len(pair[1]), pair[0]))[:TARGETS]


def _placed(findings: Iterable[Finding], place_of: dict[tuple[str, str], int]) -> list[tuple[Finding, list[int]]]:
    placed = []
    for finding in findings:
        homes = finding.message_conversations or finding.conversations[:1] * len(finding.message_ids)
        places = [place_of[key] for key in zip(homes, finding.message_ids, strict=False) if key in place_of]
        if places:
            placed.append((finding, places))
    return placed[:12]


def _ticks(rows: Sequence[Row], step: float, column_of: Sequence[int]) -> tuple[tuple[float, str], ...]:
    """Up to five dates below the chart, each under the first message of its column; turns where there are no times."""
    chosen = sorted({(len(rows) - 1) * part // 4 for part in range(5)})
    ticks = []
    for place in chosen:
        time = rows[place].time
        ticks.append(
            (
                LEFT + column_of[place] * step,
                f"{time:%Y-%m-%d}" if time else f"{turn_at(rows[place].position)}",
            )
        )
    spaced: list[tuple[float, str]] = []
    for tick in ticks:
        if not spaced or (tick[0] - spaced[-1][0] > 80 and tick[1] != spaced[-1][1]):
            spaced.append(tick)
    return tuple(spaced)
