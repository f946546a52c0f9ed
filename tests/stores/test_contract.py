"""What every store promises: it returns what it was given, once, in order, whole or not at all."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from undersong.errors import InputError, StoreError, UsageError
from undersong.models import Conversation, Finding, Route, ThreadScan, ThreadSignal, encode
from undersong.stores import BEGINNING, Cursor, Store, Swept
from undersong.stores.check import problems
from undersong.stores.forget import forget, pseudonym
from undersong.stores.packed import pack
from undersong.stores.sqlite import SQLiteStore
from undersong.stores.transfer import read_records, records, take

from .deeds import NOON, answer, found, row, scans, talk


def test_a_conversation_comes_back_as_it_was_put(store: Store) -> None:
    conversation = talk("hello", "I said \x00 and \u202e")
    store.put_conversation(conversation, *scans(conversation))
    assert store.conversation("c1") == (conversation, *scans(conversation))


def test_a_newer_version_replaces_the_older_one(store: Store) -> None:
    for conversation in (talk("hello", "old end"), talk("hello")):
        store.put_conversation(conversation, *scans(conversation))
    assert store.counts() == {"conversations": 1, "messages": 1, "evaluations": 0, "findings": 0}


def test_putting_the_same_twice_adds_nothing(store: Store) -> None:
    finding = found("f", "c1")
    for _ in range(2):
        store.put_answers([("c1", answer())])
        store.put_findings(["c1"], [finding])
    assert store.answers("c1", "j1") == {"m0": answer()}
    assert list(store.findings()) == [finding]
    assert store.counts()["evaluations"] == 1


def test_answers_of_another_judge_are_not_mixed_in(store: Store) -> None:
    store.put_answers([("c1", answer(judge_hash="j1")), ("c1", answer(judge_hash="j2", score=0.9))])
    assert store.answers("c1", "j2") == {"m0": answer(judge_hash="j2", score=0.9)}


def test_routes_come_back_and_a_new_version_of_the_conversation_forgets_them(store: Store) -> None:
    conversation = talk("hello")
    routes = (Route(message_id="m0", tier="deep", tier_before="focused", depth="thorough", width="prior_messages"),)
    store.put_conversation(conversation, *scans(conversation))
    assert store.routes("c1") == ()
    store.put_routes([("c1", routes)])
    assert store.routes("c1") == routes
    store.put_conversation(conversation, *scans(conversation))
    assert store.routes("c1") == ()


def test_every_judge_is_heard_of_one_message(store: Store) -> None:
    store.put_answers([("c1", answer(judge_hash="j1")), ("c1", answer(judge_hash="j2")), ("c1", answer("m1"))])
    assert [each.judge_hash for each in store.evaluations("c1", "m0")] == ["j1", "j2"]


def test_messages_of_one_id_are_found_in_every_conversation(store: Store) -> None:
    for name in ("b", "a"):
        conversation = talk("hello", conversation=name)
        store.put_conversation(conversation, *scans(conversation))
    assert store.find_message("m0") == ("a", "b")
    assert store.find_message("m9") == ()


def test_a_failed_write_leaves_nothing_behind(store: Store) -> None:
    twice = talk("one", "two")
    broken = Conversation(id="c1", source_format="jsonl", messages=(twice.messages[0], twice.messages[0]))
    with pytest.raises(StoreError):
        store.put_conversation(broken, (), ThreadScan(conversation="c1"))
    assert store.counts()["messages"] == 0


def test_a_conversation_that_is_not_there_is_an_error(store: Store) -> None:
    with pytest.raises(StoreError, match="nobody"):
        store.conversation("nobody")


def test_messages_come_back_by_id_in_the_order_of_their_conversation(store: Store) -> None:
    for mine in (talk("one", "two", "three"), talk("other", conversation="c2")):
        store.put_conversation(mine, *scans(mine))
    assert [message.text for message in store.messages("c1", ["m2", "m9", "m0", "m2"])] == ["one", "three"]
    assert [message.text for message in store.messages("c2", ("m0", "m1"))] == ["other"]
    assert store.messages("c3", ["m0"]) == ()


# ── histories ────────────────────────────────────────────────────────────────


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
        own.sort(key=lambda each: (each.time, each.position, each.id))
        assert store.history(agent, "j1") == tuple(own)
        assert [h.rows for h in store.histories("j1") if h.agent == agent] == [tuple(own)]


def test_packed_histories_are_the_histories(store: Store) -> None:
    rows = [row(f"m{n}", n, agent="ab"[n % 2], target="bo", position=n) for n in range(9)]
    odd = [row("fine", 3, agent="c", traits={"virtue": 0.12345}), row("untimed", None, agent="d", conversation="c0")]
    store.append([*rows, *odd])
    told = {each.agent: (each.changed, each.rows, each.cells) for each in store.packed("j1", least=1)}
    for each in store.histories("j1", least=1):
        cells = [pack(one) for one in each.rows]
        whole = None if None in cells else b"".join(one or b"" for one in cells)
        assert told.pop(each.agent) == (each.changed, len(each.rows), whole)
    assert told == {}
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
        yield found("f", "c1")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.append([row("m")], broken())
    assert store.history("kira", "j1") == ()
    assert list(store.findings()) == []
    assert store.changes() == 0


def test_findings_are_appended_and_dropped_with_their_rows(store: Store) -> None:
    store.append([row("m")], [found("f", "c1"), found("g", "c1")])
    store.append([row("n", 1)], [found("h", "c1")], gone=["f"])
    assert [finding.finding_id for finding in store.findings()] == ["g", "h"]
    assert [finding.finding_id for finding in store.findings("kira")] == ["g", "h"]
    assert list(store.findings("bo")) == []


def test_the_ids_of_findings_are_those_of_the_findings_that_stand(store: Store) -> None:
    assert store.finding_ids() == set()
    store.append([row("m")], [found("f", "c1"), found("g", "c1")])
    assert store.finding_ids() == {"f", "g"}
    store.append([row("n", 1)], [found("h", "c1")], gone=["f"])
    store.put_findings(["c1"], [found("h", "c1")])
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


# ── sweeps ───────────────────────────────────────────────────────────────────


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
    other = msgspec.structs.replace(found("o", "c1"), pattern="other")
    store.append([row("m")], [found("old", "c1"), other])
    now = store.changes()
    store.put_sweep("j1", [Swept("kira", now, (found("new", "c1"),))], {"darvo"}, {"s": Cursor(now, "kira")})
    assert [finding.finding_id for finding in store.findings()] == ["new", "o"]
    assert store.cursor("s") == (now, "kira")
    assert store.cursor("nobody's") == BEGINNING


def test_a_sweep_of_an_older_history_changes_nothing_of_its_agent(store: Store) -> None:
    store.append([row("m")], [found("old", "c1")])
    seen = store.changes()
    store.append([row("n", 1)], [found("live", "c1")])
    store.put_sweep("j1", [Swept("kira", seen, ())], {"darvo"}, {"s": Cursor(seen, "kira")})
    assert [finding.finding_id for finding in store.findings()] == ["live", "old"]
    assert changed(store, store.cursor("s")) == ["kira"]


def test_an_agent_that_loses_a_finding_to_an_audit_counts_as_changed(store: Store) -> None:
    store.append([row("m")], [found("f", "c1", "c2")])
    cursor = Cursor(store.changes(), "kira")
    store.put_findings(["c1"], [found("f", "c1", "c2")])
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
    aimed = msgspec.structs.replace(found("f", name), agent=name)
    store.put_sweep(name, [Swept(name, store.changes(), (aimed,))], {"darvo"}, {})
    assert list(store.findings(name)) == [aimed]


# ── forgetting ───────────────────────────────────────────────────────────────

SECRET = "Wren lives at the mill"


def two_talk(store: Store) -> None:
    """Kira tells bo a secret in c1, bo answers; both are scored, and there is a finding about kira towards bo."""
    said = talk(SECRET, "I know").messages
    messages = (said[0], msgspec.structs.replace(said[1], author="bo", agent="bo", target="kira"))
    conversation = Conversation(id="c1", source_format="jsonl", messages=messages, title=SECRET)
    store.put_conversation(conversation, *scans(conversation))
    store.put_answers([("c1", answer("m0")), ("c1", answer("m1"))])
    store.append([row("m0"), row("m1", 1, agent="bo", target="kira")], [found("f", "c1")])


def test_a_forgotten_agent_leaves_a_pseudonym_and_the_words_of_others(store: Store) -> None:
    two_talk(store)
    grave = forget(store, "kira", NOON)
    assert (grave.kind, grave.messages, store.graves()) == ("agent", 1, (grave,))
    conversation = store.conversation("c1")[0]
    name = pseudonym("kira")
    assert [(m.agent, m.target, m.text) for m in conversation.messages] == [(name, None, ""), ("bo", name, "I know")]
    assert conversation.title is None
    assert [each.message_id for each in store.evaluations("c1")] == ["m1"]
    assert store.history("kira", "j1") == ()
    assert [each.target for each in store.history("bo", "j1")] == [name]
    assert list(store.findings()) == []


def flagged_talk(store: Store) -> None:
    """Kira's third flagged message in c1, whose route and thread signal name her."""
    said = talk(SECRET, "act now")
    signal = ThreadSignal(kind="repeat_flags", agents=("kira",), message_ids=("m1",))
    store.put_conversation(said, scans(said)[0], ThreadScan(conversation="c1", signals=(signal,)))
    reasons = ("1 flag: urgency", "repeat flags: kira was flagged in 3 earlier messages")
    route = Route(
        message_id="m1", tier="deep", tier_before="focused", depth="thorough", width="prior_messages", reasons=reasons
    )
    store.put_routes([("c1", (route,))])


def told(store: Store) -> tuple[str, tuple[str, ...]]:
    (route,), (signal,) = store.routes("c1"), store.conversation("c1")[2].signals
    return route.reasons[1], signal.agents


def test_a_forgotten_agent_is_not_named_by_the_reasons_of_routes(store: Store) -> None:
    flagged_talk(store)
    forget(store, "kira", NOON)
    assert told(store) == (f"repeat flags: {pseudonym('kira')} was flagged in 3 earlier messages", (pseudonym("kira"),))


def test_a_forgotten_name_does_not_come_back_with_the_signals_of_another_store(store: Store, tmp_path: Path) -> None:
    store.append([row("m9", conversation="c9")])
    forget(store, "kira", NOON)
    with SQLiteStore(tmp_path / "other.db") as other:
        flagged_talk(other)
        take(store, records(other), NOON)
    assert told(store) == (f"repeat flags: {pseudonym('kira')} was flagged in 3 earlier messages", (pseudonym("kira"),))


def test_a_forgotten_conversation_leaves_only_its_grave(store: Store) -> None:
    two_talk(store)
    grave = forget(store, "c1", NOON)
    assert (grave.kind, grave.messages) == ("conversation", 2)
    assert store.counts() == {"conversations": 0, "messages": 0, "evaluations": 0, "findings": 0}
    assert store.agents("j1") == ()
    with pytest.raises(UsageError, match="no agent and no conversation"):
        forget(store, "c1", NOON)


def test_a_name_that_is_both_is_asked_for(store: Store) -> None:
    store.append([row("m", agent="c1")])
    with pytest.raises(UsageError, match="an agent and a conversation"):
        forget(store, "c1", NOON)
    assert forget(store, "c1", NOON, "agent").kind == "agent"
    assert store.history("c1", "j1") == ()


# ── handing over ─────────────────────────────────────────────────────────────


def test_an_export_holds_all_and_comes_back_once(store: Store, tmp_path: Path) -> None:
    two_talk(store)
    store.append([row("x", 3, conversation="rows only", judge_hash="j2", judge="other")])
    lines = [encode(record) for record in records(store)]
    with SQLiteStore(tmp_path / "other.db") as other:
        taken = take(other, read_records(lines, "lines"), NOON)
        assert (taken.threads, taken.rows, taken.findings, taken.older) == (2, 3, 1, 0)
        assert [encode(record) for record in records(other)] == lines
        assert take(other, read_records(lines, "lines"), NOON).older == 1
        assert [encode(record) for record in records(other)] == lines
    assert list(problems(store)) == []


def test_what_was_forgotten_comes_back_by_no_merge_and_is_forgotten_by_one(store: Store, tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "other.db") as other:
        for each in (store, other):
            two_talk(each)
        lines = list(records(other))
        forget(store, "kira", NOON)
        take(store, lines, NOON)
        assert store.history("kira", "j1") == ()
        assert store.conversation("c1")[0].messages[0].text == ""
        take(other, records(store), NOON)
        assert SECRET not in str(list(records(other)))


@pytest.mark.parametrize("name", ["kira", "c1"])
def test_what_was_forgotten_elsewhere_does_not_come_to_who_never_had_it(
    store: Store, tmp_path: Path, name: str
) -> None:
    with SQLiteStore(tmp_path / "other.db") as other, SQLiteStore(tmp_path / "third.db") as third:
        for each in (other, third):
            two_talk(each)
        forget(other, name, NOON)
        exported = [encode(record) for record in records(other)]
        take(store, read_records(exported, "lines"), NOON)
        assert [encode(record) for record in records(store)] == exported
        take(store, records(third), NOON)
        assert SECRET not in str(list(records(store)))
        assert store.graves() == other.graves()


def test_who_was_only_spoken_to_is_forgotten_by_a_merge_too(store: Store, tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "other.db") as other:
        for each in (store, other):
            each.append([row("1", 1, agent="bo", target="kira")])
        forget(other, "kira", NOON, "agent")
        take(store, records(other), NOON)
        assert "kira" not in str(list(records(store)))


def test_of_two_versions_of_a_conversation_the_longer_one_stands(store: Store, tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "other.db") as other:
        for each, said in ((store, talk("one", "two")), (other, talk("one", "two", "three"))):
            each.put_conversation(said, *scans(said))
        assert take(other, records(store), NOON).older == 1
        assert take(store, records(other), NOON).older == 0
    assert store.length("c1") == 3
    assert store.length("c9") is None


def test_a_wrong_record_is_named_with_its_line(tmp_path: Path) -> None:
    with SQLiteStore(tmp_path / "s.db") as fresh, pytest.raises(InputError, match=r"x\.jsonl:2: not a record"):
        take(fresh, read_records([b'{"record":"undersong-store","version":1}', b'{"record":"thr'], "x.jsonl"), NOON)
    with pytest.raises(InputError, match="newer"):
        list(read_records([b'{"record":"undersong-store","version":99}'], "x.jsonl"))
