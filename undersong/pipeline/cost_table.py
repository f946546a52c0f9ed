"""The cost table of the original design for any number of messages, with what judges charge today beside it."""

from __future__ import annotations

from collections.abc import Iterator

from undersong.datafiles.yaml_loader import RULES, DataFile, read
from undersong.judges.limits import RunLimits
from undersong.judges.protocol import Question
from undersong.models import Depth, Message, Record, Route, Scan, Tier, Width
from undersong.pipeline.options import Options
from undersong.pipeline.planning import Readers, readers_of, size_of

READ: dict[Tier, tuple[Depth, Width]] = {
    "focused": ("standard", "message"),
    "deep": ("thorough", "prior_messages"),
    "deep_with_context": ("thorough", "thread_and_history"),
}
PRIOR = 5  # messages before one that is read deep


class DocumentRow(DataFile, frozen=True, kw_only=True):
    """A tier of the document's table: how many messages, and USD per message from and to."""

    messages: int
    low: float
    high: float


class DocumentTable(DataFile, frozen=True, kw_only=True):
    """``cost_table.yaml``."""

    messages: int
    tiers: dict[Tier, DocumentRow]
    message_bytes: int
    thread: int
    judges: tuple[str, ...]


class CostRow(Record, frozen=True, kw_only=True):
    """One layer: its messages, the document's USD from and to, and today's by judge; None where a price is missing."""

    layer: str
    messages: int
    document: tuple[float, float]
    today: dict[str, float | None]


class CostTable(Record, frozen=True, kw_only=True):
    """The rows in the order of the document, the total last; ``prices`` has the day on which each judge's was read."""

    messages: int
    rows: tuple[CostRow, ...]
    prices: dict[str, str | None]
    message_bytes: int
    thread: int


def document_table() -> DocumentTable:
    """The shipped table."""
    return read(RULES / "cost_table.yaml", DocumentTable)


def cost_table(messages: int, judges: tuple[str, ...] = (), limits: RunLimits | None = None) -> CostTable:
    """The document's table for so many messages; ``judges`` are named as in ``--judge`` (default: the file's).

    Scanner and pattern detector cost nothing, in the document and today. Tokens are those of our own questions about a
    message of ``message_bytes`` in a thread of ``thread`` messages, without the reading of an agent's history.
    """
    table = document_table()
    names = judges or table.judges
    readers = {name: readers_of(Options(judge=name, terms=limits or RunLimits()), None) for name in names}
    free = dict.fromkeys(names, 0.0)
    rows = [CostRow(layer="scanner", messages=messages, document=(0.0, 0.0), today={**free})]
    for tier, row in table.tiers.items():
        count = round(row.messages * messages / table.messages)
        today = {name: _cost(tier, count, table, readers[name]) for name in names}
        rows.append(CostRow(layer=tier, messages=count, document=(row.low * count, row.high * count), today=today))
    rows.append(CostRow(layer="pattern detector", messages=messages, document=(0.0, 0.0), today={**free}))
    rows.append(_total(rows, messages))
    prices = {judge.name: judge.price.as_of for each in readers.values() for parts in each.values() for judge in parts}
    dates = {name: day.isoformat() if day else None for name, day in prices.items()}
    return CostTable(
        messages=messages, rows=tuple(rows), prices=dates, message_bytes=table.message_bytes, thread=table.thread
    )


def _cost(tier: Tier, count: int, table: DocumentTable, readers: Readers) -> float | None:
    """USD of so many questions: the first pays for the provider's cache, the others read there."""
    if not count:
        return 0.0
    asked = set[str]()
    first, other = (size_of(_question(tier, table), readers[tier], asked)[2] for _ in range(2))
    return None if first is None or other is None else first + other * (count - 1)


def _question(tier: Tier, table: DocumentTable) -> Question:
    depth, width = READ[tier]
    prior = {"focused": 0, "deep": PRIOR}.get(tier, table.thread - 1)
    return Question(
        message=_message(prior, table),
        scan=Scan(message_id=str(prior)),
        route=Route(message_id=str(prior), tier=tier, tier_before=tier, depth=depth, width=width),
        prior=tuple(_message(place, table) for place in range(prior)),
        prior_scans=tuple(Scan(message_id=str(place)) for place in range(prior)),
    )


def _message(place: int, table: DocumentTable) -> Message:
    text = "word " * (table.message_bytes // 5)
    return Message(
        id=str(place), conversation="c", position=place, author="agent", agent="agent", role="agent", text=text
    )


def _total(rows: list[CostRow], messages: int) -> CostRow:
    document = sum(row.document[0] for row in rows), sum(row.document[1] for row in rows)
    names = rows[0].today
    columns = {name: [row.today[name] for row in rows] for name in names}
    today = {name: None if None in column else sum(filter(None, column)) for name, column in columns.items()}
    return CostRow(layer="total", messages=messages, document=document, today=today)


def table_lines(table: CostTable) -> Iterator[str]:
    """The table for a person."""
    names = [name.removeprefix("anthropic:") for name in table.rows[0].today]
    widths = [max(12, len(name) + 2) for name in names]
    heads = "".join(f"{name:>{width}}" for name, width in zip(names, widths, strict=True))
    yield f"{'layer':<20}{'messages':>10}{'document, USD':>18}{heads}"
    for row in table.rows:
        low, high = row.document
        document = "0" if not high else f"{low:,.0f}-{high:,.0f}"
        cells = [("price?" if cost is None else f"{cost:,.2f}") for cost in row.today.values()]
        columns = "".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True))
        yield f"{row.layer:<20}{row.messages:>10,}{document:>18}{columns}"
    read_on = ", ".join(f"{name} {day or '(no date)'}" for name, day in sorted(table.prices.items()))
    yield f"The document's shares and prices a message; today's prices ({read_on}) for our own questions about messages"
    yield (
        f"of {table.message_bytes:,} bytes, thinking included, in threads of {table.thread:,}; `undersong plan PATH` "
        "counts your own messages."
    )
