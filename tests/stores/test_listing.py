"""Lists by the page are those of the defaults in every store, in whatever pages they are read."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from undersong.errors import UsageError
from undersong.models import Conversation, Finding, Message
from undersong.stores.erasure import forget
from undersong.stores.listing import (
    AgentQuery,
    ClaimQuery,
    ConversationQuery,
    FindingQuery,
    LeadQuery,
    ListingStore,
    SearchQuery,
)
from undersong.stores.protocol import Store
from undersong.stores.sqlite import SQLiteStore

from .deeds import NOON, make_finding, row, scans
from .test_reviews import make_claim, make_lead, make_review

TEXTS = (
    "You ARE wonderful, truly",
    "no café today",
    "wonderful café – truly you",
    "",
    "why\x00so",
    "“Quite so”, he said",
)


def fill(store: Store) -> None:
    for number in range(7):
        speakers = ("kira", "bo", "Éva")[: 1 + number % 3]
        messages = tuple(
            Message(id=f"m{place}", conversation=f"c{number}", position=place, author=who, agent=who, role="agent",
                    text=TEXTS[(number + place) % len(TEXTS)], target="kira" if who == "bo" else None,
                    time=None if number == 3 else NOON + timedelta(days=number, minutes=place))
            for place, who in enumerate(speakers * 2)
        )  # fmt: skip
        title = None if number == 2 else f"Talk {number}"
        conversation = Conversation(id=f"c{number}", source_format="jsonl", messages=messages, title=title)
        store.put_conversation(conversation, *scans(conversation))
    store.append([row("x", agent="only rows", conversation="c8")])
    store.put_findings([], [made(number) for number in range(12)])
    store.put_leads([], [make_lead(who, score) for who, score in (("kira", 1.0), ("bo", 3.0), ("Éva", 3.0))])
    store.put_claims([], [make_claim(f"m{n}", f"c{n % 3}", state=("backed", "contradicted")[n % 2]) for n in range(6)])
    for number, verdict in enumerate(("confirmed", "rejected", "unsure")):
        store.add_review(make_review(f"f{number:02}", number, verdict))
    store.add_review(make_review("f00", 9, "rejected"))
    store.add_review(make_review("lead-bo", 9, kind="lead"))
    for review in (
        make_review("f01", 20, "rejected", reviewer="ann"),
        make_review("f01", 21, reviewer="bo"),
        make_review("f01", 22, "withdrawn", reviewer="bo"),
        make_review("f02", 22, "withdrawn"),
    ):
        store.add_review(review)


def made(number: int) -> Finding:
    name, confidence = f"c{number % 7}", (None, 0.5, 0.9, 0.2)[number % 4]
    changed = {
        "agent": ("kira", "bo")[number % 2], "target": ("bo", None, "kira")[number % 3], "message_ids": ("m0", "m1"),
        "message_conversations": (name, name), "level": ("low", "high", "critical")[number % 3],
        "pattern": ("darvo", "love_bombing")[number // 6], "confidence": confidence,
        "end": None if number == 5 else NOON + timedelta(hours=number % 4),
        "status": ("open", "settled")[number % 2],
    }  # fmt: skip
    return msgspec.structs.replace(make_finding(f"f{number:02}", name), **changed)


LISTS: list[tuple[str, Any]] = [
    ("list_conversations", ConversationQuery()),
    ("list_conversations", ConversationQuery(sort="id")),
    ("list_conversations", ConversationQuery(agent="kira", title="talk")),
    ("list_conversations", ConversationQuery(agent="Éva")),
    ("list_conversations", ConversationQuery(title="C2")),
    ("list_conversations", ConversationQuery(title="%")),
    ("list_agents", AgentQuery()),
    ("list_agents", AgentQuery(sort="name")),
    ("list_agents", AgentQuery(name="IR")),
    *(("list_findings", FindingQuery(sort=sort)) for sort in ("confidence", "recent", "level", "id")),  # type: ignore[arg-type]
    ("list_findings", FindingQuery(agent="kira", target="bo")),
    ("list_findings", FindingQuery(conversation="c3")),
    ("list_findings", FindingQuery(patterns=("darvo",), levels=("high", "low"))),
    ("list_findings", FindingQuery(confidence=(0.2, 0.9))),
    ("list_findings", FindingQuery(likely=True, status="open")),
    ("list_findings", FindingQuery(likely=False, sort="recent")),
    ("list_findings", FindingQuery(reviewed=("rejected",))),
    ("list_findings", FindingQuery(reviewed=("none", "unsure"))),
    ("list_findings", FindingQuery(text="wonderful")),
    ("list_findings", FindingQuery(text="")),
    ("list_leads", LeadQuery()),
    ("list_leads", LeadQuery(agent="bo", kinds=("agent",), conversation="c1")),
    ("list_leads", LeadQuery(kinds=("message",))),
    ("list_leads", LeadQuery(reviewed=("none",))),
    ("list_claims", ClaimQuery()),
    ("list_claims", ClaimQuery(conversation="c1", agent="kira", kinds=("tests",), states=("backed",))),
    ("list_claims", ClaimQuery(reviewed=("confirmed",))),
    ("search", SearchQuery(words="wonderful")),
    ("search", SearchQuery(words="CAFE truly", agent="kira")),
    ("search", SearchQuery(words='“truly you” "café"', conversation="c2")),
    ("search", SearchQuery(words="NOT * OR \" near( -")),
    ("search", SearchQuery(words="")),
    ("search", SearchQuery(words="so")),
    ("search", SearchQuery(words="wonderf")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "query"), LISTS)
def test_a_list_is_the_same_in_every_store_and_in_every_size_of_page(store: Store, name: str, query: Any) -> None:
    fill(store)
    listed, default = getattr(store, name), getattr(ListingStore, name)
    wanted = default(store, query, None, 1_000)
    assert wanted.next is None
    for size in (1, 2, 5, 1_000):
        page, items = listed(query, None, size), []
        while True:
            assert page.total == wanted.total
            items += page.items
            if page.next is None:
                break
            page = listed(query, page.next, size)
        assert tuple(items) == wanted.items


def test_lists_hold_what_they_should(store: Store) -> None:
    fill(store)
    assert [each.id for each in store.list_conversations().items] == ["c6", "c5", "c4", "c2", "c1", "c0", "c3"]
    (entry,) = store.list_conversations(ConversationQuery(title="talk 4")).items
    assert (entry.messages, entry.agents, entry.findings, entry.claims) == (4, ("bo", "kira"), 2, 0)
    assert [(each.agent, each.messages) for each in store.list_agents(AgentQuery(sort="name")).items] == [
        ("bo", 8), ("kira", 14), ("only rows", 0), ("Éva", 4),
    ]  # fmt: skip
    (first, *_) = store.list_findings(limit=3).items
    assert first.confidence == 0.9
    assert {each.finding_id for each in store.list_findings(FindingQuery(reviewed=("rejected",))).items} == {
        "f00",
        "f01",
    }
    hits = store.search(SearchQuery(words="café truly")).items
    assert {(hit.message_id, hit.excerpt) for hit in hits} >= {("m1", TEXTS[2])}
    assert all("café" in hit.excerpt for hit in hits)


@pytest.mark.parametrize("after", ["x", "W10", "eyJhIjoxfQ", "WzEsMiwzLDQsNV0", "é"])
def test_a_place_that_no_page_gave_is_refused(store: Store, after: str) -> None:
    fill(store)
    for name in ("list_conversations", "list_agents", "list_findings", "list_leads", "list_claims"):
        with pytest.raises(UsageError, match="no place in this list"):
            getattr(store, name)(None, after, 5)


@pytest.mark.parametrize("limit", [0, -1, 1_001])
def test_a_page_has_a_thousand_entries_at_most(store: Store, limit: int) -> None:
    with pytest.raises(UsageError, match="ask for 1 to 1,000"):
        store.list_findings(limit=limit)


def test_what_lists_are_made_from_agrees_with_the_store_after_any_changes(tmp_path: Path) -> None:
    random = Random(27)
    with SQLiteStore(tmp_path / "s.db") as store:
        for step in range(120):
            name = f"c{random.randrange(5)}"
            deed = random.randrange(6)
            if deed < 2:
                speakers = random.sample(["kira", "bo", "Éva"], 2)
                messages = tuple(
                    Message(id=f"m{place}", conversation=name, position=place, author=who, agent=who, role="agent",
                            text=random.choice(TEXTS), time=random.choice([None, NOON + timedelta(days=step)]))
                    for place, who in enumerate(random.choices(speakers, k=random.randrange(4)))
                )  # fmt: skip
                conversation = Conversation(
                    id=name, source_format="jsonl", messages=messages, title=random.choice([None, "Talk"])
                )
                store.put_conversation(conversation, *scans(conversation))
            elif deed == 2:
                store.put_findings([name], [made(random.randrange(12)) for _ in range(2)])
            elif deed == 3:
                store.append([row(f"x{step}", agent=random.choice(["kira", "only rows"]), conversation=name)],
                             [made(random.randrange(12))])  # fmt: skip
            elif deed == 4:
                store.append((), removed=[f"f{random.randrange(12):02}"])
            elif step % 4 == 0 and name in set(store.conversations()):
                forget(store, name, NOON)
            assert not [word for word in store.integrity_errors() if "lists" in word], (step, deed)
        forget(store, "bo", NOON)
        assert "bo" not in {entry.agent for entry in store.list_agents().items}
        assert list(store.integrity_errors()) == []


def test_a_large_list_is_read_from_the_index_of_its_order(tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "s.db") as store:
        fill(store)
        plans: list[str] = []
        store._db.set_trace_callback(plans.append)
        store.list_agents(limit=2)
        store.list_conversations(limit=2)
        store._db.set_trace_callback(None)
        for query in (each for each in plans if "ORDER BY" in each and "FROM t" in each):
            plan = " ".join(str(row[3]) for row in store._db.execute(f"EXPLAIN QUERY PLAN {query}"))
            assert "_order" in plan
            assert "TEMP B-TREE" not in plan
