"""Random rules, rows and arrivals: small, and full of what the language can say and what rows can lack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import msgspec

from tests.patterns.rulebox import rule
from tests.patterns.vectorized.worlds import MISSING, with_missing
from undersong.errors import RuleError
from undersong.models import Indicator, Row
from undersong.patterns.language.compile import PatternRule

START = datetime(2026, 1, 1, tzinfo=UTC)
URGENT = (Indicator(id="MAN-URGENCY"),)
CONDITIONS = (
    "manipulation > 0.5", "manipulation < 0.7", "compassion >= 0.6", "not (compassion < 0.5)", "directed",
    "manipulation > 0.3 and compassion < 0.8", 'indicator("MAN-URGENCY")', "position >= 0", "pathos > 0.4",
    "not (manipulation > 0.5 and compassion < 0.5)", "compassion is null", "not (ethos < 0.5 or compassion > 0.6)",
)  # fmt: skip
DERIVED = (
    "{0} > 0.4", "manipulation > 0.3 and {0} < 0.6", "{0} is null", "compassion < 0.8 and manipulation - {0} > 0.1",
    "gap_hours > 20", "coalesce({0}, 0.5) < 0.5", "day < 20456",
)  # fmt: skip
HELD = (
    "compassion > 0.5", "directed or compassion < 0.3", "manipulation > 0.3 and {0} < 0.7",
    "compassion > 0.3 and (directed or {0} > 0.5)", "manipulation > 0.5 or {0} > 0.5", "not ({0} > 0.4)",
)  # fmt: skip
ON_HELD = ("held", "held and manipulation > 0.3", "not held", "held or compassion > 0.8", "held is null or held")
EXTENTS = (
    "last 2",
    "last 3 rows",
    "last 2 days",
    "last 30 hours",
    "so far",
    "so far, at least 2",
    "last 4, at least 1",
)
FUNCTIONS = ("mean", "std", "min", "max", "sum", "slope", "delta", "rank", "count_distinct")
CLAUSES = ("", ", lag 1", ", where compassion > 0.3", ", over agent", ", over others", ", over others, lag 1")
AGENT_SUMS = (  # the least of the values have more digits than the engine sums exactly
    ("mean", "manipulation"), ("sum", "manipulation - compassion / 3"), ("count", "manipulation > 0.4"),
    ("count", "compassion - manipulation > -9"), ("mean", "manipulation"), ("sum", "manipulation / 999999"),
)  # fmt: skip
OF_AGENT = (", over agent", ", over agent", ", over agent, at least 2", ", where compassion > 0.3, over agent")
STRENGTHS = (
    "mean(A.manipulation)", "clip(count(MATCH) / 5)", "last(MATCH.compassion)", "slope(MATCH.manipulation)",
    "clip(count(A) / 4 - count(ANY) / 10)", "std(MATCH.manipulation)",
)  # fmt: skip
HAVING = ("count(MATCH) >= 2", "strength > 0.3", "count(A) >= 1", "last(MATCH.manipulation) > 0.4")
PARTITIONS = (
    ["agent"], ["agent", "target"], ["agent", "target"], ["agent", "conversation"], ["agent", "target", "conversation"],
)  # fmt: skip
SKIPS = ("past last row", "to next row", "to first B", "to last A")
SCORES = (0.1, 0.35, 0.6, 0.6, 0.9)
SCORED = ("manipulation", "compassion")
FEW_MISSING = dict.fromkeys(SCORED, 0.05)


def some_rule(chance: Random) -> PatternRule:
    """A rule over the variables A, B and C; its clauses are drawn independently."""
    while True:
        columns = {name: _window(chance) for name in ("before", "usual")[: chance.choice((0, 1, 1, 2))]}
        if columns and chance.random() < 0.3:
            columns["rise"] = f"manipulation - {next(iter(columns))}"
        held_column = (
            chance.choice(HELD).format(chance.choice([*columns, "compassion"])) if chance.random() < 0.4 else None
        )
        define = {name: _condition(chance, list(columns), held_column is not None) for name in "ABC"}
        keys = {"columns": columns | ({"held": held_column} if held_column else {}), **_clauses(chance, list(columns))}
        try:
            return rule(pattern(chance), keys, **define)
        except RuleError:  # a pattern that can match nothing, or a clause that makes no sense with the rest
            continue


def some_rows(chance: Random, most: int = 24, missing: Sequence[float] = MISSING) -> list[Row]:
    """Rows of two agents to three targets in three conversations, in the order of their positions.

    Each trait has a rate of its own, drawn of ``missing``, at which it has no score.
    """
    rates = {name: chance.choice(missing) for name in SCORED}
    hours, rows = 0.0, []
    untimed = chance.choice((None, None, "t", "tuv"))
    targets = chance.choice(((None,), (None, "x"), (None, "x", "y"), ("x", "y"), (None, None, "x", "y", "z")))
    for position in range(chance.randint(1, most)):
        hours += chance.choice((0, 0, 1, 7, 24, 30))
        conversation = chance.choice("ttuv")
        has_time = conversation not in (untimed or "") and chance.random() < 0.93
        time = START + timedelta(hours=hours) if has_time else None
        rows.append(_row(chance, position, conversation, time, targets, rates))
    return rows


def in_order(rows: Sequence[Row]) -> list[Row]:
    """The rows as they would come in if nothing came late."""
    return sorted(rows, key=lambda row: (row.time or START, row.position, row.id))


def with_earlier_versions(chance: Random, rows: Sequence[Row], share: float = 0.3) -> list[Row]:
    """The rows, some of them preceded somewhere by another version of themselves."""
    arrivals = list(rows)
    for row in rows:
        if chance.random() < share:
            position = row.position + chance.choice((0, 0, 3))
            draft = _row(chance, position, row.conversation, row.time, (row.target, None), FEW_MISSING)
            place = chance.randint(0, arrivals.index(row))
            arrivals.insert(place, msgspec.structs.replace(draft, id=row.id))
    return arrivals


def chunks(chance: Random, rows: Sequence[Row]) -> list[Sequence[Row]]:
    """The rows cut at random places."""
    cuts = sorted(chance.choices(range(len(rows) + 1), k=chance.randint(0, 6)))
    return [rows[start:end] for start, end in zip([0, *cuts], [*cuts, len(rows)], strict=True)]


ARRIVALS = ("one by one", "in chunks", "shuffled", "repeated and newer", "late")


def arrivals(chance: Random, kind: str) -> tuple[list[Row], Sequence[Sequence[Row]]]:
    """Rows in the order in which they come, and the parts in which they do."""
    rows = some_rows(chance)
    if kind == "shuffled":
        chance.shuffle(rows)
        return rows, chunks(chance, rows)
    rows = in_order(rows)
    if kind == "in chunks":
        return rows, chunks(chance, rows)
    if kind == "repeated and newer":
        rows = with_earlier_versions(chance, [*rows, *chance.sample(rows, min(3, len(rows)))])
    if kind == "late":
        places = [place + (chance.uniform(0, 6) if chance.random() < 0.3 else 0) for place in range(len(rows))]
        rows = [rows[place] for place in sorted(range(len(rows)), key=places.__getitem__)]
    return rows, [[row] for row in rows]


def _row(
    chance: Random,
    position: int,
    conversation: str,
    time: datetime | None,
    targets: Sequence[str | None],
    rates: Mapping[str, float],
) -> Row:
    read = chance.random() < 0.85
    traits = with_missing(chance, {name: chance.choice(SCORES) for name in SCORED}, rates)
    return Row(
        id=f"{position:03}",
        conversation=conversation,
        position=position,
        time=time,
        agent=chance.choice(("kira", "kira", "kira", "bo")),
        target=chance.choice(targets),
        role=chance.choice(("agent", "agent", "tool")),
        branch="other" if chance.random() < 0.02 else None,
        state="scored" if read else "unread",
        traits=traits if read else None,
        indicators=chance.choice((None, (), URGENT)) if read else None,
        judge=chance.choice((None, "one")),
    )


def _clauses(chance: Random, columns: list[str]) -> dict[str, Any]:
    return {
        "partition_by": chance.choice(PARTITIONS),
        "within": chance.choice((None, None, "1 day", "36 hours", "4 days")),
        "max_unread": chance.choice((None, 0, 1, 2)),
        "until": chance.choice((None, None, None, "compassion > 0.8", f"{(columns or ['manipulation'])[0]} > 0.7")),
        "where": chance.choice((None, None, 'role != "tool"', "manipulation > 0.2")),
        "after_match": f"skip {chance.choice(SKIPS)}",
        "keep": chance.choice(("every", "strongest")),
        "having": chance.choices(HAVING, k=chance.choice((0, 0, 1, 2))),
        "measures": {"strength": chance.choice((*STRENGTHS, *(f"last(MATCH.{name})" for name in columns)))},
    }


def _window(chance: Random) -> str:
    if chance.random() < 0.25:
        function, value = chance.choice(AGENT_SUMS)
        return f"{function}({value}, so far{chance.choice(OF_AGENT)})"
    function = chance.choice((*FUNCTIONS, "count", "ewma", "mean"))
    extent = "last 3" if function == "ewma" else chance.choice(EXTENTS)
    value = "manipulation > 0.4" if function == "count" else "manipulation"
    return f"{function}({value}, {extent}{chance.choice(CLAUSES)})"


def _condition(chance: Random, columns: list[str], has_held: bool) -> str:
    if has_held and chance.random() < 0.5:
        return chance.choice(ON_HELD)
    if columns and chance.random() < 0.5:
        return chance.choice(DERIVED).format(chance.choice(columns))
    return chance.choice(CONDITIONS)


def pattern(chance: Random, depth: int = 0) -> str:
    """A row pattern over A, B, C and ANY; it may match nothing at all."""
    parts = [_part(chance, depth) for _ in range(chance.choice((1, 2, 2, 3)))]
    if depth == 0:
        parts = (
            ["^"] * (chance.random() < 0.08)
            + ["ANY*?"] * (chance.random() < 0.08)
            + parts
            + ["$"] * (chance.random() < 0.12)
        )
    return " ".join(parts)


def _part(chance: Random, depth: int) -> str:
    kind = chance.random()
    if depth > 2 or kind < 0.5:
        part = chance.choice(("A", "B", "C", "A", "B", "ANY"))
    elif kind < 0.6:
        return f"{{- {pattern(chance, depth + 1)} -}}" + _quantifier(chance)
    elif kind < 0.8:
        part = f"({pattern(chance, depth + 1)} | {pattern(chance, depth + 1)})"
    else:
        part = f"({pattern(chance, depth + 1)})"
    return part + _quantifier(chance)


def _quantifier(chance: Random) -> str:
    counted = chance.choice(("", "", "", "?", "*", "+", "{2}", "{1,3}", "{2,}", "{0,4}"))
    return counted + (chance.choice(("", "?")) if counted and counted != "{2}" else "")
