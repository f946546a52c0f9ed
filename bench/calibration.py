"""Is `chance` valid, and what does `q` let through: ``python bench/calibration.py --data DIR [--draws N]``.

DIR holds folders with ``blind.jsonl.gz`` and ``truth.jsonl.gz``: worlds of agents, scored messages, planted patterns.

shuffled: the scores of every agent are shuffled among its read messages, so that no order means anything. Over all
pairs of a rule and a sequence that some order could match (those without a match count as 1) the share with chance ≤ α
must not exceed α; nor may a larger share than α of the worlds hold any finding with q ≤ α, for each would be false. The
pairs of one agent hang together: its public messages are in the sequence of each of its targets. So an agent in one
shuffling is the unit, and the 95 % interval is that of as many independent pairs as these units are worth
(``shares.share``). Of so many intervals one in forty lies above by accident: ``--rule NAME --repeats N`` looks at one
rule again in N shufflings, each with its own seed.

planted: what a reader gets who keeps the findings with chance or q no higher than a limit. A finding is true where
truth names a pattern of this agent and its messages agree (Jaccard ≥ .5 over read rows). q is told twice: with each
world as a run of its own, and with all worlds of a set in one run. Chance is the same in both.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import msgspec
from planted import World, _lines, _load, rows_of
from shares import Group, share, together

from undersong.models import Finding, Row
from undersong.patterns.catalog import load_rules
from undersong.patterns.detect import detect
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.language.fields import MESSAGE_ATTRIBUTES
from undersong.patterns.reference.partitions import timelines
from undersong.patterns.significance import ResamplingConfig
from undersong.patterns.significance.estimate import estimate_significance, false_discovery
from undersong.patterns.significance.necessary_conditions import possible_pairs
from undersong.routing.budget import clopper_pearson

ALPHAS = (0.01, 0.05, 0.2)
LIMITS = (0.05, 0.1, 0.2)
CHANCES = (0.0005, 0.001, 0.01, 0.05, 0.2)


class Judged(NamedTuple):
    """A finding, what it is by the truth, and its q with all worlds of its set in one run."""

    finding: Finding
    what: str
    q_of_set: float


Shares = dict[str, list[Group]]  # per rule: of each agent in each shuffling its pairs


def main() -> None:
    """Print both tables."""
    arguments = _arguments()
    rules = load_rules(names=arguments.rule)
    folders = sorted(path for path in arguments.data.iterdir() if (path / "blind.jsonl.gz").exists())
    if arguments.part != "planted":
        began = time.process_time()
        shares: Shares = defaultdict(list)
        least: list[float] = []
        for folder in folders:
            for world in _some(folder, arguments.worlds):
                for number in range(arguments.repeats):
                    rows = shuffled(rows_of(world), f"{arguments.seed}:{number}")
                    seed = arguments.seed + number
                    least.append(
                        add(shares, rows, rules, ResamplingConfig(draws=arguments.draws, replicas=0, seed=seed))
                    )
        show_shares(shares, arguments)
        show_worlds(least)
        print(f"{time.process_time() - began:.0f} s of CPU\n")
    if arguments.part != "shuffled":
        began = time.process_time()
        show_planted(folders, rules, arguments)
        print(f"{time.process_time() - began:.0f} s of CPU")


def shuffled(rows: Sequence[Row], seed: str) -> list[Row]:
    """What every agent said, shuffled among its read rows; time, target, tier and unread rows stay."""
    places: dict[str, list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        if row.state == "scored":
            places[row.agent].append(place)
    result = list(rows)
    for agent, own in places.items():
        words = random.Random(hashlib.sha256(f"{seed}:{agent}".encode()).digest()).sample(own, len(own))
        for place, other in zip(own, words, strict=True):
            fields = {name: getattr(rows[other], name) for name in MESSAGE_ATTRIBUTES}
            result[place] = msgspec.structs.replace(rows[place], **fields)
    return result


def add(shares: Shares, rows: Sequence[Row], rules: Sequence[PatternRule], effort: ResamplingConfig) -> float:
    """The pairs of each agent of one world, and how many have a chance at or under each α; returns the least q."""
    sizes = {rule.id: Counter[str]() for rule in rules}
    for timeline in timelines(rows):
        for rule in rules:
            sizes[rule.id][timeline.agent] += possible_pairs(rule, (timeline,))
    chosen = {agent for size in sizes.values() for agent, count in size.items() if count}
    chosen_rows = [row for row in rows if row.agent in chosen]
    detection = detect(chosen_rows, rules)
    findings = estimate_significance(detection.findings, detection.outcomes, chosen_rows, rules, effort).findings
    values = {_pair(each): 1.0 if each.chance is None else each.chance for each in findings}
    for rule in rules:
        for agent in sorted(chosen):
            own = [value for (name, by, _), value in values.items() if (name, by) == (rule.id, agent)]
            under = {alpha: sum(value <= alpha for value in own) for alpha in ALPHAS}
            shares[rule.id].append(Group(sizes[rule.id][agent], under))
    return min((1.0 if each.q is None else each.q for each in findings), default=1.0)


def show_shares(shares: Shares, arguments: argparse.Namespace) -> None:
    """Share of pairs with chance ≤ α, per rule and over all."""
    shufflings = f"{arguments.repeats} shufflings, up to {arguments.draws} draws, seed {arguments.seed}"
    print(f"scores shuffled within agents: {shufflings}; share [95 %] ×design effect")
    print(f"{'rule':22} {'pairs':>7}" + "".join(f"   {f'≤ {alpha}':33}" for alpha in ALPHAS))
    everything = [together(parts, ALPHAS) for parts in zip(*shares.values(), strict=True)]
    counted = {name: groups for name, groups in shares.items() if any(group.tests for group in groups)}
    for name, groups in (*counted.items(), ("all", everything)):
        cells = []
        for alpha in ALPHAS:
            estimate = share(groups, alpha)
            verdict = "ok" if estimate.low <= alpha else "TOO MANY"
            interval = f"[{estimate.low:.4f} {estimate.high:.4f}] ×{estimate.design_effect:.1f}"
            cells.append(f"   {estimate.value:.4f} {interval:22} {verdict:8}")
        print(f"{name:22} {sum(group.tests for group in groups):7}" + "".join(cells).rstrip())
    print(f"{len(shares) - len(counted)} rules had no pair that some order could match")


def show_worlds(least: Sequence[float]) -> None:
    """In how many shuffled worlds q believed anything: there every belief is false, so at most in the share it says."""
    for limit in LIMITS:
        estimate = share([Group(1, {limit: int(value <= limit)}) for value in least], limit)
        print(
            f"worlds with any q ≤ {limit}: {estimate.hits} of {estimate.tests} [{estimate.low:.3f} {estimate.high:.3f}]"
        )


def show_planted(folders: Sequence[Path], rules: Sequence[PatternRule], arguments: argparse.Namespace) -> None:
    """Precision and recall of the findings that pass each filter."""
    effort = ResamplingConfig(draws=arguments.draws, replicas=arguments.replicas, seed=arguments.seed)
    judged: list[Judged] = []
    truth: list[World] = []
    families: list[int] = []
    for folder in folders:
        worlds = _some(folder, arguments.worlds)
        truth_by_world = {world["world_id"]: world for world in _lines(folder / "truth.jsonl.gz")}
        findings, sizes = [], []
        for world in worlds:
            rows = rows_of(world)
            detection = detect(rows, rules)
            weighed = estimate_significance(detection.findings, detection.outcomes, rows, rules, effort)
            findings += [(each, what_of(each, truth_by_world[world["world_id"]])) for each in weighed.findings]
            sizes.append(weighed.family)
        together = in_one_run([finding for finding, _ in findings], sum(sizes))
        judged += [Judged(each, what, q) for (each, what), q in zip(findings, together, strict=True)]
        truth += [truth_by_world[world["world_id"]] for world in worlds]
        families += sizes
    planted = sum(len(world["truth"]) for world in truth)
    sizes_told = f"{fmean(families):.0f} pairs a world, {sum(families) / len(folders):.0f} a set"
    print(f"planted: {len(truth)} worlds, {planted} patterns, {len(judged)} findings, {sizes_told}")
    print(f"up to {arguments.draws} draws, {arguments.replicas} replicas, seed {arguments.seed}")
    print(
        f"{'filter':18} {'findings':>8} {'true':>5} {'false':>6}  by order   imitation  other   recall     false share"
    )
    for name, passed in _filters(judged, stability=arguments.replicas > 0):
        _show_filter(name, passed, planted)
    _show_patterns(judged, truth)
    _show_scorer(judged, truth, arguments)


def in_one_run(findings: Sequence[Finding], family: int) -> list[float]:
    """The q of findings of several worlds had they been one run; chance does not depend on it."""
    chances = {_pair(each): 1.0 if each.chance is None else each.chance for each in findings}
    corrected = dict(zip(chances, false_discovery(list(chances.values()), family), strict=True))
    return [corrected[_pair(each)] for each in findings]


def _pair(finding: Finding) -> tuple[str, str, str | None]:
    return finding.pattern, finding.agent, finding.target


def what_of(finding: Finding, world: World) -> str:
    """``true ID``, ``ambiguous``, ``order`` (a hard negative whose order or extent was broken), ``imitation`` or
    ``other``.
    """
    world_id, _, agent = finding.agent.partition(":")
    named = {name.partition(":")[2] for name in finding.message_ids}
    for planted in world["truth"]:
        if (planted["agent"], planted["pattern"]) == (agent, finding.pattern):
            wanted = set(planted["read_ids"])
            matched = named - (set(planted["message_ids"]) - wanted)
            if 2 * len(wanted & matched) >= len(wanted | matched):
                return f"true {world_id}:{agent}:{finding.pattern}"
    if any((each["agent"], each["pattern"]) == (agent, finding.pattern) for each in world["ambiguous"]):
        return "ambiguous"
    own = (agent, finding.pattern)
    kinds = {each["kind"] for each in world["hard_negatives"] if (each["agent"], each["pattern"]) == own}
    if kinds & {"shuffled", "reversed"}:
        return "order"
    return "imitation" if kinds else "other"


def _filters(judged: Sequence[Judged], *, stability: bool) -> Iterator[tuple[str, list[str]]]:
    yield "none", [each.what for each in judged]
    for limit in LIMITS:
        yield f"q of world ≤ {limit}", [each.what for each in judged if _q(each) <= limit]
    for limit in LIMITS:
        yield f"q of set ≤ {limit}", [each.what for each in judged if each.q_of_set <= limit]
    for limit in CHANCES:
        yield f"chance ≤ {limit}", [each.what for each in judged if (each.finding.chance or 0.0) <= limit]
    for least in (0.5, 0.8) if stability else ():
        yield f"stability ≥ {least}", [each.what for each in judged if (each.finding.stability or 0.0) >= least]


def _q(judged: Judged) -> float:
    return 1.0 if judged.finding.q is None else judged.finding.q


def _show_filter(name: str, passed: Sequence[str], planted: int) -> None:
    counts = Counter(what.split()[0] for what in passed)
    false = counts["order"] + counts["imitation"] + counts["other"]
    recalled = len({what for what in passed if what.startswith("true")})
    share = false / max(1, false + counts["true"])
    low, high = clopper_pearson(false, false + counts["true"])
    print(
        f"{name:18} {len(passed):8} {counts['true']:5} {false:6}  {counts['order']:8}  {counts['imitation']:10} "
        f"{counts['other']:6}   {recalled / max(1, planted):.3f}      {share:.3f} [{low:.3f} {high:.3f}]"
    )


def _show_patterns(judged: Sequence[Judged], truth: Sequence[World]) -> None:
    columns = {"none": 1.0, "≤ .001": 0.001, "≤ .01": 0.01, "≤ .05": 0.05, "≤ .2": 0.2}
    print(f"{'recall by chance':22}" + "".join(f"{name:>8}" for name in columns))
    for pattern in sorted({each["pattern"] for world in truth for each in world["truth"]}):
        planted = sum(each["pattern"] == pattern for world in truth for each in world["truth"])
        true = [each for each in judged if each.finding.pattern == pattern and each.what.startswith("true")]
        counts = [len({e.what for e in true if (e.finding.chance or 0.0) <= limit}) for limit in columns.values()]
        print(f"{pattern:22}" + "".join(f"{count / planted:8.2f}" for count in counts))


def _show_scorer(judged: Sequence[Judged], truth: Sequence[World], arguments: argparse.Namespace) -> None:
    """The figures of the planted sets' own scorer, where it is there, for every filter by q of the world."""
    path = arguments.data.parent / "score_planted.py"
    if not path.exists():
        return
    scorer = _load(path)
    for limit in (1.0, *LIMITS):
        figures = scorer.score(truth, [_prediction(each.finding) for each in judged if _q(each) <= limit])
        recall = " ".join(f"{name} {value:.2f}" for name, value in figures["recall_by_difficulty"].items())
        print(
            f"scorer, q ≤ {limit}: macro F1 {figures['macro_f1']:.3f}, recall {recall}, hard negatives fired "
            f"{figures['hard_negative_rate']:.3f}, false alarms {figures['false_alarms_per_1000_messages']:.2f}"
        )


def _prediction(finding: Finding) -> World:
    world_id, _, agent = finding.agent.partition(":")
    ids = [name.partition(":")[2] for name in finding.message_ids]
    common = {"world_id": world_id, "agent": agent, "pattern": finding.pattern}
    return common | {"message_ids": ids, "strength": finding.strength}


def _some(folder: Path, most: int) -> list[World]:
    return list(_lines(folder / "blind.jsonl.gz"))[: most or None]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("UNDERSONG_DATA")
    parser.add_argument("--data", type=Path, default=default, required=default is None, help="folder of planted sets")
    parser.add_argument("--part", choices=("both", "shuffled", "planted"), default="both")
    parser.add_argument("--draws", type=int, default=999, help="shuffles per sequence, at most")
    parser.add_argument("--replicas", type=int, default=50, help="noisy replicas per sequence, for the planted part")
    parser.add_argument("--repeats", type=int, default=1, help="how often each world is shuffled")
    parser.add_argument("--rule", action="append", default=[], help="only these rules, also those that are off")
    parser.add_argument("--worlds", type=int, default=0, help="only the first so many worlds of each set")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
