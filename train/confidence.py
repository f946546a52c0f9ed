"""Fit what findings are worth: ``python -m train.confidence [--set bench/talks/dev] [--data DIR]``.

Writes ``undersong/data/rules/confidence.yaml``; same input, same bytes. Four parts:

readings    counts of what blind readers of whole sequences said of the speakers of a set of conversations
indicators  a logistic regression over the findings of rules with indicators on the readings of that set
scores      one over the findings of rules with limits on scores, on rough worlds (``bench.worlds``, seeds 1, 201 and
            202) and on the planted sets that lie beside DIR (``../bench/planted``)
sums        one over the findings of rules with sums of scores, on the same worlds
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from bench.planted import rows_of
from bench.talks.rows import agent as identity
from bench.talks.rows import rows as talk_rows
from bench.talks.score import one_name, read_lines, speakers
from bench.worlds.build import build_world
from bench.worlds.pool import load_vectors
from train.development import TRAIT_LABELS
from undersong.datafiles.yaml_loader import RULES
from undersong.models import Finding, Row
from undersong.patterns.catalog import load_rules
from undersong.patterns.detect import detect
from undersong.patterns.significance.confidence import FILE, LogisticWeights, ReadingCounts, rule_kind
from undersong.patterns.significance.finding_features import FEATURES, finding_features
from undersong.rows.jsonl import row_of

Json = dict[str, Any]
HEAD = """\
# What findings are worth, by `python -m train.confidence`; the features are those of
# undersong/patterns/significance/finding_features.py. `share` is the share of bad agents where a regression was fitted.
# Conversations: bench/talks/{name} (of indicators also bench/talks/more), which language models wrote for this project
# and language models read (docs/benchmark.md). Scores: rough worlds made of the score vectors of real posts
# (bench/worlds), and planted sets.
"""
ROUGH, QUIET, SEED = 80, 40, 1  # rough worlds with plants, without, and their seed
BUSY, TALKATIVE = 16, 3.0  # worlds of people who write three times as much, with plants and as many without
BUSY_SEEDS = {201: True, 202: False}  # their seeds, and whether there are plants
READ = 0.47  # share of their messages that are read
OF_TALK = ("strength", "rival", "bound", "public")  # of some hundred findings no more can be learnt
OF_WORLDS = tuple(name for name in FEATURES if name != "rival")  # rivals count by their odds, not their strength
RIDGE = 0.3  # scikit-learn's C
POSTS = Path(__file__).parent / "labels" / "post_findings.jsonl"
MORE = Path("bench/talks/more")  # further planted conversations, see docs/benchmark.md
OVERLAP = 0.5  # Jaccard index from which a finding names a plant, as in the scorer of the planted sets


class Labelled(NamedTuple):
    """Findings with their features and whether they are true; the bad agents among all of them."""

    patterns: list[str]
    features: list[dict[str, float]]
    true: list[bool]
    bad: int
    agents: int


def counted(folder: Path) -> ReadingCounts:
    """What the readers of a set said of its speakers, by certainty."""
    truth = {row["conversation"]: row for row in read_lines(folder / "truth.jsonl")}
    people = speakers(read_lines(folder / "messages.jsonl"))
    planted = {(name, row["agent"]) for name, row in truth.items() if row["kind"] == "planted"}
    right, wrong = Counter[int](), Counter[int]()
    for answer in read_lines(folder / "sequences.jsonl"):
        place = answer["conversation"], answer["agent"]
        for shape in answer["shapes"][:1]:
            true = place in planted and one_name(shape["shape"]) == one_name(truth[place[0]]["shape"])
            (right if true else wrong)[shape["certainty"]] += 1
    levels = range(1, 5)
    return ReadingCounts(
        planted=len(planted & people.keys()),
        innocent=len(people.keys() - planted),
        right=tuple(right[level] for level in levels),
        wrong=tuple(wrong[level] for level in levels),
    )


def of_talks(*folders: Path) -> Labelled:
    """The findings of rules with indicators on the readings of some sets of conversations."""
    return joined(*(_of_talks(folder) for folder in folders))


def _of_talks(folder: Path) -> Labelled:
    truth = {row["conversation"]: row for row in read_lines(folder / "truth.jsonl")}
    messages = read_lines(folder / "messages.jsonl")
    shapes = {}
    for row in messages:
        planted = truth[row["conversation"]]
        if planted["kind"] == "planted" and planted["agent"] == row["author"]:
            shapes[row["conversation"], identity(row["conversation"], row["author"], row["role"])] = planted["shape"]
    rows = talk_rows(folder)
    findings = detect(
        rows, [rule for rule in load_rules() if rule.file.variant_of and rule_kind(rule) == "indicators"]
    ).findings
    true = [
        one_name(each.pattern) == one_name(shapes.get((each.conversations[0], each.agent), "")) for each in findings
    ]
    patterns, features = [each.pattern for each in findings], finding_features(findings, rows)
    return Labelled(patterns, features, true, len(shapes), len(speakers(messages)))


def of_posts(data: Path) -> Labelled:
    """The findings of rules with indicators on real posts of agents, each called right or wrong by a reader of them.

    What the reader called arguable is left out. ``POSTS`` has the verdicts by agent, pattern and messages.
    """
    verdicts = {(row["agent"], row["pattern"], *row["message_ids"]): row["verdict"] for row in read_lines(POSTS)}
    with gzip.open(data / TRAIT_LABELS, "rt", encoding="utf-8") as lines:
        posts = [_post(json.loads(line), place) for place, line in enumerate(lines)]
    findings = detect(posts, [rule for rule in load_rules() if "indicators" in rule.needs]).findings
    bad = {row["agent"] for row in read_lines(POSTS) if row["verdict"] == "right"}
    labelled = Labelled([], [], [], len(bad), len({row.agent for row in posts}))
    for finding, features in zip(findings, finding_features(findings, posts), strict=True):
        verdict = verdicts.get((finding.agent, finding.pattern, *finding.message_ids))
        if verdict in ("right", "wrong"):
            labelled.patterns.append(finding.pattern)
            labelled.features.append(features)
            labelled.true.append(verdict == "right")
    return labelled


def _post(row: Json, place: int) -> Row:
    (message,), labels = row["messages"], row["labels"]
    cells = {
        "id": row["conversation_id"],
        "conversation": labels.get("submolt") or "moltbook",
        "agent": message["author"],
        "role": "agent",
        "time": message["ts"],
        "tier": "deep",
        "state": "scored",
        "traits": labels["traits"],
        "indicators": labels["indicators"],
    }
    return row_of(cells, place)


def joined(*parts: Labelled) -> Labelled:
    """Several labelled sets as one."""
    return Labelled(
        patterns=[name for part in parts for name in part.patterns],
        features=[row for part in parts for row in part.features],
        true=[value for part in parts for value in part.true],
        bad=sum(part.bad for part in parts),
        agents=sum(part.agents for part in parts),
    )


def of_worlds(worlds: Iterable[tuple[Json, Json]]) -> dict[str, Labelled]:
    """The findings of rules with scores alone on (messages, truth) of score worlds, by kind of rule."""
    rules = [rule for rule in load_rules() if rule_kind(rule) != "indicators"]
    kinds = {rule.hash: rule_kind(rule) for rule in rules}
    labelled = {kind: Labelled([], [], [], 0, 0) for kind in ("scores", "sums")}
    agents = planted = 0
    for world, truth in worlds:
        rows = rows_of(world)
        findings = detect(rows, rules).findings
        agents += len({row.agent for row in rows})
        planted += len({plant["agent"] for plant in truth["truth"]})
        unclear = {(each["agent"], each["pattern"]) for each in truth.get("ambiguous", ())}
        for finding, features in zip(findings, finding_features(findings, rows), strict=True):
            if (finding.agent.partition(":")[2], finding.pattern) not in unclear:
                part = labelled[kinds[finding.rule_hash]]
                part.patterns.append(finding.pattern)
                part.features.append(features)
                part.true.append(any(names(finding, plant) for plant in truth["truth"]))
    return {kind: part._replace(bad=planted, agents=agents) for kind, part in labelled.items()}


def names(finding: Finding, plant: Json) -> bool:
    """Whether a finding names a plant: agent, pattern, and over half of the messages that were read."""
    if (finding.agent.partition(":")[2], finding.pattern) != (plant["agent"], plant["pattern"]):
        return False
    read = set(plant["read_ids"])
    named = {each.partition(":")[2] for each in finding.message_ids} - (set(plant["message_ids"]) - read)
    return len(read & named) >= OVERLAP * len(read | named)


def fitted(labelled: Labelled, names: Sequence[str], *, offsets: bool) -> LogisticWeights:
    """A ridge logistic regression, its weights for features as they are (not standardised), to three decimals.

    Of ``patterns`` those that were true at least once: of another one nothing is known.
    """
    seen = zip(labelled.patterns, labelled.true, strict=True)
    patterns = sorted({name for name, true in seen if true})
    columns = [[row[name] for name in names] for row in labelled.features]
    kinds = [[pattern == each for each in patterns] if offsets else [] for pattern in labelled.patterns]
    table = np.hstack([np.array(columns, float), np.array(kinds, float).reshape(len(columns), -1)])
    scaler = StandardScaler().fit(table)
    model = LogisticRegression(C=RIDGE, max_iter=5000, tol=1e-8).fit(scaler.transform(table), labelled.true)
    weights = model.coef_[0] / scaler.scale_
    intercept = float(model.intercept_[0] - weights @ scaler.mean_)
    own = weights[len(names) :] if offsets else [0.0] * len(patterns)
    return LogisticWeights(
        share=round(labelled.bad / labelled.agents, 4),
        intercept=round(intercept, 3),
        weights={name: round(float(weight), 3) for name, weight in zip(names, weights, strict=False)},
        patterns={name: round(float(weight), 3) for name, weight in zip(patterns, own, strict=True)},
    )


def score_worlds(data: Path) -> Iterator[tuple[Json, Json]]:
    """The rough worlds, the planted sets, and rough worlds of busy people, as (messages, truth).

    Without the last nothing is learnt of how many matches come about by chance where somebody writes much.
    """
    vectors = load_vectors(data)
    for number in range(ROUGH + QUIET):
        yield build_world(SEED, number, vectors, READ, planted=number < ROUGH)
    for folder in sorted(path for path in (data.parent / "bench" / "planted").iterdir() if path.is_dir()):
        worlds, truths = (_packed(folder / f"{name}.jsonl.gz") for name in ("blind", "truth"))
        yield from zip(worlds, truths, strict=True)
    for seed, planted in BUSY_SEEDS.items():
        for number in range(BUSY):
            yield build_world(seed, number, vectors, READ, planted, TALKATIVE)


def _packed(path: Path) -> list[Json]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def main() -> None:
    """Count, fit and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", type=Path, default=Path("bench/talks/dev"))
    default = os.environ.get("UNDERSONG_DATA")
    parser.add_argument("--data", type=Path, default=default, required=default is None, help="labelled data")
    parser.add_argument("--reader", action="append", default=[], help="a judge whose answers sequences.jsonl holds")
    arguments = parser.parse_args()
    counts = counted(arguments.set)
    lines = ["readings:", f"  planted: {counts.planted}", f"  innocent: {counts.innocent}"]
    lines += [f"  {name}: {list(getattr(counts, name))}  # with certainty 1, 2, 3, 4" for name in ("right", "wrong")]
    lines += [f"  readers: {json.dumps(arguments.reader)}"] if arguments.reader else []
    talks, posts = of_talks(arguments.set, MORE), of_posts(arguments.data)
    by_indicators = fitted(joined(talks, posts), OF_TALK, offsets=False)
    worlds = of_worlds(score_worlds(arguments.data))
    parts = {kind: fitted(part, OF_WORLDS, offsets=True) for kind, part in worlds.items()}
    for name, weights in (parts | {"indicators": by_indicators}).items():
        lines += [f"{name}:", f"  share: {weights.share}", f"  intercept: {weights.intercept}"]
        lines += [f"  {key}: {json.dumps(getattr(weights, key))}" for key in ("weights", "patterns")]
    text = HEAD.format(name=arguments.set.name) + "\n".join(_wrapped(lines)) + "\n"
    (RULES / FILE).write_text(text, encoding="utf-8")
    print(text)


def _wrapped(lines: Sequence[str]) -> Iterator[str]:
    """Mappings with a line each, the way YAML is read most easily."""
    for line in lines:
        head, brace, rest = line.partition(": {")
        if not brace:
            yield line
            continue
        yield f"{head}:"
        yield from (f"    {name}: {value}" for name, value in json.loads("{" + rest).items())


if __name__ == "__main__":
    main()
