"""What every store promises of histories: rows in order of event time, once, whatever the order in which they come."""

from __future__ import annotations

import random
from collections.abc import Iterator

import msgspec
import pytest

from undersong.models import TRAITS, Finding
from undersong.rows.binary import pack
from undersong.stores.protocol import Cursor, Store

from .deeds import make_finding, row, scans, talk


def test_a_history_is_in_the_order_of_event_time_position_and_id(store: Store) -> None:
    rows = [
        row("d", 5),
        row("c", 5, position=1),
        row("b", 9),
        row("a", 5, position=1),
        row("e", None, conversation="c0"),
    ]
    for one in rows:
        store.append([one])
    assert [each.id for each in store.history("kira", "j1")] == ["e", "d", "a", "c", "b"]
    assert [each.id for each in store.thread("c1", "j1")] == ["b", "d", "a", "c"]


def test_a_row_comes_back_as_it_was_put_but_for_its_text(store: Store) -> None:
    full = row(
        "m", 3, target="bo", tier="deep", flags={"manipulation": 2}, total=2, density=0.125, observed="no", role="user",
        reasons=("a\x00b", "é"), signals={"x": 0.5}, latency_drop=False, text="private", indicators=(),
    )  # fmt: skip
    store.append([full])
    assert store.history("kira", "j1") == (msgspec.structs.replace(full, text=None),)


@pytest.mark.parametrize("seed", range(4))
def test_rows_in_any_order_and_any_portion_and_again_give_the_same_histories(store: Store, seed: int) -> None:
    dice = random.Random(seed)
    rows = [
        row(f"m{n}", dice.randrange(20), agent=dice.choice("abc"), conversation=dice.choice("xy"), position=n)
        for n in range(40)
    ]
    shuffled = [*rows, *dice.sample(rows, 15)]
    dice.shuffle(shuffled)
    while shuffled:
        store.append([shuffled.pop() for _ in range(min(len(shuffled), dice.randint(1, 9)))])
    for agent in "abc":
        own = [each for each in rows if each.agent == agent]
        own.sort(key=lambda entry: (entry.time, entry.position, entry.id))
        assert store.history(agent, "j1") == tuple(own)
        assert [h.rows for h in store.histories("j1") if h.agent == agent] == [tuple(own)]


def test_packed_histories_are_the_histories(store: Store) -> None:
    rows = [row(f"m{n}", n, agent="ab"[n % 2], target="bo", position=n) for n in range(9)]
    odd = [row("fine", 3, agent="c", traits={"virtue": 0.12345}), row("untimed", None, agent="d", conversation="c0")]
    none = [row(f"n{n}", n, agent="e", traits=dict.fromkeys(TRAITS, 0.0) | {"accuracy": None}) for n in range(3)]
    store.append([*rows, *odd, *none])
    packed = {each.agent: (each.changed, each.rows, each.cells) for each in store.packed("j1", least=1)}
    for history in store.histories("j1", least=1):
        cells = [pack(one) for one in history.rows]
        whole = None if None in cells else b"".join(one or b"" for one in cells)
        assert packed.pop(history.agent) == (history.changed, len(history.rows), whole)
    assert packed == {}
    assert [each.agent for each in store.packed("j1", least=5)] == ["a"]


def test_rows_are_given_by_their_places_in_a_history(store: Store) -> None:
    store.append([row(f"m{place}", 5 - place) for place in range(5)])
    whole = store.history("kira", "j1")
    assert store.rows_at("kira", "j1", [3, 0]) == (whole[3], whole[0])
    assert store.rows_at("kira", "j1", [4, 5]) == whole[4:]
    assert (
        store.rows_at("nobody", "j1", [0]) == store.rows_at("kira", "j9", [0]) == store.rows_at("kira", "j1", []) == ()
    )


def test_judges_have_histories_of_their_own(store: Store) -> None:
    store.append([row("m", judge_hash="j1"), row("m", judge_hash="j2", judge="other", traits={"virtue": 1.0})])
    assert store.history("kira", "j2")[0].traits == {"virtue": 1.0}
    assert [(each.judge_hash, each.judge, each.rows) for each in store.judges()] == [
        ("j1", "offline", 1),
        ("j2", "other", 1),
    ]


def test_a_message_that_was_read_stays_read_and_an_unread_one_can_be_read_later(store: Store) -> None:
    store.append([row("m", state="unread")])
    assert store.history("kira", "j1")[0].traits is None
    store.append([row("m")])
    store.append([row("m", state="unread")])
    assert store.history("kira", "j1") == (row("m"),)


def test_the_four_states_are_four_in_the_store(store: Store) -> None:
    states = ("scored", "unread", "refused", "failed")
    store.append(row(state, minute, state=state, reason=f"so {state}") for minute, state in enumerate(states))
    assert [(each.state, each.reason) for each in store.history("kira", "j1")] == [(s, f"so {s}") for s in states]


def test_an_append_that_fails_leaves_nothing(store: Store) -> None:
    def broken() -> Iterator[Finding]:
        yield make_finding("f", "c1")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.append([row("m")], broken())
    assert store.history("kira", "j1") == ()
    assert list(store.findings()) == []
    assert store.changes() == 0


def test_findings_are_appended_and_dropped_with_their_rows(store: Store) -> None:
    store.append([row("m")], [make_finding("f", "c1"), make_finding("g", "c1")])
    store.append([row("n", 1)], [make_finding("h", "c1")], removed=["f"])
    assert [finding.finding_id for finding in store.findings()] == ["g", "h"]
    assert [finding.finding_id for finding in store.findings("kira")] == ["g", "h"]
    assert list(store.findings("bo")) == []


def test_the_ids_of_findings_are_those_of_the_findings_that_stand(store: Store) -> None:
    assert store.finding_ids() == set()
    store.append([row("m")], [make_finding("f", "c1"), make_finding("g", "c1")])
    assert store.finding_ids() == {"f", "g"}
    store.append([row("n", 1)], [make_finding("h", "c1")], removed=["f"])
    store.put_findings(["c1"], [make_finding("h", "c1")])
    assert store.finding_ids() == {each.finding_id for each in store.findings()} == {"h"}


def test_messages_that_are_gone_or_rewritten_leave_the_histories(store: Store) -> None:
    first, second = talk("one", "two", "three"), talk("one", "2")
    store.put_conversation(first, *scans(first))
    store.append(row(message.id, place) for place, message in enumerate(first.messages))
    before = store.changes()
    store.put_conversation(first, *scans(first))
    assert store.changes() == before
    store.put_conversation(second, *scans(second))
    assert [each.id for each in store.history("kira", "j1")] == ["m0"]
    assert [each.agent for each in store.histories("j1", Cursor(before, "￿"))] == ["kira"]
