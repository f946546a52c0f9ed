"""The price of reading whole sequences, before anything is asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from undersong.judges.llm.pricing import Price, load_prices
from undersong.judges.llm.sequences import render_window, sequence_schema
from undersong.judges.llm.tokens import TokenRates, schema_bytes
from undersong.judges.protocol import PatternShape, SequenceWindow
from undersong.models import Evaluation, Message, Record, Row
from undersong.patterns.catalog import load_rules
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.nomination import nominate
from undersong.pipeline.evaluate import RoutedThread
from undersong.pipeline.partwise import rows_of
from undersong.pipeline.sequence_pairs import compared_shapes, paired_windows
from undersong.pipeline.sequence_windows import shapes_of, windows_of
from undersong.stores.protocol import Store


class SequencePlan(Record, frozen=True, kw_only=True):
    """What ``--read sequences`` would ask: ``sequences`` nominated by the free scan, in so many ``windows``, among
    them ``pairs`` of conversations that are read side by side.

    Tokens are estimates; ``cost`` in USD, None = price not known. Scores, which an audit that reads both has, can
    change which sequences of a large corpus are nominated, not how many.
    """

    sequences: int
    windows: int
    pairs: int = 0
    tokens_in: int
    tokens_out: int
    cost: float | None


def scanned_rows(thread: RoutedThread) -> Iterable[Row]:
    """The rows of a thread as they are before any message of it is read."""
    return rows_of(thread, [_unread(message.id) for message in thread.conversation.messages])


def _unread(message_id: str) -> Evaluation:
    return Evaluation(message_id=message_id, state="unread", judge="", judge_hash="", message_hash="")


def plan_sequences(
    rows: Sequence[Row],
    store: Store,
    judges: Sequence[tuple[Price, TokenRates]],
    seed: int,
    rules: Sequence[PatternRule] | None,
) -> SequencePlan:
    """What reading the sequences of these rows would take from all of these judges."""
    shapes = shapes_of(load_rules() if rules is None else rules)
    nominations = nominate(rows, (), seed=seed)

    def messages(name: str) -> Sequence[Message]:
        return store.conversation(name)[0].messages

    windows = (window for each in nominations for window in windows_of(each, messages(each.conversation or "")))
    whole, asked = _sizes(windows, shapes), compared_shapes(shapes)
    pairs = _sizes(paired_windows(rows, messages) if asked else (), asked)
    costs = [_cost(price, rates, *each) for each in (whole, pairs) for price, rates in judges]
    priced = [cost for *_, cost in costs if cost is not None]
    return SequencePlan(
        sequences=len(nominations),
        windows=len(whole.messages) + len(pairs.messages),
        pairs=len(pairs.messages),
        tokens_in=sum(tokens_in for tokens_in, *_ in costs),
        tokens_out=sum(tokens_out for _, tokens_out, _ in costs),
        cost=sum(priced) if len(priced) == len(costs) else None,
    )


class _Sizes(NamedTuple):
    """Bytes of questions: what is the same in each, and the messages of each."""

    stable: int
    messages: list[int]


def _sizes(windows: Iterable[SequenceWindow], shapes: Sequence[PatternShape]) -> _Sizes:
    sizes, stable = list[int](), 0
    for window in windows:
        prompt = render_window(window, shapes)
        stable = stable or len(prompt.system.encode()) + schema_bytes(
            lambda **how: sequence_schema(tuple(shapes), **how)
        )
        sizes.append(len(prompt.user.encode()))
    return _Sizes(stable, sizes)


def _cost(price: Price, rates: TokenRates, stable: int, sizes: Sequence[int]) -> tuple[int, int, float | None]:
    """Tokens in and out, and USD, of questions of these sizes beside so many bytes that are the same in each."""
    fixed = round(rates.per_byte * stable)
    tokens_in = sum(fixed + round(rates.per_byte * size) for size in sizes)
    tokens_out = len(sizes) * (load_prices().tokens.sequence + rates.thinking)
    repeated = fixed * max(len(sizes) - 1, 0) if price.cached is not None else 0
    return tokens_in, tokens_out, price.cost(tokens_in, tokens_out, cached=repeated, written=fixed if repeated else 0)
