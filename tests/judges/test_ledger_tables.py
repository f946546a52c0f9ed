"""What the ledger of paid answers promises in every store in SQL: kept once, in order, whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from tests.conftest import POSTGRES, Undersong
from tests.judges.dialogue import KEYS, Served
from tests.stores.deeds import answer, make_finding, scans, talk
from undersong.errors import UsageError
from undersong.judges.ledger import LedgerTotals, SQLLedger, open_ledger
from undersong.judges.limits import FAILED, SET_ASIDE, LedgerEntry, Pending
from undersong.judges.measurement import Shift
from undersong.stores.protocol import open_store

BACKENDS = ("sqlite", "postgres") if POSTGRES else ("sqlite",)


@pytest.fixture(params=BACKENDS)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    from tests.postgres.databases import emptied

    return emptied()


@pytest.fixture
def ledger(address: str) -> Iterator[SQLLedger]:
    with open_ledger(address) as opened:
        yield opened


def paid(key: str, attempt: int = 0, **other: object) -> LedgerEntry:
    entry = LedgerEntry(
        key=key, attempt=attempt, judge="j", model="m", prompt_hash="p", message_hash="t", context_hash="c",
        depth="quick", body=b"\x00\xff{}", input=10, cached=4, output=2, cost=0.125, sent=3_000_000, fixed=7,
    )  # fmt: skip
    return msgspec.structs.replace(entry, **other)


def test_answers_come_back_as_they_were_kept_and_the_first_one_stays(ledger: SQLLedger, address: str) -> None:
    ledger.keep([paid("a"), paid("a", 1), paid("b", cost=None)])
    ledger.keep([paid("a", cost=9.0)])
    with open_ledger(address) as other:
        assert other.paid(["a", "b", "c"]) == {"a": {0: paid("a"), 1: paid("a", 1)}, "b": {0: paid("b", cost=None)}}
        assert list(other.all(["j", "k"])) == [paid("a"), paid("a", 1), paid("b", cost=None)]
    ledger.forget([("a", 1)])
    assert ledger.paid(["a"]) == {"a": {0: paid("a")}}


def test_answers_of_no_use_are_set_aside(ledger: SQLLedger) -> None:
    ledger.keep([paid("a"), paid("a", 1), paid("a", FAILED), paid("b")])
    assert ledger.set_failed_aside(["j"], "p") == 1
    assert ledger.paid(["a"]) == {"a": {SET_ASIDE: paid("a", SET_ASIDE), SET_ASIDE + 1: paid("a", SET_ASIDE + 1)}}
    assert ledger.set_failed_aside(["j"], "p") == 0


def test_the_figures_are_those_of_the_first_answers(ledger: SQLLedger) -> None:
    ledger.keep([paid("z"), paid("a", input=30), paid("a", 1), paid("y", depth="confirm")])
    assert ledger.sizes("j", "p", 9) == [("quick", 3_000_000, 10, 2), ("quick", 3_000_000, 30, 2)]
    assert ledger.sizes("j", "p", 1) == [("quick", 3_000_000, 10, 2)]
    assert ledger.cached_share("j", "p") == pytest.approx(16 / 60)
    assert ledger.cached_share("j", "q") == 0
    totals = ledger.totals_by_depth("j", "p")
    assert totals == {"quick": LedgerTotals(2, 6_000_000, 40, 4), "confirm": LedgerTotals(1, 3_000_000, 10, 2)}
    assert {type(number) for each in totals.values() for number in each} == {int}


def test_batches_wait_in_the_order_in_which_they_were_submitted(ledger: SQLLedger) -> None:
    batches = [Pending(id=name, judge="j", questions=(paid(name, body=b""),)) for name in ("z", "a", "y")]
    for batch in batches:
        ledger.submit(batch)
    assert ledger.pending("j") == batches
    ledger.collected("a")
    assert ledger.pending("j") == [batches[0], batches[2]]
    assert ledger.pending("k") == []


def test_shifts_stand_as_they_were_measured_last(ledger: SQLLedger) -> None:
    for value in (0.1, 0.2):
        measured = {"moved": {"virtue": value}, "apart": {"virtue": value}}
        shift = Shift(kind="repeat", judge="m", judge_hash="j", width="own", asked=3, messages=3, flips=0, **measured)
        ledger.put_shifts([shift])
    assert ledger.shifts("j") == [shift]
    assert ledger.shifts("k") == []
    assert ledger.calibration("j") is None


def test_a_snapshot_is_what_was_there_when_it_was_taken_first(ledger: SQLLedger, address: str) -> None:
    with open_store(address) as store:
        for end in (None, datetime(2026, 1, 2, tzinfo=UTC)):
            conversation = talk("one", "two", "three")
            store.put_conversation(conversation, *scans(conversation))
            store.put_answers([("c1", answer("m0")), ("c1", answer("m1" if end is None else "m2", score=0.25))])
            store.append([], [msgspec.structs.replace(make_finding("f", "c1"), end=end)])
            ledger.snapshot("run", "j1")
        past = ledger.past("run", "kira")
        assert [scores[0] for _, scores in past.readings] == [0.5, 0.25]
        assert past.findings == ()
        ledger.snapshot_agent("other", "j1", "kira")
        assert len(ledger.past("other", "kira").readings) == 3
        assert [pattern for _, pattern in ledger.past("other", "kira").findings] == ["darvo"]
        assert ledger.past("run", "nobody").readings == ()


def test_an_audit_by_a_paid_judge_is_paid_once_and_its_answers_are_exported(
    address: str, undersong: Undersong, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    lines = [f'{{"id": "m{n}", "conversation": "c", "author": "kira", "text": "You owe me, {n}."}}\n' for n in range(3)]
    Path("talk.jsonl").write_text("".join(lines))
    for out in ("one", "two"):  # the second as another machine would: it has the store alone
        ran = undersong(
            "audit", "talk.jsonl", "--judge", served.spec(), "--all", "--store", address, "--out", out, "--draws", "9"
        )
        assert ran.code == 0, ran.err
    assert len(served.server.seen) == 3
    assert not list(Path().glob("*.ledger.db"))
    assert Path("one/evaluations.jsonl").read_bytes() == Path("two/evaluations.jsonl").read_bytes()
    exported = undersong("judge", "export", "--judge", served.spec(), "--store", address)
    assert (exported.code, len(exported.out.splitlines())) == (0, 4), exported.err
    assert undersong("judge", "forget", "--judge", served.spec(), "--failed", "--store", address).code == 0
    assert undersong("plan", "talk.jsonl", "--judge", served.spec(), "--store", address).code == 0


def test_a_kind_of_store_without_paid_answers_says_where_they_are() -> None:
    with pytest.raises(UsageError):
        open_ledger("unknown://somewhere")
