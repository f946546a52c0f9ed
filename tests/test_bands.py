"""Null bands: a signal stands out only where other phrases do not land by the same statistic."""

from __future__ import annotations

from undersong.bands import Bands, standing_out
from undersong.models import Row, State


def row(number: int, state: State = "scored", **signals: float) -> Row:
    return Row(id=str(number), position=number, agent="kira", state=state, signals=signals)


def bands(rows: list[Row]) -> Bands:
    found = Bands()
    for each in rows:
        found.add(each, ("calm", "isolation", "pressure", "stance"))
    return found


def test_a_signal_that_is_higher_than_the_others_stands_out() -> None:
    rows = [row(n, pressure=0.1, isolation=0.12, calm=0.8 if n % 2 else 0.1) for n in range(40)]
    found = bands(rows).bands()
    assert (found["calm"].low, found["calm"].high) == (0.1, 0.12)
    assert (found["calm"].over, found["calm"].messages, found["calm"].highest) == (20, 40, 0.8)
    assert standing_out(found) == ["calm"]


def test_signals_that_are_all_high_do_not_stand_out() -> None:
    rows = [row(n, pressure=0.8, isolation=0.8, calm=0.8) for n in range(20)]
    assert standing_out(bands(rows).bands()) == []


def test_unread_messages_and_other_signals_do_not_count() -> None:
    rows = [row(0, pressure=0.2, calm=0.1), row(1, "unread", pressure=0.9, calm=0.9), row(2, other=0.9)]
    found = bands(rows).bands()
    assert set(found) == {"pressure", "calm"}
    assert found["pressure"].messages == 1


def test_one_signal_alone_has_no_band() -> None:
    assert bands([row(0, pressure=0.4)]).bands() == {}
