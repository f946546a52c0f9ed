"""The graph in Neo4j has the first seed's names, and its six shapes as Cypher find what our literal rules find."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.conftest import NEO4J, Undersong
from tests.patterns.vectorized.worlds import with_missing
from undersong.errors import StoreError
from undersong.models import TIERS, TRAITS, Row
from undersong.patterns.catalog import all_rules
from undersong.patterns.detect import detect
from undersong.stores.neo4j import GraphStore, recipes
from undersong.stores.neo4j.connection import VERSION
from undersong.stores.neo4j.histories import remove_messages
from undersong.stores.protocol import open_store
from undersong.stores.sqlite import SQLiteStore
from undersong.stores.transfer import export_records, import_records

from .deeds import NOON, answer, make_finding, row, scans, talk


def pairs(graph: GraphStore, query: str, **parameters: Any) -> list[tuple[Any, ...]]:
    return [tuple(record) for record in graph._read(query, **parameters)]


def test_one_scored_message_makes_the_seeds_nodes_and_relationships(graph: GraphStore) -> None:
    conversation = talk("hello")
    graph.put_conversation(conversation, *scans(conversation))
    graph.put_answers([("c1", answer())])
    seen = msgspec.convert([{"id": "MAN-URGENCY", "confidence": 0.75}], tuple[Any, ...])
    graph.append([msgspec.convert({**msgspec.to_builtins(row("m0")), "indicators": seen}, Row)])
    path = (
        "MATCH (a:Agent)-[:EVALUATED]->(e:Evaluation)-[:OF]->(:Message)-[:IN]->(t:Thread),"
        " (e)-[d:DETECTED]->(i:Indicator)"
        " RETURN a.agent_id, e.trait_compassion, e.created_at, t.thread_id, i.indicator_id, d.confidence"
    )
    ((agent, compassion, created, thread, indicator, confidence),) = pairs(graph, path)
    assert (agent, compassion, thread, indicator, confidence) == ("kira", 0.5, "c1", "MAN-URGENCY", 0.75)
    assert created.to_native() == NOON


def test_ranks_are_no_levels_in_the_graph(graph: GraphStore) -> None:
    query = (
        "MATCH (e:Evaluation) RETURN e.message_id, e.scale, e.trait_compassion, e.rank_compassion ORDER BY e.message_id"
    )
    wanted = [("a", "level", 0.5, None), ("b", "rank", None, 0.5)]
    graph.append([row("a", scale="rank"), row("b", 1)])
    graph.append([row("a", scale="level"), row("b", 1, scale="rank")])
    assert pairs(graph, query) == wanted
    older = "MATCH (e:Evaluation {message_id: 'b'}) SET e.trait_compassion = 0.5 REMOVE e.scale, e.rank_compassion"
    graph._write(
        lambda transaction: transaction.run(f"{older} WITH e MATCH (c:Cursor {{name: 'version'}}) SET c.change = 1")
    )
    with GraphStore(graph.address) as upgraded:
        assert pairs(upgraded, query) == wanted
        assert pairs(upgraded, "MATCH (c:Cursor {name: 'version'}) RETURN c.change") == [(VERSION,)]


def test_precedes_follows_message_time_whatever_comes_late_or_is_unread(graph: GraphStore) -> None:
    for late in (row("c", 9), row("a", 1), row("u", 4, state="unread"), row("b", 5), row("z", 7, agent="bo")):
        graph.append([late])
    chain = "MATCH (x)-[:PRECEDES]->(y) RETURN x.message_id, y.message_id ORDER BY x.time"
    assert pairs(graph, chain) == [("a", "b"), ("b", "c")]
    graph.append([row("b", 20)])
    assert pairs(graph, chain) == [("a", "c"), ("c", "b")]


@pytest.mark.parametrize("seed", range(4))
def test_precedes_is_the_order_of_time_however_rows_come_change_and_leave(graph: GraphStore, seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(12):
        names = dice.sample("abcdefghij", dice.randint(1, 4))
        graph.append([row(name, dice.randrange(8), agent=dice.choice(("kira", "bo"))) for name in names])
    gone = [("c1", name) for name in dice.sample("abcdefghij", 3)]
    graph._write(lambda transaction: remove_messages(transaction, gone))
    assert chained(graph) == in_time(graph)


@pytest.mark.parametrize("before", ["", "MATCH ()-[r:JUDGED_BY]->() REMOVE r.last_id, r.last_time"])
def test_precedes_goes_on_from_the_last_row_also_in_a_graph_that_did_not_know_it(
    graph: GraphStore, before: str
) -> None:
    for first in range(0, 40, 4):
        later = [row(f"m{n:02}", n, agent="kira" if n % 3 else "bo") for n in range(first, first + 4)]
        graph.append(reversed([*later, row(f"u{first}", first, state="unread")]))
        if before:
            graph._run(before)
        assert chained(graph) == in_time(graph)
    graph.append([row("m40", 40), row("m05", 50)])
    graph._write(lambda transaction: remove_messages(transaction, [("c1", "m05")]))
    graph.append([row("m41", 41)])
    assert chained(graph) == in_time(graph)
    assert ("m40", "m41") in chained(graph)


def chained(graph: GraphStore) -> set[tuple[str, str]]:
    """The ids of messages that PRECEDES joins."""
    return {(one, other) for one, other in pairs(graph, "MATCH (x)-[:PRECEDES]->(y) RETURN x.message_id, y.message_id")}


def in_time(graph: GraphStore) -> set[tuple[str, str]]:
    """Neighbours in the histories of both agents, as far as they were read."""
    histories = (graph.history(agent, "j1") for agent in ("kira", "bo"))
    return {pair for rows in histories for pair in pairwise(each.id for each in rows if each.state == "scored")}


def test_conversations_without_times_are_chains_of_their_own(graph: GraphStore) -> None:
    graph.append(row(f"{name}{n}", None, conversation=name, position=n) for name in "xy" for n in range(2))
    chain = "MATCH (x)-[:PRECEDES]->(y) RETURN x.message_id, y.message_id ORDER BY x.message_id"
    assert pairs(graph, chain) == [("x0", "x1"), ("y0", "y1")]


def test_a_finding_is_exhibits_pattern_with_the_seeds_properties_and_name(graph: GraphStore) -> None:
    finding = msgspec.structs.replace(
        make_finding("f", "c1"), pattern="love_bombing", message_ids=("m0", "m1"),
        message_conversations=("c1", "c1"),
        stages=(("PRAISE", "m0"), ("TURN", "m1")), confidence=0.8, strength=0.5, judges=("offline",),
    )  # fmt: skip
    graph.append([row("m0"), row("m1", 1)], [finding])
    graph.append([], [finding])
    path = (
        "MATCH (a:Agent)-[r:EXHIBITS_PATTERN]->(p:Pattern), (s:Evaluation {evaluation_id: r.start_eval_id}),"
        " (e:Evaluation {evaluation_id: r.end_eval_id})"
        " RETURN a.agent_id, p.name, r.confidence, r.eval_count, r.finding_id, s.message_id, e.message_id"
    )
    assert pairs(graph, path) == [("kira", "love_bombing_cycle", 0.8, 2, "f", "m0", "m1")]


def test_a_query_sees_a_missing_score_as_null_and_by_its_name(graph: GraphStore) -> None:
    scores = dict.fromkeys(TRAITS, 0.25)
    graph.append([row("m0", 0, traits=scores | {"accuracy": None}), row("m1", 1, traits=scores | {"accuracy": 0.75})])
    average = "MATCH (e:Evaluation) RETURN avg(e.trait_accuracy), count(e.trait_accuracy), count(e)"
    assert pairs(graph, average) == [(0.75, 1, 2)]
    assert pairs(graph, "MATCH (e:Evaluation) WHERE NOT e.trait_accuracy > 0.5 RETURN e.message_id") == []
    missing = "MATCH (e:Evaluation) WHERE 'accuracy' IN e.not_applicable RETURN e.message_id, e.trait_virtue"
    assert pairs(graph, missing) == [("m0", 0.25)]
    graph.append([row("m0", 0, traits=scores)])
    assert pairs(graph, average) == [(0.5, 2, 2)]
    assert pairs(graph, missing) == []


def test_seeding_twice_gives_one_taxonomy(graph: GraphStore) -> None:
    counts = []
    for _ in range(2):
        graph.seed()
        counts.append(pairs(graph, "MATCH (n) WHERE NOT n:Cursor RETURN labels(n)[0], count(*) ORDER BY 1"))
    assert counts[0] == counts[1]
    by_label = dict(counts[0])
    assert (by_label["Dimension"], by_label["Trait"], by_label["Indicator"]) == (3, 12, 214)
    composed = "MATCH (p:Pattern {pattern_id: 'SP-01'})-[:COMPOSED_OF]->(i)-[:BELONGS_TO]->(t) RETURN p.name, t.name"
    assert sorted(pairs(graph, composed)) == [
        ("diffuse_sandbagging", "deception"),
        ("diffuse_sandbagging", "fabrication"),
    ]


def world(seed: int, agents: int = 30, messages: int = 60) -> list[Row]:
    """Agents with scores at both ends of the scale, so that every shape comes about, some rows unread or untimed,
    and some scores missing.
    """
    dice = random.Random(seed)
    rows = []
    for agent in range(agents):
        rates = dict.fromkeys(TRAITS, dice.choice((0.0, 0.0, 0.1, 0.4)))
        shapes = [dice.choice((0.1, 0.4, 0.8)) for _ in TRAITS]
        watched = dice.random() < 0.3
        for n in range(messages):
            tier = dice.choice(TIERS)
            scores = {
                t: round(min(1.0, max(0.0, dice.choice((0.1, s, 0.9)) + dice.uniform(-0.1, 0.1))), 3)
                for t, s in zip(TRAITS, shapes, strict=True)
            }
            if watched:
                scores["manipulation"] = 0.8 if tier == "standard" else 0.05
            if dice.random() < 0.6:
                scores["accuracy"] = 0.95
            scores = with_missing(dice, scores, rates)
            state = "unread" if dice.random() < 0.1 else "scored"
            minute = None if agent % 7 == 0 else dice.randrange(messages)
            name = f"w{agent % 7 and agent % 3}" if minute is not None else f"u{agent}-{n % 2}"
            rows.append(
                row(
                    f"{agent}-{n}",
                    minute,
                    f"a{agent}",
                    state,
                    traits=scores if state == "scored" else None,
                    tier=tier,
                    position=n,
                    conversation=name,
                )
            )
    return rows


@pytest.mark.parametrize("seed", range(2))
def test_each_recipe_finds_what_our_literal_rule_finds(graph: GraphStore, seed: int) -> None:
    rows = world(seed)
    graph.append(rows)
    for rule in all_rules():
        if not rule.id.endswith("_literal"):
            continue
        ours = {(f.agent, f.message_ids): f.strength for f in detect(rows, [rule]).findings}
        theirs = {(r["agent"], tuple(r["message_ids"])): r["confidence"] for r in graph.run_recipe(rule.id, "j1")}
        assert ours.keys() == theirs.keys(), rule.id
        assert theirs == pytest.approx(ours)
        assert ours, rule.id
    assert len(recipes()) == 6


def test_the_pipeline_runs_on_the_graph_and_a_rerun_says_the_same(graph: GraphStore, undersong: Undersong) -> None:
    assert NEO4J
    first = undersong("audit", "samples", "--draws", "9", "--store", NEO4J, "--out", "one")
    again = undersong("audit", "samples", "--draws", "9", "--store", NEO4J, "--out", "two")
    alone = undersong("audit", "samples", "--draws", "9", "--out", "three")
    assert (first.code, again.code, alone.code) == (0, 0, 0)
    for name in ("manifest.json", "evaluations.jsonl", "findings.jsonl"):
        assert len({(Path(folder) / name).read_bytes() for folder in ("one", "two", "three")}) == 1
    assert graph.counts()["messages"] == 25
    judge = graph.judges()[0].judge_hash
    message = graph.history(graph.agents(judge)[0].agent, judge)[0].id
    assert "scored by offline" in undersong("explain", message, "--all", "--store", NEO4J).out


def test_sync_and_check_and_seed_from_the_command_line(graph: GraphStore, undersong: Undersong) -> None:
    assert NEO4J
    undersong("audit", "samples", "--draws", "9")
    assert "2 conversations, 25 rows" in undersong("store", "sync", NEO4J).out
    assert "2 kept as they were" in undersong("store", "sync", NEO4J).out
    assert undersong("store", "seed", "--store", NEO4J).code == 0
    assert "hold" in undersong("store", "check", "--store", NEO4J).out
    assert "Neo4j Kernel" in undersong("store", "info", "--store", NEO4J).out
    with SQLiteStore(Path("undersong-report.db")) as local_store:
        assert list(export_records(graph)) == list(export_records(local_store))


CHANGES = (
    "MATCH (m:Message {message_id: 'm1'}) SET m.text = m.text + '.'",
    "MATCH (m:Message {message_id: 'm1'}), (o:Message {message_id: 'm0', thread_id: 'c2'}) SET m.body = o.body",
    "MATCH (m:Message {message_id: 'm1'}) DETACH DELETE m",
    "MATCH (e:Evaluation {message_id: 'm0'}) SET e.trait_virtue = 0.26",
    "MATCH ()-[r:EXHIBITS_PATTERN]->() SET r.confidence = 0.9",
    "MATCH ()-[r:EXHIBITS_PATTERN]->() DELETE r",
    "MATCH (m:Message {message_id: 'm0'})-[r:IN]->(), (t:Thread {thread_id: 'c2'}) DELETE r CREATE (m)-[:IN]->(t)",
    "CREATE (:Agent {agent_id: 'nobody'})",
)


@pytest.mark.parametrize("change", CHANGES)
def test_a_digest_kept_elsewhere_shows_what_a_query_changed(
    graph: GraphStore, undersong: Undersong, change: str
) -> None:
    for conversation in (talk("you are wonderful", "send the money"), talk("hello", conversation="c2")):
        graph.put_conversation(conversation, *scans(conversation))
    graph.append([row("m0"), row("m1", 1)], [make_finding("f1", "c1")])
    command = ("store", "check", "--store", graph.address)
    digest = undersong(*command).out.split("digest ")[1].strip()
    graph.seed()
    graph._write(lambda transaction: transaction.run("CREATE (:Note {text: 'of somebody else'})"))
    assert undersong(*command, "--digest", digest).code == 0
    graph._write(lambda transaction: transaction.run(change))
    changed = undersong(*command, "--digest", digest)
    assert changed.code == 4
    assert "not that of the digest" in changed.out


def test_a_graph_and_a_file_hold_the_same(graph: GraphStore, tmp_path: Path) -> None:
    graph.append(world(3, agents=5), [make_finding("f", "c1")])
    with SQLiteStore(tmp_path / "s.db") as file:
        import_records(file, export_records(graph), NOON)
        assert list(export_records(file)) == list(export_records(graph))


def test_a_server_that_does_not_answer_is_told_with_its_address() -> None:
    with pytest.raises(StoreError, match=r"127\.0\.0\.1:1"):
        open_store("bolt://127.0.0.1:1")
