"""What every store promises to sweeps: who changed since a cursor, and findings that move with it."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from undersong.stores.protocol import BEGINNING, AgentSweep, Cursor, Store

from .deeds import NOON, make_finding, row, scans, talk


def changed(store: Store, after: Cursor = BEGINNING, least: int = 0) -> list[str]:
    return [history.agent for history in store.histories("j1", after, least)]


def test_a_sweep_sees_agents_with_enough_scored_rows_that_changed_since_its_cursor(store: Store) -> None:
    store.append(
        [row("a1", agent="ann"), row("a2", 1, agent="ann"), row("b1", agent="bo"), row("b2", 1, "bo", "unread")]
    )
    assert changed(store) == ["ann", "bo"]
    assert changed(store, least=2) == ["ann"]
    cursor = Cursor(store.changes(), "bo")
    assert changed(store, cursor) == []
    store.append([row("a1", agent="ann")])  # the same again is no change
    assert changed(store, cursor) == []
    store.append([row("b2", 1, agent="bo"), row("c1", agent="cy")])
    assert changed(store, cursor, least=2) == ["bo"]
    assert changed(store, cursor) == ["bo", "cy"]
    assert changed(store, Cursor(store.changes(), "bo")) == ["cy"]


def test_what_changes_during_a_sweep_is_left_for_the_next(store: Store) -> None:
    store.append([row("a1", agent="ann"), row("b1", agent="bo")])
    sweep = store.histories("j1")
    assert next(sweep).agent == "ann"
    store.append([row("a2", 1, agent="ann"), row("c1", agent="cy")])
    assert [history.agent for history in sweep] == ["bo"]


def test_a_sweep_replaces_the_findings_of_its_patterns_and_moves_its_cursor_together(store: Store) -> None:
    other = msgspec.structs.replace(make_finding("o", "c1"), pattern="other")
    store.append([row("m")], [make_finding("old", "c1"), other])
    now = store.changes()
    store.put_sweep(
        "j1", [AgentSweep("kira", now, (make_finding("new", "c1"),))], {"darvo"}, {"s": Cursor(now, "kira")}
    )
    assert [finding.finding_id for finding in store.findings()] == ["new", "o"]
    assert store.cursor("s") == (now, "kira")
    assert store.cursor("nobody's") == BEGINNING


def test_a_sweep_of_an_older_history_changes_nothing_of_its_agent(store: Store) -> None:
    store.append([row("m")], [make_finding("old", "c1")])
    seen = store.changes()
    store.append([row("n", 1)], [make_finding("live", "c1")])
    store.put_sweep("j1", [AgentSweep("kira", seen, ())], {"darvo"}, {"s": Cursor(seen, "kira")})
    assert [finding.finding_id for finding in store.findings()] == ["live", "old"]
    assert changed(store, store.cursor("s")) == ["kira"]


def test_an_agent_that_loses_a_finding_to_an_audit_counts_as_changed(store: Store) -> None:
    store.append([row("m")], [make_finding("f", "c1", "c2")])
    cursor = Cursor(store.changes(), "kira")
    store.put_findings(["c1"], [make_finding("f", "c1", "c2")])
    assert changed(store, cursor) == []
    store.put_findings(["c1"], [])
    assert changed(store, cursor) == ["kira"]


def test_agents_are_told_with_their_counts(store: Store) -> None:
    store.append([row("m"), row("n", 7, state="refused", conversation="c2"), row("u", None, agent="bo")])
    ann, kira = store.agents("j1")
    assert (kira.agent, kira.messages, kira.read, kira.threads) == ("kira", 2, 1, 2)
    assert (kira.first, kira.last) == (NOON, NOON + timedelta(minutes=7))
    assert (ann.agent, ann.first, ann.last) == ("bo", None, None)
    assert store.agents("nobody") == ()


def test_agents_are_told_how_many_of_their_scores_are_ranks(store: Store) -> None:
    store.append([row("m"), row("n", 1, scale="level"), row("o", 2, scale="rank"), row("u", 3, state="unread")])
    (kira,) = store.agents("j1")
    assert (kira.messages, kira.read, kira.ranked) == (4, 3, 1)


def test_conversations_and_threads_are_listed_in_order(store: Store) -> None:
    for name in ("b", "a"):
        conversation = talk("hello", conversation=name)
        store.put_conversation(conversation, *scans(conversation))
    store.append([row("m", conversation="z")])
    assert list(store.conversations()) == ["a", "b"]
    assert list(store.threads()) == ["z"]


def test_hostile_names_are_only_names(store: Store) -> None:
    name = "x'}) DETACH DELETE n // \"; DROP TABLE history; --\u202e\x00"
    store.append([row(name, agent=name, conversation=name, target=name, judge_hash=name)])
    assert store.history(name, name)[0].target == name
    assert [each.agent for each in store.agents(name)] == [name]
    aimed = msgspec.structs.replace(make_finding("f", name), agent=name)
    store.put_sweep(name, [AgentSweep(name, store.changes(), (aimed,))], {"darvo"}, {})
    assert list(store.findings(name)) == [aimed]
