#!/usr/bin/env python3
"""Which of two forms of the answer agrees better with itself: readings of the same messages under both, twice each.

usage: schemas.py --old FIRST SECOND --new FIRST SECOND [--items ITEMS] [--old-prompt FILE] [--seed 1] [--json]

A line of a reading is ``{"id", "traits": [12 marks of 0 to 4, or null], "indicators": [...], "mechanisms": [...],
"stance"}``, with ``reasons`` where the form has them; an indicator is ``[ID, 1-4]`` or has its quote as a third part,
before or after the id. ``reading_set.py`` draws messages and writes ITEMS; with them, intervals are drawn over
conversations instead of messages. Lines that are not of this form end the program with their place.

Per trait: quadratic weighted kappa and Spearman of first and second reading where both gave a mark; ``ordinary`` is the
kappa with null as the ordinary mark (0 of a negative trait, 2 of a positive one), so that no message is left out;
``null`` the share of nulls, ``alike`` how often both readings or neither said null. The 95 % interval of the mean and
of the difference is a bootstrap over conversations. Tokens are bytes by the rule of thumb of ``prices.yaml``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from undersong.datafiles.taxonomy import taxonomy
from undersong.judges.llm.pricing import load_prices
from undersong.judges.llm.prompts import MARKS, shipped_prompts
from undersong.judges.llm.response import CONFIDENCE, NEGATIVE, STANCES
from undersong.models import TRAITS
from undersong.training.evaluation import kappa, spearman

Marks = npt.NDArray[np.float64]  # messages x traits, 0 to 4; nan = does not apply
ORDINARY = np.array([0.0 if trait in NEGATIVE else 2.0 for trait in TRAITS])
DRAWS = 1000
COLUMNS = ("kappa", "spearman", "ordinary", "exact", "null", "alike")


class ReadingLine(NamedTuple):
    """One checked line; ``answer`` is what the judge would have sent."""

    id: str
    marks: tuple[int | None, ...]
    indicators: frozenset[str]
    mechanisms: frozenset[str]
    stance: str
    reasons: int
    answer_bytes: int


class Pair(NamedTuple):
    """Both readings of the messages that both have, in one order."""

    ids: tuple[str, ...]
    first: tuple[ReadingLine, ...]
    second: tuple[ReadingLine, ...]
    marks: tuple[Marks, Marks]


def read(path: Path, items: frozenset[str]) -> dict[str, ReadingLine]:
    """The lines of a file by their ids; SystemExit with file and line where one is not as described."""
    lines: dict[str, ReadingLine] = {}
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not text.strip():
            continue
        try:
            line = checked_line(json.loads(text))
            if line.id in lines or (items and line.id not in items):
                raise ValueError(f"'{line.id}' stands here twice, or is no message of the set")
        except (ValueError, KeyError, TypeError) as error:
            raise SystemExit(f"error: {path}:{number}: {type(error).__name__}: {error}") from None
        lines[line.id] = line
    if missing := sorted(items - lines.keys()):
        raise SystemExit(f"error: {path}: {len(missing)} messages are not read, the first is {missing[0]}")
    return lines


def checked_line(value: dict[str, Any]) -> ReadingLine:
    """Raises ValueError, KeyError or TypeError for what a reading may not be."""
    marks = tuple(value["traits"])
    if len(marks) != len(TRAITS):
        raise ValueError(f"{len(marks)} traits instead of {len(TRAITS)}")
    for trait, mark in zip(TRAITS, marks, strict=True):
        if mark is not None and (isinstance(mark, bool) or mark not in range(MARKS + 1)):
            raise ValueError(f"{trait} is {mark!r}")
    if value["stance"] not in STANCES:
        raise ValueError(f"stance is {value['stance']!r}")
    indicators = [entry(part, frozenset(each.id for each in INDICATORS)) for part in value["indicators"]]
    mechanisms = [entry(part, shipped_prompts().offered) for part in value["mechanisms"]]
    return ReadingLine(
        id=value["id"],
        marks=marks,
        indicators=frozenset(part["id"] for part in indicators),
        mechanisms=frozenset(part["id"] for part in mechanisms),
        stance=value["stance"],
        reasons=len(value.get("reasons", ())),
        answer_bytes=len(_answer(value, marks, indicators, mechanisms)),
    )


INDICATORS = taxonomy().asked_of_a_judge()


def entry(parts: Sequence[Any], allowed: frozenset[str]) -> dict[str, Any]:
    """``[ID, 1-4]``, ``[ID, quote, 1-4]`` or ``[quote, ID, 1-4]`` by name."""
    *words, confidence = parts
    names = [word for word in words if word in allowed]
    if len(names) != 1 or len(words) > 2 or confidence not in CONFIDENCE:
        raise ValueError(f"{parts!r} is not [ID, 1-4] with a known ID")
    quotes = [word for word in words if word != names[0]]
    return {"quote": quotes[0] if quotes else "", "id": names[0], "confidence": confidence}


def _answer(value: dict[str, Any], marks: Sequence[int | None], *evidence: Sequence[dict[str, Any]]) -> bytes:
    body: dict[str, Any] = {"control": "amber", "indicators": evidence[0], "mechanisms": evidence[1], "acts": []}
    if "reasons" in value:
        body["reasons"] = [{"trait": trait, "reason": reason} for trait, reason in value["reasons"]]
    body |= {"traits": dict(zip(TRAITS, marks, strict=True)), "stance": {"position": value["stance"], "claim": ""}}
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def paired(first: dict[str, ReadingLine], second: dict[str, ReadingLine], ids: Sequence[str]) -> Pair:
    """The readings of these messages side by side."""
    a, b = tuple(first[name] for name in ids), tuple(second[name] for name in ids)
    return Pair(tuple(ids), a, b, (_matrix(a), _matrix(b)))


def _matrix(lines: Sequence[ReadingLine]) -> Marks:
    return np.array([[np.nan if mark is None else float(mark) for mark in line.marks] for line in lines])


def trait_figures(pair: Pair, rows: npt.NDArray[np.intp] | slice = slice(None)) -> npt.NDArray[np.float64]:
    """Traits x COLUMNS over these rows; nan where a figure is not defined."""
    first, second = (marks[rows] for marks in pair.marks)
    return np.array([_figures(first[:, place], second[:, place], ORDINARY[place]) for place in range(len(TRAITS))])


def _figures(first: Marks, second: Marks, ordinary: float) -> tuple[float, ...]:
    a_null, b_null = np.isnan(first), np.isnan(second)
    both = ~a_null & ~b_null
    a, b = first[both] / MARKS, second[both] / MARKS
    filled = (np.where(a_null, ordinary, first) / MARKS, np.where(b_null, ordinary, second) / MARKS)
    same = (first == second) | (a_null & b_null)
    agreement = (kappa(a, b), spearman(a, b)) if both.any() else (np.nan, np.nan)
    return (*agreement, kappa(*filled), float(same.mean()), float((a_null.mean() + b_null.mean()) / 2),
            float((a_null == b_null).mean()))  # fmt: skip


def column_means(figures: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The means over traits of the figures that are defined; nan where none is."""
    defined = ~np.isnan(figures)
    counts = defined.sum(axis=0)
    return np.where(counts, np.where(defined, figures, 0.0).sum(axis=0) / np.maximum(counts, 1), np.nan)


def overlap(pair: Pair, of: Callable[[ReadingLine], frozenset[str]]) -> tuple[float, float]:
    """(entries a message, how far both readings name the same: twice the common ones over all)."""
    sets = [(of(a), of(b)) for a, b in zip(pair.first, pair.second, strict=True)]
    total = sum(len(a) + len(b) for a, b in sets)
    common = sum(len(a & b) for a, b in sets)
    return total / 2 / len(sets), 2 * common / total if total else float("nan")


def bootstrap(pairs: Sequence[Pair], groups: Sequence[str], seed: int) -> npt.NDArray[np.float64]:
    """Draws x pairs x COLUMNS: the means over traits, in samples of conversations with replacement."""
    dice = np.random.default_rng(seed)
    names = sorted(set(groups))
    rows = {name: np.flatnonzero(np.array(groups) == name) for name in names}
    means = []
    for _ in range(DRAWS):
        drawn = np.concatenate([rows[names[place]] for place in dice.integers(len(names), size=len(names))])
        means.append([column_means(trait_figures(pair, drawn)) for pair in pairs])
    return np.array(means)


def report(pairs: dict[str, Pair], prompts: dict[str, str], groups: Sequence[str], seed: int) -> dict[str, Any]:
    """All figures by form."""
    bytes_each = load_prices().tokens.bytes_each
    result: dict[str, Any] = {}
    for name, pair in pairs.items():
        figures = trait_figures(pair)
        lines = [*pair.first, *pair.second]
        stances = float(np.mean([a.stance == b.stance for a, b in zip(pair.first, pair.second, strict=True)]))
        result[name] = {
            "traits": {trait: dict(zip(COLUMNS, row, strict=True)) for trait, row in zip(TRAITS, figures, strict=True)},
            "mean": dict(zip(COLUMNS, column_means(figures), strict=True)),
            "indicators": overlap(pair, lambda line: line.indicators),
            "mechanisms": overlap(pair, lambda line: line.mechanisms),
            "stance alike": stances,
            "reasons a message": float(np.mean([line.reasons for line in lines])),
            "answer tokens": float(np.mean([line.answer_bytes for line in lines])) / bytes_each,
            "prompt tokens": len(prompts[name].encode()) / bytes_each if prompts[name] else None,
        }
    every = bootstrap(list(pairs.values()), groups, seed)
    for column in ("kappa", "ordinary"):
        draws = every[:, :, COLUMNS.index(column)]
        for place, name in enumerate(pairs):
            result[name][f"{column} 95 %"] = _interval(draws[:, place])
        result[f"{column} of new less old, 95 %"] = _interval(draws[:, 1] - draws[:, 0])
    return result


def _interval(values: npt.NDArray[np.float64]) -> tuple[float, float]:
    low, high = np.nanpercentile(values, [2.5, 97.5])
    return float(low), float(high)


def printed(result: dict[str, Any]) -> Iterable[str]:
    """The figures as lines of text: a table of traits with both forms side by side, then the rest."""
    forms = [name for name in result if "traits" in result[name]]
    yield f"{'':<14}" + "".join(f"{f'{form} {column}':>14}" for column in COLUMNS for form in forms)
    for trait in [*TRAITS, "mean"]:
        rows = [result[form]["mean"] if trait == "mean" else result[form]["traits"][trait] for form in forms]
        yield f"{trait:<14}" + "".join(f"{row[column]:>14.3f}" for column in COLUMNS for row in rows)
    yield ""
    for name in result[forms[0]]:
        if name not in ("traits", "mean"):
            yield f"{name:<20}" + "".join(f"{_shown(result[form][name]):>22}" for form in forms)
    yield from (f"{name}: {_shown(value)}" for name, value in result.items() if name not in forms)


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    return "  ".join(f"{part:.3f}" for part in value) if isinstance(value, tuple) else f"{value:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", type=Path, nargs=2, required=True)
    parser.add_argument("--new", type=Path, nargs=2, required=True)
    parser.add_argument("--items", type=Path)
    parser.add_argument("--old-prompt", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = [json.loads(row) for row in options.items.read_text(encoding="utf-8").splitlines()] if options.items else []
    conversations = {row["id"]: row["conversation"] for row in rows}
    files = {path: read(path, frozenset(conversations)) for path in (*options.old, *options.new)}
    ids = sorted(set.intersection(*(set(lines) for lines in files.values())))
    if not ids:
        raise SystemExit("error: no message is in all four files")
    pairs = {name: paired(files[a], files[b], ids) for name, (a, b) in (("old", options.old), ("new", options.new))}
    old_prompt = options.old_prompt.read_text(encoding="utf-8") if options.old_prompt else ""
    prompts = {"old": old_prompt, "new": shipped_prompts().rubric}
    result = report(pairs, prompts, [conversations.get(name, name) for name in ids], options.seed)
    print(f"{len(ids)} messages\n" if not options.json else json.dumps(result, indent=1), end="")
    if not options.json:
        print("\n" + "\n".join(printed(result)))


if __name__ == "__main__":
    main()
