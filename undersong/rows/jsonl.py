"""JSON Lines of rows → Row, leniently: a bad line is a Problem with its place, and the rest goes on."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import msgspec

from undersong.datafiles.taxonomy import taxonomy
from undersong.datafiles.yaml_loader import did_you_mean
from undersong.errors import RecordError
from undersong.models import TRAITS, Problem, Row, TraitScores

_NAMES = ("id", "conversation", "agent", "target")  # numbers are accepted as names
DIGITS = 3  # decimals of a score, so that what is written is what every later step has seen
_TIME_REMEDY = "write ISO 8601 with an offset, such as 2026-01-01T09:30:00Z, or null"
_STATES = ("scored", "unread", "refused", "failed")
_MOST = 1 << 53  # a larger position is none: JSON readers disagree on it, and no store holds it
S = TypeVar("S", float, float | None)
_JUDGED_STATES = ("scored", "refused")  # a judge said this; what is unread or failed may still be read


def read_rows(lines: Iterable[str | bytes], *, name: str) -> Iterator[Row | Problem]:
    """The row of each line, or why it is none; ``name`` is the file's, for ``file:line``. Empty lines are passed over.

    A row without ``position`` takes the next one of its conversation. Of several rows with the same id in one
    conversation the first that was read is kept: it takes the place of an unread or failed one before it, and each
    other one is a Problem. A name that is not read, such as that of a misspelt trait, is one of kind ``note``.
    """
    reader = RowReader(name)
    for line in lines:
        item = reader.read(line)
        yield from reader.notes()
        if item is not None:
            yield item


def rows_from_mappings(values: Iterable[Mapping[str, Any] | Row], *, name: str) -> tuple[list[Row], list[Problem]]:
    """The rows of plain mappings as ``read_rows`` has them of lines, and their problems.

    Problems are repeated ids and names that are not read. Raises RecordError for a mapping that is no row.
    """
    reader = RowReader(name)
    taken = [reader.take(value) for value in values]
    problems = [*reader.notes(), *(each for each in taken if isinstance(each, Problem))]
    return [each for each in taken if isinstance(each, Row)], problems


class RowReader:
    """One line after the other, as ``read_rows`` does."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.number = 0
        self.seen: Counter[str] = Counter()
        self.accepted: dict[tuple[str, str], _AcceptedRow] = {}
        self._unread = UnknownKeys(name)
        self._notes: list[Problem] = []

    def read(self, line: str | bytes) -> Row | Problem | None:
        """The row of the next line, why it is none, or None for an empty one."""
        self.number += 1
        if self.number == 1 and isinstance(line, bytes):
            line = line.removeprefix(BOM_UTF8)
        if not line.strip():
            return None
        try:
            value = _object(line)
            self._notes += self._unread.of(value, self.number)
            return self._accept(*_row(value, self.seen))
        except RecordError as error:
            return self._problem(error)

    def take(self, value: Mapping[str, Any] | Row) -> Row | Problem:
        """The row of the next mapping; raises RecordError where it is none, with its place."""
        self.number += 1
        try:
            if isinstance(value, Mapping):
                self._notes += self._unread.of(value, self.number)
                row, positioned = _row(value, self.seen)
            else:
                row, positioned = row_of(value), True
        except RecordError as error:
            raise RecordError(error.what, where=f"{self.name}:{self.number}", remedy=error.remedy) from error
        try:
            return self._accept(row, positioned)
        except RecordError as error:
            return self._problem(error)

    def _problem(self, error: RecordError) -> Problem:
        return Problem(what=error.what, where=f"{self.name}:{self.number}", remedy=error.remedy)

    def _accept(self, row: Row, positioned: bool) -> Row:
        """The row where no other one with its id was accepted; raises RecordError where one is."""
        place = row.conversation, row.id
        before = self.accepted.get(place)
        if before is not None and (before.is_judged or row.state not in _JUDGED_STATES):
            raise RecordError(
                f"row {row.id[:80]!r} repeats the id of line {before.number}, which is kept",
                remedy="give every message of a conversation an id of its own, or name its conversation",
            )
        if before is None:
            self.seen[row.conversation] += 1
        elif not positioned:
            row = msgspec.structs.replace(row, position=before.position)
        self.accepted[place] = _AcceptedRow(self.number, row.position, row.state in _JUDGED_STATES)
        return row

    def notes(self) -> list[Problem]:
        """Names that are not read in the lines since this was last asked, each once a file (``UnknownKeys``)."""
        notes, self._notes = self._notes, []
        return notes


class _AcceptedRow(NamedTuple):
    """The line that an id was accepted from, the position of its row, and whether a judge said something of it."""

    number: int
    position: int
    is_judged: bool


def row_of(value: Mapping[str, Any] | Row, position: int = 0) -> Row:
    """A Row from a plain mapping, or the Row that it is; raises RecordError for one that cannot be read.

    ``thread`` and ``ts`` are other names of ``conversation`` and ``time``; ``indicators`` may be plain ids; unknown
    keys are ignored. Without ``state`` a row with traits is scored and any other unread.
    """
    if isinstance(value, Row):
        return value
    if not isinstance(value, Mapping):
        raise RecordError(
            f"a row is {type(value).__name__}, not a mapping", remedy="give dicts, or the rows of undersong.audit()"
        )
    cells = {OTHER_NAMES.get(key, key): cell for key, cell in value.items() if cell is not None}
    if "id" not in cells:
        raise RecordError("row without id", remedy="give every message an id")
    cells |= {key: str(cells[key]) for key in _NAMES if type(cells.get(key)) is int}
    cells.setdefault("position", position)
    cells["traits"] = _traits(cells.get("traits"))
    cells["state"] = _state(cells)
    if cells["state"] != "scored":
        cells["traits"] = None
    if "indicators" in cells:
        cells["indicators"] = _indicators(cells["indicators"])
    try:
        row = msgspec.convert(cells, Row)
    except msgspec.ValidationError as error:
        remedy = _TIME_REMEDY if "$.time" in str(error) else "docs/rows.md lists the keys of a row"
        raise RecordError(f"row {cells['id']}: {error}", remedy=remedy) from error
    if abs(row.position) >= _MOST:
        raise RecordError(f"row {row.id}: position is {row.position:.0e}", remedy="give its place in the conversation")
    if not row.agent:
        raise RecordError(f"row {row.id} without agent", remedy="say who wrote the message")
    return row


def rounded(row: Row) -> Row:
    """The row with its scores and signals to three decimals."""
    traits = None if row.traits is None else _rounded(row.traits)
    signals = _rounded(row.signals)
    if traits is row.traits and signals is row.signals:
        return row
    return msgspec.structs.replace(row, traits=traits, signals=signals)


def _rounded(scores: dict[str, S]) -> dict[str, S]:
    """The scores to three decimals, None as it is; the same dictionary where they are already."""
    values = [*map(_to_digits, scores.values())]
    return scores if values == [*scores.values()] else dict(zip(scores, values, strict=True))


@lru_cache(maxsize=1 << 12, typed=True)  # most scores have three decimals, so few are ever worked out
def _to_digits(score: S) -> S:
    return score if score is None else round(score, DIGITS)


def _object(line: str | bytes) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        packed = line[:2] in (b"\x1f\x8b", b"PK")
        remedy = "unpack the file, or pipe it in: gunzip -c FILE |" if packed else "one JSON object a line"
        raise RecordError(f"not JSON: {error}", remedy=remedy) from error
    if not isinstance(value, dict):
        raise RecordError("not a JSON object", remedy="one JSON object a line")
    return value


def _row(value: Mapping[str, Any], seen: Counter[str]) -> tuple[Row, bool]:
    """The row of a line's object, and whether it says its position."""
    conversation = str(value.get("conversation", value.get("thread", "")) or "")
    return row_of(value, seen[conversation]), value.get("position") is not None


def _traits(value: Any) -> TraitScores | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise RecordError("traits is not an object", remedy="write {trait: score} or null")
    return {trait: _score(trait, value[trait]) for trait in TRAITS if trait in value}


def _score(trait: str, score: Any) -> float | None:
    if score is None or (type(score) is float and 0.0 <= score <= 1.0):
        return score
    if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
        raise RecordError(f"{trait} is {str(score)[:40]!r}", remedy="a score is a number from 0 to 1, or null")
    return float(score)


def _state(cells: Mapping[str, Any]) -> str:
    """The state given, or the one that the scores show; ``scored: false`` is an older name of unread.

    Where nobody says that it was read, a row without a single score was not.
    """
    state = cells.get("state")
    if state is None:
        any_score = any(score is not None for score in (cells.get("traits") or {}).values())
        return "scored" if any_score and cells.get("scored") is not False else "unread"
    if state not in _STATES:
        raise RecordError(f"unknown state {str(state)[:40]!r}", remedy=f"known are {', '.join(_STATES)}")
    if state == "scored" and not cells.get("traits"):
        raise RecordError(f"row {cells['id']} is scored without traits", remedy="name the state that says why")
    return str(state)


def _indicators(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [{"id": name, "confidence": confidence} for name, confidence in value.items()]
    if not isinstance(value, list):
        raise RecordError("indicators is not a list", remedy="write ids, or objects with an id, or null")
    return [{"id": item} if isinstance(item, str) else item for item in value]


OTHER_NAMES = {"thread": "conversation", "ts": "time", "timestamp": "time"}
MOST = 20  # names reported of one file: a hostile one has another name in every row
_MEANT = {name: name for name in Row.__struct_fields__} | OTHER_NAMES | {
    "scores": "traits", "traitscores": "traits", "author": "agent", "agentid": "agent", "sender": "agent",
    "recipient": "target", "conversationid": "conversation", "threadid": "conversation",
}  # fmt: skip
_KEYS = frozenset({*Row.__struct_fields__, *OTHER_NAMES, "scored"})
_TRAITS = frozenset(TRAITS)
_CLOSE = 0.8  # of difflib: `traist` and `trait` are close to `traits`; other keys may be anybody's own
_LENGTH = 80  # characters of a name that are looked at and reported


class UnknownKeys:
    """The names in the rows of one file that nobody reads: each is reported once, at the first line that has it."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._reported: set[str] = set()

    def of(self, row: Mapping[str, Any], line: int) -> Iterator[Problem]:
        """A note for each new name in a row: traits and indicators that are none, keys that look like one it lacks."""
        traits = row.get("traits")
        if row.keys() <= _KEYS and not row.get("indicators") and isinstance(traits, dict) and traits.keys() <= _TRAITS:
            return
        for what, remedy in (*_unknown_traits(row), *_unknown_indicators(row), *_keys(row)):
            if what not in self._reported and len(self._reported) < MOST:
                self._reported.add(what)
                last = " (further such names are not told)" if len(self._reported) == MOST else ""
                yield Problem(what=f"{what}{last}", where=f"{self._file}:{line}", remedy=remedy, kind="note")


def _unknown_traits(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Names in ``traits`` that are no trait, and what may be meant."""
    traits = row.get("traits")
    if isinstance(traits, dict):
        for name in sorted(traits.keys() - _TRAITS):
            yield f"trait {name[:_LENGTH]!r} is not read", _trait_meant(name[:_LENGTH])


def _unknown_indicators(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Ids of indicators that no pattern of ours asks for, and those that may be meant."""
    indicators = row.get("indicators")
    for indicator in indicators if isinstance(indicators, list | dict) else ():
        name = indicator.get("id") if isinstance(indicator, dict) else indicator
        if isinstance(name, str) and (remedy := _indicator_meant(name[:_LENGTH])):
            yield f"indicator {name[:_LENGTH]!r} is not of the taxonomy", remedy


def _keys(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Keys of a row that look like one that it lacks, and traits outside of ``traits``."""
    for name in sorted(row.keys() - _KEYS):
        meant = "traits" if name in _TRAITS else _key_meant(name[:_LENGTH])
        if meant is not None and not row.keys() & {meant, *_other_names(meant)}:
            yield (
                f"key {name[:_LENGTH]!r} is not read",
                f"write it in {meant!r}" if name in _TRAITS else f"did you mean {meant!r}?",
            )


@lru_cache(maxsize=1 << 10)
def _trait_meant(name: str) -> str:
    return did_you_mean(name.lower(), list(TRAITS))


@lru_cache(maxsize=1 << 10)
def _indicator_meant(name: str) -> str:
    """What may be meant by an id of the taxonomy's kind; nothing for one that it has, and for names of another kind."""
    indicators = taxonomy().indicators
    kinds = {each.partition("-")[0] for each in indicators}
    if name in indicators or name.partition("-")[0].upper() not in kinds:
        return ""
    return did_you_mean(
        name.upper(), [each for each in indicators if each.startswith(name.partition("-")[0].upper() + "-")]
    )


@lru_cache(maxsize=1 << 10)
def _key_meant(name: str) -> str | None:
    close = get_close_matches(name.replace("_", "").lower(), sorted(_MEANT), n=1, cutoff=_CLOSE)
    return _MEANT[close[0]] if close else None


def _other_names(meant: str) -> Iterator[str]:
    return (other for other, name in OTHER_NAMES.items() if name == meant)
