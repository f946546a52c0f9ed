"""How fast the pattern engine is: ``python bench/detect.py [--rows N]`` (needs numba, polars, duckdb).

Rows are made from a seed: agents by a Zipf-like law, a third of the rows public, a tenth unread, scores to three
decimals, indicators and flags, so that every rule applies. They come as columns, in the order of time, to all three.

literal: three sequences of single rows and one of eight with statistics, the agents' rows put in order first, every
finding with its rows and its strength. The engine, Polars expressions and DuckDB windows find the same, or it is said.
Polars and DuckDB give every place where the sequence fits; which of overlapping ones stand is then worked out for both
by one NumPy loop. Times are CPU seconds of the whole process, the least of some runs.

all: every rule that is on, findings with measures; the reference does a part of the rows beside it.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from columns import Columns, Encoded, in_columns, pieces

from undersong.models import TRAITS
from undersong.patterns.catalog import load_rules
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.language.expressions import Call, Text, walk
from undersong.patterns.vectorized.jit import ENOUGH
from undersong.patterns.vectorized.run import MatchArrays, TableSearch
from undersong.patterns.vectorized.vector_logic import Vectors

POSITIVE = ("virtue", "goodwill", "accuracy", "reasoning", "recognition", "compassion")
DAY = 86_400_000_000  # microseconds


def made(rows: int, rules: tuple[PatternRule, ...], seed: int = 1) -> Columns:
    """Columns of so many rows."""
    dice = np.random.default_rng(seed)
    agents = max(10, rows // 50)
    weights = 1 / (np.arange(agents) + 10)
    agent = dice.choice(agents, rows, p=weights / weights.sum()).astype(np.int32)
    target = ((agent + dice.geometric(0.2, rows)) % agents).astype(np.int32)
    target[dice.random(rows) < 1 / 3] = -1
    names = [f"a{number:07}" for number in range(agents)]
    conversations = max(1, rows // 20)
    harmful = dice.random(rows) < np.where(dice.random(agents) < 0.05, 0.3, 0.02)[agent]
    numbers = {trait: _scores(dice, rows, trait in POSITIVE, harmful) for trait in TRAITS}
    read = dice.random(rows) < 0.9
    for values in numbers.values():
        values[~read] = np.nan
    texts = {
        "agent": Encoded(agent, names),
        "target": Encoded(target, names),
        "conversation": Encoded(
            (np.arange(rows) // 20).astype(np.int32), [f"c{number:07}" for number in range(conversations + 1)]
        ),
        "tier": _choice(dice, rows, ("standard", "focused", "deep", "deep_with_context"), (0.6, 0.2, 0.15, 0.05)),
        "observed": _choice(dice, rows, ("yes", "no", "unknown"), (0.3, 0.3, 0.4)),
        "role": _choice(dice, rows, ("agent", "assistant", "user"), (0.6, 0.2, 0.2)),
    }
    apologies = dice.integers(0, 6, rows).astype(np.float64)
    return Columns(
        times=np.sort(dice.integers(0, 360 * DAY, rows)),
        read=read,
        texts=texts,
        numbers=numbers | {"apologies": apologies, "loops": (dice.random(rows) < 0.02).astype(np.float64)},
        judged=read,
        indicators={name: dice.random(rows) < np.where(harmful, 0.05, 0.003) for name in _named(rules, "indicator")},
        flags={name: dice.random(rows) < 0.05 for name in _named(rules, "flag")},
    )


def _scores(dice: np.random.Generator, rows: int, positive: bool, harmful: Any) -> Any:
    low, high = dice.beta(2, 8, rows), dice.beta(5, 4, rows)
    return np.where(harmful ^ positive, high, low).round(3)


def _choice(dice: np.random.Generator, rows: int, names: tuple[str, ...], weights: tuple[float, ...]) -> Encoded:
    return Encoded(dice.choice(len(names), rows, p=weights).astype(np.int32), names)


def _named(rules: tuple[PatternRule, ...], function: str) -> list[str]:
    """What the rules ask for by name."""
    trees = [tree for rule in rules for tree in (*rule.trees.define, *rule.trees.columns.values())]
    trees += [rule.trees.where for rule in rules if rule.trees.where is not None]
    names = {
        part.arguments[0].value
        for tree in trees
        for part in walk(tree)
        if isinstance(part, Call) and part.name == function and isinstance(part.arguments[0], Text)
    }
    return sorted(names)


def engine(columns: Columns, rules: tuple[PatternRule, ...], own: bool = True) -> list[tuple[PatternRule, MatchArrays]]:
    """Every finding of some rules; ``own`` as ``pieces`` has it."""
    results: list[tuple[PatternRule, MatchArrays]] = []
    source: Vectors | None = None
    for piece in pieces(columns, own=own):
        source = source if source is not None and source.leaves is piece.source else Vectors(piece.source)
        run = TableSearch(piece, source)
        results += [(rule, run.find(rule)) for rule in rules]
    return results


def least(work: Callable[[], Any], runs: int) -> tuple[float, Any]:
    """CPU seconds and the result."""
    best, result = float("inf"), None
    for _ in range(runs):
        began = time.process_time()
        result = work()
        best = min(best, time.process_time() - began)
    return best, result


class Shape(NamedTuple):
    """A sequence of single rows for the peers: the conditions of its rows in order, and its strength over them.

    ``{0}`` in the strength is the first row's place, ``{1}`` that of the second, and so on.
    """

    conditions: tuple[str, ...]
    strength: str
    reads: tuple[str, ...]


PRAISE, TURN = "compassion > 0.6", "manipulation > 0.5 and compassion < 0.3"
SHAPES = {
    "love_bombing_literal": Shape(
        (PRAISE, PRAISE, PRAISE, TURN),
        "(compassion{0} + compassion{1} + compassion{2}) / 3 * manipulation{3}",
        ("compassion", "manipulation"),
    ),
    "darvo_literal": Shape(
        ("deception > 0.5", "manipulation > 0.5", "exploitation > 0.5"),
        "(deception{0} + manipulation{1} + exploitation{2}) / 3",
        ("deception", "manipulation", "exploitation"),
    ),
    "con_game_literal": Shape(
        ("goodwill > 0.6", "goodwill > 0.6", "goodwill > 0.6", "fabrication > 0.5", "manipulation > 0.5"),
        "((goodwill{0} + goodwill{1} + goodwill{2}) / 3 + fabrication{3} + manipulation{4}) / 3",
        ("goodwill", "fabrication", "manipulation"),
    ),
}
WINDOW = 8  # rows of intermittent_reward_literal
NOISE = 1e-12  # keeps the peers' rounding off the thresholds; exact results lie on them now and then
USED = ("compassion", "manipulation", "deception", "exploitation", "goodwill", "fabrication")
Matches = tuple[Any, Any]  # rows of each match (matches × length), strengths


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    columns = made(arguments.rows, load_rules(), arguments.seed)
    literal(columns, arguments.runs)
    everything(columns, arguments.runs)


def literal(columns: Columns, runs: int) -> None:
    """The literal rules, beside Polars and DuckDB."""
    names = (*SHAPES, "intermittent_reward_literal")
    rules = load_rules(names=names)
    engine(made(ENOUGH * 2, load_rules()), rules)  # compile
    ours, results = least(lambda: engine(columns, rules, own=False), runs)
    mine = {name: _mine([part for rule, part in results if rule.id == name]) for name in names}
    print(f"{len(columns.times)} rows, literal rules: CPU seconds (ratio to the engine), findings, the same rows?")
    print(f"engine  {ours:8.2f}         {sum(len(rows) for rows, _ in mine.values())}")
    for peer, work in (("polars", polars_finds), ("duckdb", duckdb_finds)):
        seconds, theirs = least(work(columns), max(1, runs - 1))
        same = all(_same(mine[name], theirs[name]) for name in names)
        count = sum(len(rows) for rows, _ in theirs.values())
        print(f"{peer}  {seconds:8.2f} ({seconds / ours:4.1f})  {count}  {'the same' if same else 'NOT THE SAME'}")


def _mine(parts: list[MatchArrays]) -> Matches:
    rows = [in_columns(part.table, part.rows).reshape(part.size, -1) for part in parts if part.size]
    strengths = [part.measures["strength"] for part in parts if part.size]
    return (
        (np.concatenate(rows), np.concatenate(strengths)) if rows else (np.zeros((0, 1), dtype=np.int64), np.zeros(0))
    )


def _same(one: Matches, other: Matches) -> bool:
    if len(one[0]) == len(other[0]) == 0:
        return True
    if one[0].shape != other[0].shape:
        return False
    first, second = np.argsort(one[0][:, 0]), np.argsort(other[0][:, 0])
    strengths = np.allclose(one[1][first], other[1][second], rtol=1e-9, atol=1e-9)
    return bool((one[0][first] == other[0][second]).all()) and strengths


def apart(starts: Any, groups: Any, length: int) -> Any:
    """Of matches as long as this, in order, those that stand where each goes on after the last one's rows."""
    chosen, following, group = [], -1, -1
    for k, (start, own) in enumerate(zip(starts.tolist(), groups.tolist(), strict=True)):
        if own != group or start >= following:
            chosen.append(k)
            following, group = start + length, own
    return np.array(chosen, dtype=np.int64)


def polars_finds(columns: Columns) -> Callable[[], dict[str, Matches]]:
    """The work of Polars: rows put in order, every shape by shifted columns of the same agent."""
    import polars as pl

    frame = pl.DataFrame(
        {
            "agent": columns.texts["agent"].codes,
            "time": columns.times,
            "row": np.arange(len(columns.times)),
            "read": columns.read,
            **{name: columns.numbers[name] for name in USED},
        }
    )

    def shape(ordered: Any, wanted: Shape) -> Matches:
        parts = [
            pl.sql_expr(condition).shift(-i).over("agent") if i else pl.sql_expr(condition)
            for i, condition in enumerate(wanted.conditions)
        ]
        length = len(wanted.conditions)
        places = ordered.select(pl.all_horizontal(parts).fill_null(value=False).arg_true())
        return _taken(ordered, places.to_series().to_numpy(), wanted, length)

    def windowed(ordered: Any) -> Matches:
        before = [pl.col("manipulation").shift(i).over("agent") for i in range(WINDOW)]
        slope = pl.sum_horizontal([part * (WINDOW - 1 - 2 * i) for i, part in enumerate(before)])
        spread = pl.col("compassion").rolling_std(WINDOW, ddof=0).over("agent")
        matched = ordered.select(
            pl.int_range(pl.len()).alias("place"),
            slope.alias("slope"),
            spread.alias("spread"),
            before[-1].alias("first"),
        ).filter((pl.col("spread") > 0.3 + NOISE) & (pl.col("slope") > NOISE) & pl.col("first").is_not_null())
        ends = matched["place"].to_numpy()
        chosen = apart(ends - WINDOW + 1, ordered["agent"].gather(ends).to_numpy(), WINDOW)
        rows = (ends[chosen] - WINDOW + 1)[:, None] + np.arange(WINDOW)
        return ordered["row"].to_numpy()[rows], np.minimum(1.0, 2 * matched["spread"].to_numpy()[chosen])

    def work() -> dict[str, Matches]:
        ordered = frame.lazy().filter(pl.col("read")).sort("agent", "time", "row").collect()
        results = {name: shape(ordered, wanted) for name, wanted in SHAPES.items()}
        return results | {"intermittent_reward_literal": windowed(ordered)}

    return work


def _taken(ordered: Any, starts: Any, wanted: Shape, length: int) -> Matches:
    """The rows and strengths of the matches that stand."""
    chosen = starts[apart(starts, ordered["agent"].gather(starts).to_numpy(), length)]
    rows = chosen[:, None] + np.arange(length)
    values = {f"{name}{i}": ordered[name].gather(rows[:, i]).to_numpy() for name in wanted.reads for i in range(length)}
    places = {str(i): i for i in range(length)}
    text = wanted.strength.format(*places)
    return ordered["row"].to_numpy()[rows], _worked_out(text, values)


def _worked_out(text: str, values: dict[str, Any]) -> Any:
    import polars as pl

    return pl.DataFrame(values).select(pl.sql_expr(text)).to_series().to_numpy()


def duckdb_finds(columns: Columns) -> Callable[[], dict[str, Matches]]:
    """The work of DuckDB: every shape by window functions over the rows of an agent."""
    import duckdb
    import pyarrow as pa

    table = pa.table(
        {
            "agent": columns.texts["agent"].codes,
            "time": columns.times,
            "row": np.arange(len(columns.times)),
            "read": columns.read,
            **{name: columns.numbers[name] for name in USED},
        }
    )
    connection = duckdb.connect()
    connection.register("given", table)

    def shape(wanted: Shape) -> Matches:
        length = len(wanted.conditions)
        ahead = [f"lead({name}, {i}) over w as {name}{i}" for name in wanted.reads for i in range(length)]
        ahead += [f"lead(row, {i}) over w as row{i}" for i in range(length)]
        numbered = [re.sub(r"([a-z]+) ([<>])", rf"\g<1>{i} \2", each) for i, each in enumerate(wanted.conditions)]
        places = wanted.strength.format(*(str(i) for i in range(length)))
        rows = ", ".join(f"row{i}" for i in range(length))
        matched = connection.execute(
            f"with ahead as (select agent, row_number() over w as place, {', '.join(ahead)} from given where read "
            f"window w as (partition by agent order by time, row)) "
            f"select agent, place, {places} as strength, {rows} from ahead where {' and '.join(numbered)} "
            "order by agent, place"
        ).fetchnumpy()
        chosen = apart(matched["place"], matched["agent"], length)
        return np.stack([matched[f"row{i}"] for i in range(length)], axis=1)[chosen], matched["strength"][chosen]

    def windowed() -> Matches:
        rows = ", ".join(f"lag(row, {WINDOW - 1 - i}) over w as row{i}" for i in range(WINDOW))
        parts = [f"{WINDOW - 1 - 2 * i} * lag(manipulation, {i}) over w" for i in range(WINDOW)]
        matched = connection.execute(
            f"with behind as (select agent, row_number() over w as place, {rows}, {' + '.join(parts)} as slope, "
            f"stddev_pop(compassion) over (w rows between {WINDOW - 1} preceding and current row) as spread "
            "from given where read window w as (partition by agent order by time, row)) "
            f"select * from behind where spread > 0.3 + {NOISE} and slope > {NOISE} and row0 is not null "
            "order by agent, place"
        ).fetchnumpy()
        chosen = apart(matched["place"] - WINDOW + 1, matched["agent"], WINDOW)
        rows_of = np.stack([matched[f"row{i}"] for i in range(WINDOW)], axis=1)
        return rows_of[chosen], np.minimum(1.0, 2 * matched["spread"][chosen])

    def work() -> dict[str, Matches]:
        return {name: shape(wanted) for name, wanted in SHAPES.items()} | {"intermittent_reward_literal": windowed()}

    return work


def everything(columns: Columns, runs: int) -> None:
    """Every rule that is on."""
    rules = load_rules()
    engine(made(ENOUGH * 2, rules), rules)
    seconds, results = least(lambda: engine(columns, rules), runs)
    rows = len(columns.times)
    lost = sum(len(part.gave_up) for _, part in results)
    print(f"{rows} rows, {len(rules)} rules: {seconds:.2f} CPU seconds, {rows / seconds:.0f} rows a CPU second,")
    print(f"{sum(part.size for _, part in results)} findings, gave up in {lost} sequences")


if __name__ == "__main__":
    main()
