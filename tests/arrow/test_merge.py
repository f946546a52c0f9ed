"""What is global adds up: any parting of the items and any order of merging give what one pass gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from undersong.arrow.summaries import merged_summary, packed_summary, unpacked_summary
from undersong.models import TRAITS, Finding, Indicator, Message, Row
from undersong.patterns.detect import SearchCounts
from undersong.patterns.language.inputs import CorpusInputs, available_inputs
from undersong.patterns.nomination import SequenceEvidence, nominate
from undersong.patterns.significance.estimate import HypothesisFamily, false_discovery
from undersong.routing.budget import Census, DemandHistogram, within_share
from undersong.routing.lookback import LookBackIndex
from undersong.rows.corpus_scales import NullBandCounter, PercentileRanks

T = TypeVar("T")
START = datetime(2026, 1, 1, tzinfo=UTC)
score = st.integers(0, 1000).map(lambda step: step / 1000)
name = st.sampled_from("abcd")


@st.composite
def parted(draw: Any, items: st.SearchStrategy[T]) -> tuple[list[T], list[list[T]]]:
    """Some items, and the same in drawn parts in a drawn order."""
    every = draw(st.lists(items, max_size=30))
    places = draw(st.lists(st.integers(0, 4), min_size=len(every), max_size=len(every)))
    order = draw(st.permutations(range(len(every))))
    parts: list[list[T]] = [[] for _ in range(5)]
    for place in order:
        parts[places[place]].append(every[place])
    return every, draw(st.permutations(parts))


def merged(parts: Sequence[Sequence[T]], make: Callable[[], Any], add: Callable[[Any, T], object]) -> Any:
    """The summary of parts that were counted one by one, through the bytes in which they travel."""
    several = []
    for part in parts:
        several.append(make())
        for item in part:
            add(several[-1], item)
    return merged_summary(several)


rows = st.builds(
    Row,
    id=name,
    conversation=name,
    position=st.integers(0, 3),
    agent=name,
    state=st.sampled_from(["scored", "scored", "unread", "failed"]),
    branch=st.sampled_from([None, None, "b"]),
    scale=st.sampled_from(["level", "rank", None]),
    traits=st.none() | st.dictionaries(st.sampled_from(TRAITS), st.none() | score),
    signals=st.dictionaries(st.sampled_from(["x", "y", "z"]), score),
    indicators=st.none() | st.lists(st.builds(Indicator, id=st.sampled_from(["I", "J"]))).map(tuple),
    width=st.sampled_from(["none", "message"]),
    sampled=st.booleans(),
    tier=st.sampled_from(["standard", "deep", None]),
    observed=st.sampled_from(["yes", "unknown"]),
    triage=st.none() | score,
    total=st.integers(0, 4),
)


@given(parted(rows))
def test_ranks(corpus: tuple[list[Row], list[list[Row]]]) -> None:
    every, parts = corpus
    one, several = (merged(each, PercentileRanks, PercentileRanks.add) for each in ([every], parts))
    ranked = [row for row in every if row.scale == "rank" and row.traits is not None]
    assert [one.of(row) for row in every] == [several.of(row) for row in every]
    for row in ranked:
        for trait, score in (row.traits or {}).items():
            scores = sorted(own for each in ranked if (own := (each.traits or {}).get(trait)) is not None)
            rank = (one.of(row).traits or {})[trait]
            assert rank == (None if score is None else middle(scores, score))


def middle(scores: list[float], score: float) -> float:
    """The share of scores below, the same ones counting half."""
    return round((scores.index(score) + scores.count(score) / 2) / len(scores), 3)


@given(parted(rows))
def test_null_bands(corpus: tuple[list[Row], list[list[Row]]]) -> None:
    every, parts = corpus
    names = frozenset({"x", "y"})

    def add(bands: NullBandCounter, row: Row) -> None:
        bands.add(row, names)

    assert merged([every], NullBandCounter, add).bands() == merged(parts, NullBandCounter, add).bands()


@given(parted(rows))
def test_the_census_of_what_was_missed(corpus: tuple[list[Row], list[list[Row]]]) -> None:
    every, parts = corpus
    assert merged([every], Census, Census.add).missed() == merged(parts, Census, Census.add).missed()


@given(parted(rows))
def test_the_inputs_of_rules(corpus: tuple[list[Row], list[list[Row]]]) -> None:
    every, parts = corpus
    one, several = (merged(each, CorpusInputs, CorpusInputs.add) for each in ([every], parts))
    assert vars(one) == vars(several)
    read = [row for row in every if row.state == "scored" and row.branch is None]
    wanted = {"manipulation", "ethos", "indicators", "tier", "triage", "signals:x", "loops", "apologies"}
    assert available_inputs(read, wanted) & several.present >= wanted & several.present
    assert wanted & several.present >= available_inputs(read, wanted) - {"tier"} | (several.present & {"tier"})


levels = st.tuples(st.integers(0, 5005), score)


@given(parted(levels), st.integers(0, 5), st.sampled_from([0.0, 0.3, 0.45, 1.0]))
def test_routing_demand_the_budget_and_the_audit_sample(
    corpus: tuple[list[tuple[int, float]], list[list[tuple[int, float]]]], least: int, share: float
) -> None:
    every, parts = corpus

    def add(demand: DemandHistogram, item: tuple[int, float]) -> None:
        demand.add(np.array([item[0]], dtype=np.int16), np.array([item[1]]))

    one, several = (merged(each, lambda: DemandHistogram(least), add) for each in ([every], parts))
    cut = within_share(one, share)
    assert within_share(several, share) == cut
    assert several.sample_rate(cut, 0.01) == one.sample_rate(cut, 0.01)
    assert list(several.levels()) == list(one.levels())


@st.composite
def threads(draw: Any) -> tuple[str, list[tuple[int, str, str, int, bool, float]]]:
    """A conversation of directed messages: place, agent, target, hour, whether it is flagged, triage."""
    size = draw(st.integers(1, 4))
    message = st.tuples(name, name, st.integers(0, 3), st.booleans(), score)
    return draw(st.uuids()).hex, [(place, *draw(message)) for place in range(size)]


@given(parted(threads()))
def test_earlier_messages_to_the_same_target(corpus: tuple[list[Any], list[list[Any]]]) -> None:
    every, parts = corpus

    def add(index: LookBackIndex, thread: Any) -> None:
        conversation, messages = thread
        for place, agent, target, hour, flagged, triage in messages:
            time = START + timedelta(hours=hour)
            message = Message(
                id=f"{conversation}{place}", conversation=conversation, position=place, author=agent, agent=agent,
                role="agent", text="x", target=target, time=time,
            )  # fmt: skip
            index.add(conversation, place, message, flagged=flagged, score=None if flagged else triage)

    def resolved(each: Sequence[Sequence[Any]]) -> Any:
        return merged(each, lambda: LookBackIndex(2), add).resolve(DemandHistogram())

    assert resolved([every]) == resolved(parts)


@given(parted(st.integers(1, 50).map(lambda n: n / 50)), st.integers(0, 20))
def test_false_discovery(corpus: tuple[list[float], list[list[float]]], untested: int) -> None:
    every, parts = corpus
    family = len(every) + untested
    several = merged_summary([HypothesisFamily(len(part), part) for part in parts])
    several.merge(HypothesisFamily(untested))
    assert [several.q_values()[value] for value in every] == false_discovery(every, family)
    for value in every:  # Benjamini and Hochberg, as it is written down
        ranks = sorted(every)
        steps = [each * family / rank for rank, each in enumerate(ranks, 1) if each >= value]
        assert several.q_values()[value] == min(1.0, *steps)


@given(parted(st.tuples(st.integers(0, 5), st.integers(0, 5), st.lists(name, max_size=6))))
def test_the_outcome_of_a_rule(corpus: tuple[list[Any], list[list[Any]]]) -> None:
    every, parts = corpus

    def counted(items: Sequence[Any]) -> SearchCounts:
        return sum((counts(item) for item in items), SearchCounts())

    def counts(item: Any) -> SearchCounts:
        agents = tuple(sorted(set(item[2]))[:3])
        return SearchCounts(partitions=item[0], findings=item[1], gave_up=len(item[2]), agents=agents)

    assert counted(every) == sum((counted(part) for part in parts), SearchCounts())


@given(parted(rows), st.integers(0, 4))
@settings(deadline=None)
def test_which_sequences_are_nominated(corpus: tuple[list[Row], list[list[Row]]], small: int) -> None:
    every, _ = corpus
    sequences: dict[tuple[str, str], list[Row]] = {}
    for row in every:
        sequences.setdefault((row.agent, row.conversation), []).append(row)
    findings: list[Finding] = []
    one = nominate(every, findings, seed=3, small=small)
    parts = [SequenceEvidence(own, findings) for own in sequences.values()]
    chosen = merged_summary(parts or [SequenceEvidence((), ())]).chosen(3, small)
    assert [(each.agent, each.conversation) for each in one] == list(chosen)


@given(parted(rows))
@settings(max_examples=20)
def test_summaries_travel_as_bytes(corpus: tuple[list[Row], list[list[Row]]]) -> None:
    from undersong.pipeline.partwise import ScoredPart

    every, parts = corpus

    def make() -> ScoredPart:
        return ScoredPart(frozenset({"x", "y"}))

    one: Any = merged([every], make, ScoredPart.add)
    travelled: Any = [unpacked_summary(packed_summary(merged([part], make, ScoredPart.add))) for part in parts]
    several: Any = merged_summary(travelled)
    assert several.bands.bands() == one.bands.bands()
    assert several.census.missed() == one.census.missed()
    assert (several.states, several.tiers, several.available) == (one.states, one.tiers, one.available)
    assert [several.ranks.of(row) for row in every] == [one.ranks.of(row) for row in every]
