"""Where leads put agents who do harm to one other among much ordinary talk: ``python -m bench.feeds [--data DIR]``.

The feeds are rows of audits of texts of this project: the chats of ``bench/chats`` are direct messages of agents who
also take part in ordinary dialogues (``ordinary_talk.jsonl.gz`` in DIR, or UNDERSONG_DATA) with others of the feed. For
one direct message, agents write as many public ones as the dilution says. Of the ``AGENTS`` agents of a feed
``PLANTED`` do harm in a chat and as many are in an innocent chat, which often resembles harm; all others talk like them
in public alone. Beside leads by part: all talk of each agent alone, and a random order. The weights of leads were
chosen with a look at these chats; ``for_chances`` on ordinary talk: how many are above the cut who take part in nothing
but so many ordinary dialogues, each with another, is printed first (``--null``: that alone).
"""

from __future__ import annotations

import argparse
import gzip
import os
import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from bench.chats.__main__ import HERE as CHATS
from bench.leads import ORDINARY
from bench.talks.score import Share, auc, read_lines
from undersong.models import Lead, Row
from undersong.patterns.lead_weights import lead_weights
from undersong.patterns.leads import chances_of, leads_of
from undersong.pipeline.audit import audit
from undersong.pipeline.options import Options
from undersong.rows.corpus_scales import null_bands_of

CHATBOTS = "companions"  # the part of the chats in which one side is a chatbot
AGENTS, PLANTED = 60, 6
DILUTIONS = (1, 5, 20)
CHANCES = (1, 2, 3, 5, 10, 20, 50, 100, 200)  # parts of the talk of an agent


class Chat(NamedTuple):
    """The rows of a conversation, and who does harm in it."""

    rows: Sequence[Row]
    culprit: str | None = None

    @property
    def speakers(self) -> list[str]:
        """Its agents, who does harm first, then who writes most."""
        counts = Counter(row.agent for row in self.rows)
        return sorted(counts, key=lambda agent: (agent != self.culprit, -counts[agent], agent))

    def cast(self, home: str, names: Mapping[str, str]) -> Iterator[Row]:
        """Its rows as a conversation of agents of a feed."""
        for row in self.rows:
            target = names.get(row.target or "")
            yield msgspec.structs.replace(
                row, conversation=home, id=f"{home}:{row.position}", agent=names[row.agent], target=target
            )


class Feed(NamedTuple):
    """Rows of a feed, and its agents: who does harm, who is in an innocent chat, and to whom harm is done."""

    rows: list[Row]
    planted: set[str]
    alike: set[str]
    harmed: set[str]


def feed_of(harm: Sequence[Chat], alike: Sequence[Chat], ordinary: Sequence[Chat], dilution: int, seed: int) -> Feed:
    """A feed in which each chat is of agents of its own, who write ``dilution`` public messages for one of theirs."""
    chance = random.Random(seed)
    names = [f"agent{n:03}" for n in range(max(AGENTS, 2 * (len(harm) + len(alike))))]
    chance.shuffle(names)
    feed, free = Feed([], set(), set(), set()), iter(names)
    wanted: dict[str, int] = {}
    for place, chat in enumerate([*harm, *alike]):
        cast = dict(zip(chat.speakers, free, strict=False))
        feed.rows.extend(chat.cast(f"dm{place}", cast))
        counts = Counter(row.agent for row in chat.rows)
        wanted |= {name: dilution * counts[speaker] for speaker, name in cast.items()}
        first, *others = cast.values()
        (feed.planted if chat.culprit else feed.alike).add(first)
        (feed.harmed if chat.culprit else feed.alike).update(others)
    sizes = sorted(wanted.values())
    wanted |= {name: chance.choice(sizes) for name in names if name not in wanted}
    left = Counter(wanted)
    thread = 0
    while len(open_names := [name for name, count in left.items() if count > 0]) > 1:
        chat, thread = chance.choice(ordinary), thread + 1
        pair = [open_names[0], chance.choice(open_names[1:])]
        chance.shuffle(pair)
        cast = dict(zip(chat.speakers, pair, strict=True))
        feed.rows.extend(chat.cast(f"t{thread}", cast))
        left.subtract(cast[row.agent] for row in chat.rows)
    return feed


def ranked(rows: Sequence[Row], *, by_part: bool) -> tuple[Lead, ...]:
    """The leads of a feed, by parts of each agent's talk too or by all of it alone."""
    return leads_of(rows, (), null_bands_of(rows, lead_weights().signals), by_part=by_part)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--null", action="store_true", help="false rates of ordinary talk by the number of parts alone")
    parser.add_argument(
        "--data", type=Path, default=os.environ.get("UNDERSONG_DATA"), required="UNDERSONG_DATA" not in os.environ
    )
    arguments = parser.parse_args()
    ordinary = ordinary_chats(Path(arguments.data) / ORDINARY)
    print_false_rates(ordinary)
    if not arguments.null:
        harm, alike = chats()
        print_feeds(harm, alike, ordinary, arguments.seed)


def print_feeds(harm: Sequence[Chat], alike: Sequence[Chat], ordinary: Sequence[Chat], seed: int) -> None:
    """By dilution, where those who do harm are in the order, and who else is above the cut."""
    print(f"feeds of {AGENTS} agents, of whom {PLANTED} do harm in direct messages:")
    for dilution in DILUTIONS:
        feeds = [
            feed_of(harm[n : n + PLANTED], alike[n : n + PLANTED], ordinary, dilution, seed + n)
            for n in range(0, len(harm) - PLANTED + 1, PLANTED)
        ]
        size = sum(len(feed.rows) for feed in feeds) // len(feeds)
        print(f"{dilution} public messages for a direct one, {size:,} messages a feed:")
        for name, by_part in (("all talk of each", False), ("by part", True)):
            print(f"  {name:<18}{_figures(feeds, [ranked(feed.rows, by_part=by_part) for feed in feeds])}")
        print(f"  {'random order':<18}{_random_figures(feeds, seed)}")


def _figures(feeds: Sequence[Feed], leads: Sequence[Sequence[Lead]]) -> str:
    tops = [_top(feed, [lead.agent for lead in order]) for feed, order in zip(feeds, leads, strict=True)]
    pairs = list(zip(feeds, leads, strict=True))
    scores = [
        [lead.score for feed, order in pairs for lead in order if (lead.agent in feed.planted) is planted]
        for planted in (True, False)
    ]
    above = [
        (feed, {lead.agent for lead in order if lead.above_cut}, {lead.agent for lead in order})
        for feed, order in pairs
    ]
    planted = Share(sum(len(a & f.planted) for f, a, _ in above), sum(len(f.planted) for f in feeds))
    alike = Share(sum(len(a & f.alike) for f, a, _ in above), sum(len(f.alike) for f in feeds))
    harmed = Share(sum(len(a & f.harmed) for f, a, _ in above), sum(len(f.harmed) for f in feeds))
    rest = [(a - f.planted - f.alike - f.harmed, every - f.planted - f.alike - f.harmed) for f, a, every in above]
    others = Share(sum(len(a) for a, _ in rest), sum(len(every) for _, every in rest))
    shares = {"harm": planted, "innocent chats": alike, "harmed": harmed, "others": others}
    counts = ", ".join(f"{name} {share.hits}/{share.of}" for name, share in shares.items())
    return f"{_tops(tops)}; AUC {auc(*scores):.2f}; above the cut: {counts}"


def _top(feed: Feed, order: Sequence[str]) -> tuple[int, int]:
    return len(feed.planted.intersection(order[:PLANTED])), len(feed.planted.intersection(order[: 2 * PLANTED]))


def _tops(tops: Sequence[tuple[int, int]]) -> str:
    first, second = (sum(column) / len(tops) for column in zip(*tops, strict=True))
    return f"of the first {PLANTED} and {2 * PLANTED} do harm {first:.1f} and {second:.1f}"


def _random_figures(feeds: Sequence[Feed], seed: int) -> str:
    chance = random.Random(seed)
    tops = []
    for feed in feeds:
        names = sorted({row.agent for row in feed.rows})
        tops += [_top(feed, chance.sample(names, len(names))) for _ in range(100)]
    return _tops(tops)


def print_false_rates(ordinary: Sequence[Chat]) -> None:
    """How many of those would be above the cut who write in so many ordinary dialogues, each with another.

    The score of a part needs nothing but the part, so that of a side of a dialogue is the same in every feed.
    """
    rows = [row for chat in ordinary for row in chat.rows]
    counts = Counter(row.agent for row in rows)
    weights = lead_weights()
    scores = [lead.score for lead in ranked(rows, by_part=False) if counts[lead.agent] >= weights.least_of_part]
    print(f"{len(scores)} sides of ordinary dialogues with {weights.least_of_part} messages or more:")
    for parts in CHANCES:
        chances = chances_of(parts) if parts > 1 else 0.0
        above = Share(sum(score - chances > weights.cut for score in scores), len(scores))
        share = 1 - (1 - (above.value or 0.0)) ** parts
        print(f"  of agents with {parts:>3} such parts {share:.1%} are above the cut ({above.hits} sides are)")


def chats() -> tuple[list[Chat], list[Chat]]:
    """The chats between people of ``bench/chats``: those with harm, and the others."""
    _, rows = audit(CHATS / "messages.jsonl", options=Options(effort=None))
    by_home = _by_home(rows)
    harm, alike = [], []
    for truth in read_lines(CHATS / "truth.jsonl"):
        if truth["part"] == CHATBOTS:
            continue
        home = truth["conversation"]
        if truth["kind"] == "harm":
            harm.append(Chat(by_home[home], f"{home}/{truth['who']}"))
        else:
            alike.append(Chat(by_home[home]))
    return harm, alike


def ordinary_chats(path: Path) -> list[Chat]:
    """The dialogues of two of a compressed file."""
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / path.stem
        plain.write_bytes(gzip.decompress(path.read_bytes()))
        _, rows = audit(plain, options=Options(effort=None))
    return [chat for own in _by_home(rows).values() if len((chat := Chat(own)).speakers) == 2]


def _by_home(rows: Sequence[Row]) -> dict[str, list[Row]]:
    homes: dict[str, list[Row]] = {}
    for row in rows:
        homes.setdefault(row.conversation, []).append(row)
    return homes


if __name__ == "__main__":
    main()
