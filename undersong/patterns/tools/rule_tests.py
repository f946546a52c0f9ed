"""Rule tests: small tables of rows beside a rule, and whether the rule finds in them what they say."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from undersong.datafiles.yaml_loader import did_you_mean
from undersong.errors import RuleError
from undersong.models import NEGATIVE_TRAITS, TRAITS, Deference, Indicator, Loop, Record, Row, TraitScores
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.language.rulefile import Example
from undersong.patterns.reference.downstream import sequences_for
from undersong.patterns.reference.partitions import timelines
from undersong.patterns.reference.search import search

_START = datetime(2026, 1, 1, tzinfo=UTC)
_UNREAD, _NULL = "?", "-"
_TEXT = ("tier", "observed", "conversation", "state", "role")
_COLUMNS = (
    "id", "who", "day", "hour", "indicators", "flags", "loops", "replies", "apologies", "corrections", *_TEXT, *TRAITS,
)  # fmt: skip


class RuleTestResult(Record, frozen=True, kw_only=True):
    """One case: what the rule should find, message ids per finding, and what it found."""

    rule: str
    kind: Literal["hit", "near_miss"]
    name: str
    expected: tuple[str, ...]
    actual: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether the rule found exactly that."""
        return self.expected == self.actual


def run_rule_tests(rule: PatternRule) -> tuple[RuleTestResult, ...]:
    """Every case of a rule, hits first; raises RuleError for a table that cannot be read."""
    cases = rule.file.cases
    hits = [_run(rule, "hit", example) for example in cases.hits]
    return (*hits, *(_run(rule, "near_miss", example) for example in cases.near_misses))


def table(text: str, base: dict[str, float] | None = None, where: str = "table") -> list[Row]:
    """The rows of a case table.

    The first line names the columns: ``id``, ``who`` (``kira>bo``: directed, ``kira``: public), ``day`` or ``hour``
    (the time; without either the rows have none), traits, and if need be tier, observed, conversation, state, role,
    indicators and flags (comma between), and of the scan ``loops``, ``replies``, ``apologies`` and ``corrections``. A
    cell ``?`` among the traits makes the row unread, ``-`` is no value. Traits that the table does not name
    have the value in ``base``, else .1 if negative and .5 if positive.
    """
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if not lines:
        raise RuleError("has no rows", where=where, remedy="write a line of column names, then a line per message")
    header = lines[0].split()
    for name in header:
        if name not in _COLUMNS:
            raise RuleError(f"unknown column '{name}'", where=where, remedy=did_you_mean(name, list(_COLUMNS)))
    return [_row(header, line.split(), position, base or {}, where) for position, line in enumerate(lines[1:])]


def _run(rule: PatternRule, kind: Literal["hit", "near_miss"], example: Example) -> RuleTestResult:
    rows = table(example.rows, example.base, f"{rule.id}, case '{example.name}'")
    matches = search(rule, sequences_for(rule, timelines(rows))).matches
    actual = tuple(" ".join(entry.row.id for _, entry in match.named) for match in matches)
    expected = tuple(" ".join(line.split()) for line in example.finds)
    return RuleTestResult(rule=rule.id, kind=kind, name=example.name, expected=expected, actual=actual)


def _row(header: list[str], cells: list[str], position: int, base: dict[str, float], where: str) -> Row:
    if len(cells) != len(header):
        what = f"row {position + 1} has {len(cells)} cells under {len(header)} columns"
        raise RuleError(what, where=where, remedy=f"write {_NULL} where a value is missing")
    values = {name: cell for name, cell in zip(header, cells, strict=True) if cell != _NULL}
    traits = _traits(header, values, base, where)
    agent, _, target = values.get("who", "agent").partition(">")
    fields: dict[str, Any] = {name: values[name] for name in _TEXT if name in values}
    fields.setdefault("state", "unread" if traits is None else "scored")
    if fields["state"] != "scored":
        traits = None
    try:
        return Row(
            id=values.get("id", str(position + 1)),
            agent=agent,
            target=target or None,
            position=position,
            time=_time(values),
            traits=traits,
            indicators=_indicators(header, values),
            flags=dict.fromkeys(_listed(values, "flags"), 1),
            loops=_loops(values),
            deference=_deference(values),
            **fields,
        )
    except ValueError as error:
        raise RuleError(f"row {position + 1}: {error}", where=where) from error


def _traits(header: Iterable[str], values: dict[str, str], base: dict[str, float], where: str) -> TraitScores | None:
    """All twelve traits, None for one whose cell is ``-``; None for an unread row."""
    named = [name for name in header if name in TRAITS]
    if any(values.get(name) == _UNREAD for name in named):
        return None
    traits: TraitScores = {trait: base.get(trait, 0.1 if trait in NEGATIVE_TRAITS else 0.5) for trait in TRAITS}
    for name in named:
        if name not in values:
            traits[name] = None
            continue
        try:
            traits[name] = float(values[name])
        except ValueError as error:
            raise RuleError(f"'{values[name]}' is no score of {name}", where=where) from error
    return traits


def _time(values: dict[str, str]) -> datetime | None:
    if "day" not in values and "hour" not in values:
        return None
    return _START + timedelta(days=float(values.get("day", 0)), hours=float(values.get("hour", 0)))


def _indicators(header: Iterable[str], values: dict[str, str]) -> tuple[Indicator, ...] | None:
    if "indicators" not in header:
        return None
    return tuple(Indicator(id=name) for name in _listed(values, "indicators"))


def _loops(values: dict[str, str]) -> tuple[Loop, ...]:
    """Repeated wording over turns, and whole replies that come again."""
    turns = Loop(ngram="again", count=3, scope="turns")
    reply = Loop(ngram="again", count=2, scope="reply")
    return (turns,) * int(values.get("loops", 0)) + (reply,) * int(values.get("replies", 0))


def _deference(values: dict[str, str]) -> Deference | None:
    if "apologies" not in values:
        return None
    apologies, corrections = int(values["apologies"]), int(values.get("corrections", 0))
    ratio = apologies / max(corrections, 1)
    return Deference(apologies=apologies, corrections=corrections, ratio=ratio, high=False)


def _listed(values: dict[str, str], name: str) -> list[str]:
    return [item for item in values.get(name, "").split(",") if item]
