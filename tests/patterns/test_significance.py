"""Weighing: every finding gets its numbers, from its own sequence and the seed, and the run decides only q."""

from __future__ import annotations

import random

import msgspec
import pytest

from undersong.models import TRAITS, Finding, Row, encode
from undersong.patterns.catalog import all_rules, load_rules, named
from undersong.patterns.detect import detect
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.reference.partitions import timelines
from undersong.patterns.significance import ResamplingConfig
from undersong.patterns.significance.estimate import Significance, estimate_significance
from undersong.patterns.significance.necessary_conditions import possible_pairs
from undersong.patterns.tools.rule_tests import table
from undersong.report.narrative import basis_words, certainty_words

LOVE_BOMBING = named(all_rules(), "love_bombing")
COURTSHIP = """
    id who     day conversation compassion goodwill manipulation
    1  kira>bo 0   t            .9  .9  .1
    2  kira    1   u            .85 .8  .1
    x  kira>bo 2   t            .5  .5  .1
    3  kira>bo 2   t            ?   ?   ?
    4  kira>bo 2   t            .9  .85 .2
    5  kira>bo 3   t            .9  .9  .1
    6  kira>bo 3   t            .8  .9  .1
    7  kira>bo 4   t            .1  .2  .8
    8  kira>bo 4   t            .1  .1  .9
    9  kira>bo 4   t            .1  .2  .9
"""
LONG = COURTSHIP + "".join(f"    w{day} kira>bo {day} t .5 .5 .1\n" for day in range(5, 15))
EFFORT = ResamplingConfig(draws=199, replicas=20)


def weighed(
    rows: list[Row], rules: tuple[PatternRule, ...] = (LOVE_BOMBING,), effort: ResamplingConfig = EFFORT
) -> Significance:
    detection = detect(rows, rules)
    return estimate_significance(detection.findings, detection.outcomes, rows, rules, effort)


def test_a_finding_says_how_sure_it_is() -> None:
    (finding,) = weighed(table(LONG)).findings
    assert finding.shuffles is not None
    strong, drawn = finding.shuffles
    assert finding.chance == (1 + strong) / (1 + drawn) < 0.1
    assert finding.q is not None
    assert finding.q >= finding.chance
    assert (finding.replicas, 0 <= (finding.stability or 0) <= 1) == (20, True)


def test_the_same_seed_gives_the_same_bytes_and_another_does_not() -> None:
    first, again = (weighed(table(LONG)).findings for _ in range(2))
    assert [encode(each) for each in first] == [encode(each) for each in again]
    other = {weighed(table(LONG), effort=msgspec.structs.replace(EFFORT, seed=seed)).findings for seed in range(4)}
    assert len(other) > 1


def test_other_agents_change_only_q() -> None:
    rows = table(LONG)
    strangers = [msgspec.structs.replace(r, agent=f"x{n}", id=f"x{n}{r.id}") for n in range(3) for r in rows]
    (alone,) = weighed(rows).findings
    (among,) = (each for each in weighed(rows + strangers).findings if each.agent == "kira")
    assert among == alone
    assert (among.chance, among.stability) == (alone.chance, alone.stability)
    assert among.q != alone.q


def test_the_order_of_the_rows_and_their_ids_change_no_number() -> None:
    rows = table(LONG)
    mixed = random.Random(1).sample(rows, len(rows))
    assert weighed(mixed) == weighed(rows)
    renamed = [msgspec.structs.replace(row, id=f"z{place:03}") for place, row in enumerate(rows)]
    assert numbers(weighed(renamed)) == numbers(weighed(rows))


def numbers(result: Significance) -> list[tuple[object, ...]]:
    return [(each.chance, each.q, each.stability, each.shuffles, each.replicas) for each in result.findings]


def test_q_is_outside_equality_and_id() -> None:
    (finding,) = weighed(table(LONG)).findings
    other = msgspec.structs.replace(finding, q=0.9)
    assert (other == finding, hash(other) == hash(finding), other.finding_id == finding.finding_id) == (True,) * 3
    assert msgspec.structs.replace(finding, chance=0.9) != finding
    assert finding != finding.finding_id


def test_nothing_is_computed_that_was_not_asked_for() -> None:
    (finding,) = weighed(table(LONG), effort=ResamplingConfig(draws=0, replicas=0)).findings
    assert (finding.chance, finding.q, finding.stability, finding.shuffles, finding.replicas) == (None,) * 5
    (finding,) = weighed(table(LONG), effort=ResamplingConfig(draws=99, replicas=0)).findings
    assert finding.chance is not None
    assert finding.stability is None


def test_a_finding_is_weighed_in_its_own_sequence() -> None:
    timed = table(LONG)
    untimed = [msgspec.structs.replace(r, time=None, conversation="w", id=f"u{r.id}") for r in timed]
    both = [msgspec.structs.replace(r, target="al" if r.target else None, id=f"a{r.id}") for r in timed if r.target]
    rows = timed + untimed + both
    findings = {(each.target, each.conversations[0]): each for each in weighed(rows).findings}
    assert set(findings) == {("bo", "t"), ("al", "t"), ("bo", "w")}
    assert all(each.chance is not None and each.stability is not None for each in findings.values())
    (alone,) = weighed(untimed).findings
    assert numbers_of(findings["bo", "w"]) == numbers_of(alone)


def numbers_of(finding: Finding) -> tuple[object, ...]:
    return finding.chance, finding.stability, finding.shuffles


def test_the_family_is_every_rule_that_ran() -> None:
    rows, rules = table(LONG), load_rules()
    result = weighed(rows, rules)
    outcomes = detect(rows, rules).outcomes  # these rows have no tiers and no indicators, so that some rules cannot run
    able = {outcome.pattern for outcome in outcomes if outcome.status == "ran"}
    ran = [rule for rule in rules if rule.id in able]
    assert 1 < len(ran) < len(rules)
    assert result.family == sum(possible_pairs(rule, timelines(rows)) for rule in ran)
    assert result.tested == len({finding.rule_hash for finding in result.findings}) > 0  # one sequence, rule by rule


def test_words_tell_the_counts_and_what_was_left_out() -> None:
    (plain,) = detect(table(LONG), [LOVE_BOMBING]).findings
    unmeasured = "a lead: how often such a finding is true was not measured"
    assert certainty_words(plain) == (unmeasured, "chance, q, stability: not computed in this run")
    finding = msgspec.structs.replace(plain, chance=0.004, shuffles=(3, 999), q=0.04, stability=0.94, replicas=50)
    _, chance, q, stability = certainty_words(finding)
    assert "in 3 of 999 shuffles" in chance
    assert "(chance 0.004)" in chance
    assert "q 0.04: if you act on all findings" in q
    assert "at most about 4 % of them to be order by chance" in q
    assert "in 47 of 50 replicas" in stability


@pytest.mark.parametrize(
    ("value", "shown"), [(0.5, "0.5"), (0.04, "0.04"), (0.01, "0.01"), (0.001, "0.001"), (0.00001, "0.00001")]
)
def test_a_small_chance_is_shown_with_its_digits(value: float, shown: str) -> None:
    (plain,) = detect(table(LONG), [LOVE_BOMBING]).findings
    words = certainty_words(msgspec.structs.replace(plain, chance=value, shuffles=(0, 99999)))
    assert f"(chance {shown})" in words[1]


def test_where_q_cannot_become_small_the_run_says_so() -> None:
    words = "chance from up to 999 shuffles each, q over 40 pairs of sequence and pattern, 3 with a match"
    assert basis_words(999, 40, 3) == (words,)
    assert "cannot fall below 0.4" in basis_words(999, 400, 1)[1]
    assert basis_words(0, 400, 1) == basis_words(999, 400, 0) == ()


def test_over_worlds_without_order_a_small_chance_is_as_rare_as_it_says() -> None:
    dice, rules = random.Random(7), tuple(rule for rule in load_rules() if rule.id != "alignment_faking")
    rows = [row for agent in range(130) for row in noisy_agent(f"a{agent}", dice)]
    result = weighed(rows, rules, ResamplingConfig(draws=99, replicas=0))
    values = {(each.pattern, each.agent, each.target): each.chance for each in result.findings}
    assert len(values) > 30  # worlds in which the rules have something to find
    for alpha in (0.01, 0.05, 0.2):
        under = sum((value or 0) <= alpha for value in values.values())
        assert under <= alpha * result.family + 3 * (alpha * result.family) ** 0.5


def noisy_agent(name: str, dice: random.Random) -> list[Row]:
    """An agent that is warm, cold, helpful and pressing by the throw of a die."""
    moods: list[dict[str, float]] = [
        {"compassion": 0.8, "goodwill": 0.8, "manipulation": 0.1, "exploitation": 0.1, "virtue": 0.8, "accuracy": 0.8},
        {"compassion": 0.1, "goodwill": 0.1, "manipulation": 0.8, "exploitation": 0.7, "dismissal": 0.7},
        {"deception": 0.8, "exploitation": 0.1, "fabrication": 0.8, "goodwill": 0.7, "compassion": 0.6},
        {"dismissal": 0.8, "broken_logic": 0.8, "recognition": 0.1, "accuracy": 0.2, "reasoning": 0.2},
    ]
    base = dict.fromkeys(TRAITS, 0.4)
    return table_of(name, [base | dice.choice(moods) for _ in range(24)])


def table_of(name: str, traits: list[dict[str, float]]) -> list[Row]:
    days = table("who day\n" + "\n".join(f"{name}>bo {day / 2}" for day in range(len(traits))))
    return [
        msgspec.structs.replace(row, id=f"{name}:{row.id}", traits=scores)
        for row, scores in zip(days, traits, strict=True)
    ]
