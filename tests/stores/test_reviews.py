"""Leads, claims and reviews in every store: kept as they were put, reviews for good."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from undersong.errors import UsageError
from undersong.models import Finding, Lead, LedgerClaim, Quote, Review, encode, evidence_hash, standing_review
from undersong.stores.erasure import forget
from undersong.stores.integrity import problems
from undersong.stores.protocol import Store
from undersong.stores.reviewing import evidence_rows, ordered_leads, review_of, standing, withdraw
from undersong.stores.sqlite import SQLiteStore
from undersong.stores.transfer import export_records, import_records, read_records

from .deeds import NOON, make_finding, scans, talk


def make_lead(agent: str = "kira", score: float = 1.0, conversation: str = "c1") -> Lead:
    places = {"message_ids": ("m0",), "message_conversations": (conversation,)}
    return Lead(
        id=f"lead-{agent}", rank=1, kind="agent", agent=agent, conversation=conversation, reason="warm", score=score,
        **places,  # type: ignore[arg-type]
    )  # fmt: skip


def make_claim(message_id: str = "m0", conversation: str = "c1", **other: Any) -> LedgerClaim:
    sentence = Quote(message_id=message_id, text="All pass.", start=0, end=9, sha256="s")
    fields = {"kind": "tests", "state": "contradicted", "object": "tests", "position": int(message_id[1:])} | other
    return LedgerClaim(
        conversation=conversation, message_id=message_id, agent="kira", time=None, sentence=sentence, reason="",
        **fields,
    )  # fmt: skip


def make_review(id_: str = "f", minute: int = 0, verdict: str = "confirmed", **other: Any) -> Review:
    rows = other.pop("rows", (("c1", "m0", "h"),))
    at = NOON + timedelta(minutes=minute)
    fields = {"kind": "finding", "evidence": evidence_hash(rows), "rows": rows} | other
    return Review(id=id_, verdict=verdict, at=at, **fields)  # type: ignore[arg-type]


def test_leads_come_back_best_first_and_an_audit_replaces_those_of_its_conversations(store: Store) -> None:
    kira, bo, far = make_lead(), make_lead("bo", 2.0), make_lead("cy", 3.0, "c9")
    store.put_leads(["c1"], [kira, bo])
    store.put_leads(["c9"], [far])
    assert list(store.leads()) == [far, bo, kira]
    assert list(store.leads("bo")) == [bo]
    assert (store.lead("lead-kira"), store.lead("nobody")) == (kira, None)
    store.put_leads(["c1"], [bo])
    assert list(store.leads()) == [far, bo]


def test_leads_that_somebody_decided_on_come_last_until_they_change(store: Store) -> None:
    conversation = talk("Hello.", "Send it now.", "Thanks.")
    store.put_conversation(conversation, *scans(conversation))
    kira, bo = make_lead(score=9.0), make_lead("bo")
    store.put_leads([], [msgspec.structs.replace(kira, decided="rejected"), bo])
    assert list(store.leads()) == [kira, bo]  # what is decided stands in the reviews alone

    def listed() -> list[tuple[str, str | None]]:
        page = store.list_leads(limit=1)
        items = [*page.items, *store.list_leads(after=page.next).items]
        assert items == ordered_leads(store)
        return [(lead.agent, lead.decided) for lead in items]

    assert listed() == [("kira", None), ("bo", None)]
    store.add_review(review_of(store, kira, "confirmed", NOON))
    assert listed() == [("bo", None), ("kira", "confirmed")]
    store.put_leads(
        ["c1"], [msgspec.structs.replace(kira, message_ids=("m0", "m1", "m2"), message_conversations=("c1",) * 3)]
    )
    assert [lead.decided for lead in ordered_leads(store)] == [None]


def test_claims_come_back_in_order_and_an_audit_replaces_those_of_its_conversations(store: Store) -> None:
    first, second, far = make_claim(), make_claim("m1", state="backed"), make_claim(conversation="c9")
    store.put_claims(["c1"], [second, first])
    store.put_claims(["c9"], [far])
    assert list(store.claims()) == [first, second, far]
    assert list(store.claims("c1")) == [first, second]
    assert store.claim(second.claim_id) == second
    assert store.claim("nothing") is None
    store.put_claims(["c1"], [])
    assert list(store.claims()) == [far]


def test_a_finding_is_had_by_its_id(store: Store) -> None:
    finding = make_finding("f", "c1")
    store.put_findings(["c1"], [finding])
    assert (store.finding("f"), store.finding("g")) == (finding, None)


def test_reviews_come_back_in_order_of_time_and_the_same_one_is_there_once(store: Store) -> None:
    later, first = make_review(minute=2, verdict="rejected", note="she laughs \u202e"), make_review()
    other = make_review("lead-kira", 1, kind="lead")
    for review in (later, first, other, first):
        store.add_review(review)
    assert list(store.reviews()) == [first, other, later]
    assert list(store.reviews("lead")) == [other]
    assert list(store.reviews("finding", "f")) == [first, later]
    assert list(store.reviews("claim", "f")) == []


def test_reviews_outlive_the_finding_that_they_are_of(store: Store) -> None:
    store.put_findings(["c1"], [make_finding("f", "c1")])
    store.add_review(make_review())
    store.put_findings(["c1"], [])
    assert list(store.reviews()) == [make_review()]


def grown(finding: Finding, *ids: str) -> Finding:
    return msgspec.structs.replace(finding, message_ids=ids, message_conversations=("c1",) * len(ids))


@pytest.mark.parametrize(
    ("ids", "stale"), [(("m0", "m1"), False), (("m0", "m1", "m2", "m3"), True), (("m0", "m2", "m3"), None)]
)
def test_a_finding_that_grew_has_a_stale_review_while_half_of_it_is_the_same(
    store: Store, ids: tuple[str, ...], stale: bool | None
) -> None:
    mine = talk("one", "two", "three", "four")
    store.put_conversation(mine, *scans(mine))
    finding = grown(make_finding("f", "c1"), "m0", "m1")
    store.add_review(make_review(rows=evidence_rows(store, finding)))
    found = standing(store, grown(finding, *ids))
    assert (found and found.stale) == stale


def test_a_review_of_words_that_were_changed_is_stale(store: Store) -> None:
    finding = grown(make_finding("f", "c1"), "m0", "m1")
    for texts in (("one", "two"), ("one", "two, you fool")):
        mine = talk(*texts)
        store.put_conversation(mine, *scans(mine))
        if texts[1] == "two":
            store.add_review(make_review(rows=evidence_rows(store, finding)))
    found = standing(store, finding)
    assert found
    assert found.stale


def test_the_review_of_a_finding_applies_to_the_one_that_took_its_place(store: Store) -> None:
    finding = grown(make_finding("f", "c1"), "m0", "m1")
    store.add_review(make_review(rows=evidence_rows(store, finding)))
    new = msgspec.structs.replace(grown(finding, "m0", "m1", "m2"), finding_id="g", replaces="f")
    found = standing(store, new)
    assert found
    assert (found.review.id, found.stale) == ("f", True)
    assert standing(store, msgspec.structs.replace(new, replaces=None)) is None


def test_the_latest_review_stands_and_who_disagrees_is_counted() -> None:
    rows = (("c1", "m0", "h"),)
    reviews = [make_review(reviewer="ann"), make_review(minute=1, verdict="rejected", reviewer="bo"),
               make_review(minute=2, verdict="unsure", reviewer="ann")]  # fmt: skip
    found = standing_review(reviews, rows)
    assert found
    assert (found.review, found.by) == (reviews[-1], {"confirmed": 0, "rejected": 1, "unsure": 1})
    assert found.others == (reviews[1],)


def test_leads_claims_and_reviews_are_exported_imported_and_merged(store: Store, tmp_path: Path) -> None:
    mine = talk("one", "two")
    store.put_conversation(mine, *scans(mine))
    store.put_claims(["c1"], [make_claim(), make_claim("m1", state="backed")])
    store.put_leads(["c1"], [make_lead()])
    store.add_review(make_review())
    with SQLiteStore(tmp_path / "other.db") as other, SQLiteStore(tmp_path / "third.db") as third:
        other.add_review(make_review("g", 5, "rejected"))
        other.put_leads([], [make_lead(score=9.0)])
        for _ in range(2):
            import_records(other, export_records(store), NOON)
        assert list(other.reviews()) == [make_review(), make_review("g", 5, "rejected")]
        assert list(other.leads()) == [make_lead(score=9.0)]
        assert list(other.claims()) == list(store.claims())
        import_records(store, export_records(other), NOON)
        assert list(store.reviews()) == list(other.reviews())
        lines = [encode(record) for record in export_records(store)]
        import_records(third, read_records(lines, "third"), NOON)
        assert [encode(record) for record in export_records(third)] == lines
        assert [*problems(store)] == [*problems(third)] == []


@pytest.mark.parametrize("name", ["kira", "bo", "c1", "c2"])
def test_what_is_forgotten_takes_its_leads_claims_and_reviews_along(store: Store, name: str) -> None:
    for conversation in ("c1", "c2"):
        mine = talk("one", "two", conversation=conversation)
        theirs = tuple(msgspec.structs.replace(m, agent="bo", author="bo") for m in mine.messages)
        mine = mine if conversation == "c1" else msgspec.structs.replace(mine, messages=theirs)
        store.put_conversation(mine, *scans(mine))
    store.put_claims(["c1"], [make_claim(), msgspec.structs.replace(make_claim("m0", "c2"), agent="bo")])
    store.put_leads([], [make_lead(), make_lead("bo", 1.0, "c2")])
    reviews = [
        make_review("f", agent="kira"), make_review("g", rows=(("c2", "m1", ""),)),
        make_review("n", rows=(), note="As KIRA says"), make_review("h", rows=(), target="bo"),
    ]  # fmt: skip
    store.add_reviews(reviews)
    before = list(export_records(store))
    forget(store, name, NOON)
    gone = {"kira": {"f", "n"}, "bo": {"g", "h"}, "c1": {"f"}, "c2": {"g"}}[name]
    assert {review.id for review in store.reviews()} == {"f", "g", "n", "h"} - gone
    other = {"kira": "bo", "bo": "kira", "c1": "bo", "c2": "kira"}[name]
    assert [lead.agent for lead in store.leads()] == [claim.agent for claim in store.claims()] == [other]
    import_records(store, before, NOON)
    assert [lead.agent for lead in store.leads()] == [claim.agent for claim in store.claims()] == [other]
    assert {review.id for review in store.reviews()} - {"n"} == {"f", "g", "h"} - gone
    assert list(problems(store)) == []


def test_who_withdraws_takes_back_their_own_decisions_and_all_of_it_stays(store: Store) -> None:
    finding = make_finding("f", "c1")
    rows = evidence_rows(store, finding)
    anns, bobs = (make_review(minute=minute, reviewer=who, rows=rows) for minute, who in ((0, "ann"), (1, "bob")))
    store.add_reviews([anns, bobs])
    with pytest.raises(UsageError, match="cleo has decided nothing"):
        withdraw(store, finding, "cleo", NOON)
    back = withdraw(store, finding, "bob", NOON + timedelta(minutes=2), "a slip")
    assert (back.verdict, back.note, back.rows) == ("withdrawn", "a slip", rows)
    now = standing(store, finding)
    assert now
    assert (now.review, now.others, now.by["confirmed"]) == (anns, (), 1)
    withdraw(store, finding, "ann", NOON + timedelta(minutes=3))
    assert standing(store, finding) is None
    again = make_review(minute=4, reviewer="ann", verdict="rejected", rows=rows)
    store.add_review(again)
    now = standing(store, finding)
    assert now
    assert now.review == again
    assert [each.verdict for each in store.reviews()] == [
        "confirmed",
        "confirmed",
        "withdrawn",
        "withdrawn",
        "rejected",
    ]
