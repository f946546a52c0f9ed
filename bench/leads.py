"""How well leads rank planted speakers: ``python -m bench.leads [--data DIR]``.

An audit of bench/talks/dev with the offline judge and without a key; every speaker with three messages or more is
ranked. Beside the lead score: what a person has without it, and the leads over the marks of blind readers instead of
the offline judge. Intervals are 95 %, over resampled conversations. Weights and cut (``leads.yaml``) were chosen on
this set, so its figures flatter them; "another writer's cut" is chosen on four writers and applied to the fifth. DIR
(or UNDERSONG_DATA) has ``ordinary_talk.jsonl.gz``, in which nobody was planted: how many would be shown there.
"""

from __future__ import annotations

import argparse
import gzip
import os
import random
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.talks.rows import rows as reader_rows
from bench.talks.score import Share, auc, read_lines
from undersong.models import Lead, Row
from undersong.patterns.lead_weights import lead_weights
from undersong.patterns.leads import leads_of
from undersong.pipeline.audit import audit
from undersong.pipeline.options import Options

DEV = Path(__file__).parent / "talks" / "dev"
ORDINARY = "ordinary_talk.jsonl.gz"
FEWEST = 10  # speakers above a cut that is chosen
Scores = Mapping[str, float]


class Speakers(NamedTuple):
    """Agent → conversation, the planted agents, and conversation → writer."""

    homes: dict[str, str]
    planted: frozenset[str]
    writers: dict[str, str]

    def auc(self, scores: Scores, homes: Sequence[str] | None = None) -> float | None:
        """Planted agents against the others; ``homes`` may name conversations several times."""
        if homes is None:
            homes = sorted(set(self.homes.values()))
        by_home: dict[str, list[str]] = {}
        for agent, home in self.homes.items():
            by_home.setdefault(home, []).append(agent)
        chosen = [agent for home in homes for agent in by_home.get(home, ())]
        return auc([scores[each] for each in chosen if each in self.planted],
                   [scores[each] for each in chosen if each not in self.planted])  # fmt: skip

    def interval(self, scores: Scores, draws: int, seed: int) -> tuple[float, float]:
        """The 2.5th and 97.5th percentile of the AUC over resampled conversations."""
        homes, chance = sorted(set(self.homes.values())), random.Random(seed)
        values = (self.auc(scores, chance.choices(homes, k=len(homes))) for _ in range(draws))
        ranked = sorted(value for value in values if value is not None)
        return ranked[round(0.025 * (len(ranked) - 1))], ranked[round(0.975 * (len(ranked) - 1))]

    def top(self, scores: Scores, count: int) -> Share:
        """How many of the first are planted."""
        first = sorted(scores, key=lambda agent: (-scores[agent], agent))[:count]
        return Share(sum(agent in self.planted for agent in first), len(first))

    def above(self, scores: Scores, cut: float) -> Share:
        """How many of those above a cut are planted."""
        return self.top({agent: score for agent, score in scores.items() if score > cut}, len(scores))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", default="dev", choices=["dev", "test"], help="test: once a release")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--data", type=Path, default=os.environ.get("UNDERSONG_DATA"))
    arguments = parser.parse_args()
    folder = DEV.parent / arguments.set
    case, rows = audit(folder / "messages.jsonl", options=Options(effort=None))
    speakers = speakers_of(rows, case.leads, folder)
    count = len(speakers.homes)
    print(f"{count} speakers with three messages or more, {len(speakers.planted)} of them planted")
    print(f"{'':<26}AUC [95 %]           of the first 5, 10, 20 planted")
    leads = {lead.agent: lead.score for lead in case.leads}
    for name, scores in ranking(case.leads, rows, speakers, arguments.seed, folder).items():
        low, high = speakers.interval(scores, arguments.draws, arguments.seed)
        tops = ", ".join(str(speakers.top(scores, most).hits) for most in (5, 10, 20))
        print(f"{name:<26}{speakers.auc(scores):.3f} [{low:.2f}, {high:.2f}]    {tops}")
    cut = lead_weights().cut
    print(f"above the cut of {cut:g}: {speakers.above(leads, cut)} planted")
    print(f"lowest cut with half of them planted: {best_cut(leads, speakers)}")
    print(f"another writer's cut:     {transferred(leads, speakers)} planted")
    if arguments.data is not None:
        print(f"ordinary talk: {ordinary(Path(arguments.data) / ORDINARY)} above the cut")


def ordinary(path: Path) -> Share:
    """How many of the speakers of a compressed file are above the cut."""
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / path.stem
        plain.write_bytes(gzip.decompress(path.read_bytes()))
        ranked = audit(plain, options=Options(effort=None))[0].leads
    return Share(sum(lead.score > lead_weights().cut for lead in ranked), len(ranked))


def speakers_of(rows: Sequence[Row], leads: Sequence[Lead], folder: Path = DEV) -> Speakers:
    """The agents of the leads with the truth of the set."""
    truth = read_lines(folder / "truth.jsonl")
    authors = {each["id"]: each["author"] for each in read_lines(folder / "messages.jsonl")}
    culprits = {(each["conversation"], each.get("agent")) for each in truth if each["kind"] == "planted"}
    ranked = {lead.agent for lead in leads}
    return Speakers(
        homes={row.agent: row.conversation for row in rows if row.agent in ranked},
        planted=frozenset(row.agent for row in rows if (row.conversation, authors[row.id]) in culprits) & ranked,
        writers={each["conversation"]: each["writer"] for each in truth},
    )


def ranking(
    leads: Sequence[Lead], rows: Sequence[Row], speakers: Speakers, seed: int, folder: Path = DEV
) -> dict[str, Scores]:
    """Name → agent → score: the leads, what they are made of, and what a person has without them."""
    chance = random.Random(seed)
    own: dict[str, list[Row]] = {agent: [] for agent in speakers.homes}
    for row in rows:
        if row.agent in own:
            own[row.agent].append(row)

    def of(score: Callable[[list[Row]], float]) -> Scores:
        return {agent: score(messages) for agent, messages in own.items()}

    unread = [_unread(row) for row in rows]
    sources = dict.fromkeys(each.source for lead in leads if lead.kind != "message" for each in lead.evidence)
    parts = {source: _differences(leads, source) for source in sources}
    return {
        "leads": {lead.agent: lead.score for lead in leads},
        **parts,
        "no message scored": {lead.agent: lead.score for lead in leads_of(unread, ())},
        "marks of blind readers": {lead.agent: lead.score for lead in leads_of(_marked(rows, folder), ())},
        "random order": of(lambda _: chance.random()),
        "number of phrases": of(lambda messages: sum(row.total for row in messages)),
        "number of messages": of(len),
    }


def _differences(leads: Sequence[Lead], source: str) -> Scores:
    figures = {lead.agent: next((each for each in lead.evidence if each.source == source), None) for lead in leads}
    return {
        agent: 0.0 if each is None or each.compared_with is None else each.value - each.compared_with
        for agent, each in figures.items()
    }


def _unread(row: Row) -> Row:
    values: dict[str, Any] = {name: getattr(row, name) for name in row.__struct_fields__}
    return Row(**values | {"state": "unread", "traits": None, "signals": {}, "spans": {}, "scale": None})


def _marked(rows: Sequence[Row], folder: Path) -> list[Row]:
    """The blind readers' rows under the agents of the audit."""
    names = {row.id: row.agent for row in rows}
    marked = ({name: getattr(row, name) for name in row.__struct_fields__} for row in reader_rows(folder))
    return [Row(**values | {"agent": names[values["id"]]}) for values in marked]


def best_cut(scores: Scores, speakers: Speakers, *, least: int = FEWEST) -> float | None:
    """The lowest score above which, with ``least`` speakers or more, half are planted; None where there is none."""
    ranked = sorted(scores.values(), reverse=True)
    shares = ((cut, speakers.above(scores, cut)) for cut in ranked[least:])
    good = [cut for cut, share in shares if share.of >= least and 2 * share.hits >= share.of]
    return min(good, default=None)


def transferred(scores: Scores, speakers: Speakers, *, least: int = FEWEST) -> Share:
    """The planted among those above cuts that were chosen on the conversations of the other writers."""
    hits = of = 0
    for writer in sorted(set(speakers.writers.values())):
        own = {agent: score for agent, score in scores.items() if speakers.writers[speakers.homes[agent]] == writer}
        cut = best_cut({agent: score for agent, score in scores.items() if agent not in own}, speakers, least=least)
        share = speakers.above(own, cut) if cut is not None else Share(0, 0)
        hits, of = hits + share.hits, of + share.of
    return Share(hits, of)


if __name__ == "__main__":
    main()
