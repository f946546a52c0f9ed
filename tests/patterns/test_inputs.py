"""What rows give is what at least one of them gives, whatever the others lack."""

from __future__ import annotations

from hypothesis import given as each_of
from hypothesis import strategies as st

from undersong.models import TRAITS, Row
from undersong.patterns.catalog import all_rules
from undersong.patterns.language.inputs import NEVER_MISSING, available_inputs, gives

WANTED = frozenset().union(*(rule.needs for rule in all_rules()), NEVER_MISSING, {"signals:pressure"})
ROWS = st.builds(
    Row,
    id=st.just("m"),
    agent=st.just("kira"),
    state=st.just("scored"),
    traits=st.sampled_from([None, {"manipulation": 0.5}, dict.fromkeys(TRAITS, 0.5)]),
    indicators=st.sampled_from([None, ()]),
    signals=st.sampled_from([{}, {"pressure": 0.1}]),
    tier=st.sampled_from([None, "deep"]),
)


@each_of(st.lists(ROWS, max_size=4), st.sets(st.sampled_from(sorted(WANTED))))
def test_an_input_is_given_where_one_row_has_it(rows: list[Row], wanted: set[str]) -> None:
    always = {name for name in wanted if name in NEVER_MISSING}
    assert available_inputs(rows, wanted) == always | {name for name in wanted if any(gives(row, name) for row in rows)}
