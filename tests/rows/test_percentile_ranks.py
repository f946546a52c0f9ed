"""Scores of text that nobody measured: ranks within the corpus, and invisible to thresholds."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from undersong.models import TRAITS, Row, decode
from undersong.patterns.catalog import all_rules, named
from undersong.patterns.detect import detect
from undersong.routing.budget import is_harmful
from undersong.rows.corpus_scales import RowSpool, absolute_rows, ranks_of, with_scale


def row(number: int, domain: str | None, manipulation: float = 0.5, scale: str | None = "level") -> Row:
    traits = dict.fromkeys(TRAITS, 0.5) | {"manipulation": manipulation}
    return Row(
        id=str(number),
        position=number,
        agent="kira",
        state="scored",
        domain=domain,
        scale=scale,
        traits=traits,  # type: ignore[arg-type]
    )


def scales(*domains: str | None) -> str:
    rows = with_scale([row(number, domain) for number, domain in enumerate(domains)])
    return " ".join(str(each.scale) for each in rows)


def test_a_message_of_an_unmeasured_kind_has_ranks() -> None:
    assert scales("measured", "unmeasured", "measured") == "level rank level"


def test_a_lone_measured_message_in_a_foreign_conversation_has_ranks_too() -> None:
    assert scales("measured", "unmeasured", "unmeasured") == "rank rank rank"
    assert scales("measured", "measured", "unmeasured", "unmeasured") == "rank rank rank rank"
    assert scales("measured", "measured", "measured", "unmeasured", "unmeasured") == "level level level rank rank"


def test_one_of_two_messages_is_not_enough_to_tell_a_measured_conversation() -> None:
    assert scales("measured", "unmeasured") == "rank rank"
    assert scales("measured", "measured") == "level level"
    assert scales("measured") == "level"


def test_a_judge_that_says_nothing_of_domains_gives_levels() -> None:
    assert scales(None, None) == "level level"


def test_ranks_keep_the_order_and_count_ties_half() -> None:
    rows = [row(n, "unmeasured", score, "rank") for n, score in enumerate([0.9, 0.1, 0.1, 0.4])]
    ranks = ranks_of(rows)
    values = [(each.traits or {})["manipulation"] for each in map(ranks.of, rows)]
    assert values == [0.875, 0.25, 0.25, 0.625]


def test_levels_are_not_ranked() -> None:
    level, rank = row(0, "measured", 0.9), row(1, "unmeasured", 0.2, "rank")
    ranks = ranks_of([level, rank])
    assert ranks.of(level) is level
    assert (ranks.of(rank).traits or {})["manipulation"] == 0.5


@given(st.lists(st.tuples(st.sampled_from(["level", "rank"]), st.floats(0, 1)), max_size=8))
def test_a_spool_gives_every_row_back_in_order(given_rows: list[tuple[str, float]]) -> None:
    rows = [row(n, "measured" if s == "level" else "unmeasured", score, s) for n, (s, score) in enumerate(given_rows)]
    spool, lines = RowSpool(), list[bytes]()
    for entry in rows:
        spool.add(entry)
    spool.write(lines.append)
    assert [decode(line, Row) for line in lines] == [ranks_of(rows).of(each) for each in rows]


def test_thresholds_do_not_see_ranks() -> None:
    assert absolute_rows([row(0, "unmeasured", 0.9, "rank")])[0].traits is None
    assert is_harmful(row(0, "measured", 0.9))
    assert not is_harmful(row(0, "unmeasured", 0.9, "rank"))


def test_a_rule_over_traits_is_not_applicable_where_all_scores_are_ranks() -> None:
    rule = named(all_rules(), "love_bombing")
    (outcome,) = detect([row(n, "unmeasured", 0.9, "rank") for n in range(5)], [rule]).outcomes
    assert outcome.status == "not_applicable"
    assert "they are ranks" in outcome.reason
    assert "--judge" in outcome.reason


def test_a_trait_that_does_not_apply_has_no_rank_and_is_among_none() -> None:
    rows = [row(n, "unmeasured", score, "rank") for n, score in enumerate([0.1, 0.5, 0.9])]
    rows[1] = msgspec.structs.replace(rows[1], traits={**(rows[1].traits or {}), "manipulation": None})
    ranks = ranks_of(rows)
    assert [(each.traits or {})["manipulation"] for each in map(ranks.of, rows)] == [0.25, None, 0.75]
    assert {(each.traits or {})["virtue"] for each in map(ranks.of, rows)} == {0.5}
