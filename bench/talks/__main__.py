"""Score predictions on the benchmark, or print what ours and the baselines reach.

    python -m bench.talks [--set dev|test]                 facts of the set, cues, baselines, rules, reader
    python -m bench.talks --set test PREDICTIONS.jsonl     somebody else's predictions

A prediction is an object ``{"conversation", "agent", "shape", "confidence"?}``, see docs/benchmark.md.
``sequences.jsonl`` of a set holds what readers of whole conversations answered, ``readings.jsonl`` what readers of
single messages gave.
"""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from bench.talks.rows import agent as identity
from bench.talks.rows import rows
from bench.talks.score import CUT, Score, Share, auc, cues, one_name, read_lines, score, speakers
from undersong.models import NEGATIVE_TRAITS, TRAITS, Row
from undersong.patterns.catalog import load_rules
from undersong.patterns.detect import detect
from undersong.patterns.significance.confidence import OWN, confidence, with_confidence

Json = dict[str, Any]
HERE = Path(__file__).parent
LITERAL = ("love_bombing_literal", "darvo_literal", "con_game_literal", "alignment_faking_literal",
           "sandbagging_literal", "intermittent_reward_literal")  # fmt: skip


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("predictions", type=Path, nargs="?")
    parser.add_argument("--set", default="dev", choices=["dev", "more", "test"])
    parser.add_argument("--prevalence", type=float, default=OWN)
    parser.add_argument("--shapes", action="store_true", help="by shape and strength too")
    arguments = parser.parse_args()
    folder = HERE / arguments.set
    truth, messages = read_lines(folder / "truth.jsonl"), read_lines(folder / "messages.jsonl")
    if arguments.predictions is not None:
        _show(arguments.predictions.name, score(truth, read_lines(arguments.predictions)), shapes=True)
        return
    _facts(truth, messages)
    for name, predictions in _ours(folder, truth, messages, arguments.prevalence):
        _show(name, score(truth, predictions), shapes=arguments.shapes)


def _facts(truth: Sequence[Json], messages: Sequence[Json]) -> None:
    kinds = ", ".join(f"{count} {kind}" for kind, count in Counter(row["kind"] for row in truth).most_common())
    people = speakers(messages)
    planted = sum(row["kind"] == "planted" for row in truth)
    print(f"{len(truth)} conversations ({kinds}), {len(messages)} messages")
    print(f"{len(people)} speakers with three messages or more, {planted / len(people):.0%} of them planted")
    print("cues that must not give plants away, AUC:")
    for name, value in cues(truth, messages).items():
        print(f"  {name:<34}{value:.2f}")


def _ours(
    folder: Path, truth: Sequence[Json], messages: Sequence[Json], prevalence: float
) -> Iterator[tuple[str, Iterable[Json]]]:
    if (folder / "readings.jsonl").exists():
        scored = rows(folder)
        _means(scored, truth, messages)
        yield "literal rules, strength .5", _named(scored, messages, LITERAL)
        named = list(_named(scored, messages, (), prevalence))
        _reliability(truth, named)
        yield "rules", named
    if (folder / "sequences.jsonl").exists():
        answers = read_lines(folder / "sequences.jsonl")
        _certainty(truth, answers)
        yield "sequence reader", read_shapes(answers, prevalence)


def read_shapes(answers: Iterable[Json], prevalence: float) -> Iterator[Json]:
    """The first shape of each answer with the product's confidence at this prevalence."""
    for answer in answers:
        for shape in answer["shapes"][:1]:
            sure = confidence(shape["certainty"], prevalence) if shape["certainty"] else None
            row = {"conversation": answer["conversation"], "agent": answer["agent"], "shape": shape["shape"]}
            yield row | {"confidence": sure or 0.0}


def _reliability(truth: Sequence[Json], named: Iterable[Json]) -> None:
    """Of findings with such a confidence, how many name the shape of a planted speaker."""
    shapes = _planted(truth)
    bands: dict[int, list[bool]] = defaultdict(list)
    for lead in named:
        if lead["confidence"] is not None:
            true = shapes.get((lead["conversation"], lead["agent"])) == one_name(lead["shape"])
            bands[min(4, int(5 * lead["confidence"]))].append(true)
    print("reliability of the rules' confidence, true of all findings:")
    for band, hits in sorted(bands.items()):
        print(f"  {band / 5:.1f} to {(band + 1) / 5:.1f}   {Share(sum(hits), len(hits))}")


def _certainty(truth: Sequence[Json], answers: Iterable[Json]) -> None:
    """Of readings this certain, how many name the shape of a planted speaker."""
    shapes = _planted(truth)
    levels: dict[int, list[bool]] = defaultdict(list)
    for answer in answers:
        for shape in answer["shapes"][:1]:
            true = shapes.get((answer["conversation"], answer["agent"])) == one_name(shape["shape"])
            levels[shape["certainty"]].append(true)
    print("reliability of the sequence reader's certainty, true of all readings that name a shape:")
    for level, hits in sorted(levels.items()):
        print(f"  {level} of 4       {Share(sum(hits), len(hits))}")


def _planted(truth: Sequence[Json]) -> dict[tuple[str, str | None], str]:
    """The shape of each planted speaker."""
    planted = (row for row in truth if row["kind"] == "planted")
    return {(row["conversation"], row.get("agent")): one_name(row["shape"]) for row in planted}


def _named(
    scored: Sequence[Row], messages: Sequence[Json], names: Sequence[str], prevalence: float | None = None
) -> Iterator[Json]:
    """What rules over the readings find, with the product's confidence; without a prevalence strength stands for it."""
    authors = {identity(row["conversation"], row["author"], row["role"]): row["author"] for row in messages}
    gives = frozenset({"traits", "indicators", "mechanisms"})
    rules = load_rules(names=names)
    findings = detect(scored, rules, gives=gives).findings
    for finding in with_confidence(findings, scored, rules, prevalence) if prevalence else findings:
        if prevalence and finding.confidence is None:
            continue
        for conversation in finding.conversations:
            yield {
                "conversation": conversation,
                "agent": authors[finding.agent],
                "shape": finding.pattern,
                "confidence": finding.confidence if prevalence else finding.strength,
            }


def _means(scored: Sequence[Row], truth: Sequence[Json], messages: Sequence[Json]) -> None:
    """How well a plain mean of readings separates planted speakers from the others."""
    people = speakers(messages)
    roles = {(row["conversation"], row["author"]): row["role"] for row in messages}
    planted = {(row["conversation"], row.get("agent")) for row in truth if row["kind"] == "planted"}
    values: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in scored:
        values[row.agent, row.conversation].append(row)
    print("means of a speaker's readings, AUC of planted against all others:")
    for name, traits in {"six negative traits": sorted(NEGATIVE_TRAITS)}.items():
        _line(name, traits, people, roles, planted, values)
    for trait in TRAITS:
        _line(trait, [trait], people, roles, planted, values)


def _line(
    name: str,
    traits: Sequence[str],
    people: Iterable[tuple[str, str]],
    roles: dict[tuple[str, str], str],
    planted: set[tuple[str, Any]],
    values: dict[tuple[str, str], list[Row]],
) -> None:
    means = {}
    for place in people:
        own = values[identity(*place, roles[place]), place[0]]
        scores = [score for row in own for trait in traits if (score := (row.traits or {}).get(trait)) is not None]
        means[place] = fmean(scores) if scores else 0.0
    area = auc([value for place, value in means.items() if place in planted],
                [value for place, value in means.items() if place not in planted])  # fmt: skip
    print(f"  {name:<34}{area:.2f}" if area is not None else f"  {name:<34}none")


def _show(name: str, result: Score, *, shapes: bool) -> None:
    print(f"{name} (confidence {CUT:g} and more)")
    print(f"  shapes named       {result.named}")
    print(f"  planted found      {result.spotted}")
    print(f"  innocent named in  {result.innocent} conversations, look-alikes {result.look_alike}")
    if shapes:
        for group in (result.by_strength, result.by_shape):
            for label, share in group.items():
                print(f"    {label:<38}{share}")


if __name__ == "__main__":
    main()
