"""The graph as people read it: texts, titles, counts, findings with evaluations, and the documented queries."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.conftest import NEO4J
from undersong.models import Finding, Indicator, Row
from undersong.patterns.catalog import load_rules
from undersong.patterns.detect import detect
from undersong.stores.neo4j import GraphStore

from .deeds import make_finding, row, scans, talk

PAGE = (Path(__file__).parents[2] / "docs" / "graph.md").read_text(encoding="utf-8")
QUERIES = re.findall(r"```cypher\n(.*?)```", PAGE, re.DOTALL)
TEXTS = ("You are wonderful.", "So wise!", "Nobody writes like you.", "You owe me.", "hm")
WARM, COLD = {"compassion": 0.9, "goodwill": 0.9, "manipulation": 0.1}, {
    "compassion": 0.1, "goodwill": 0.1, "manipulation": 0.9
}  # fmt: skip


def read(graph: GraphStore, query: str, **parameters: Any) -> list[dict[str, Any]]:
    return [record.data() for record in graph._read(query, **parameters)]


def rows() -> list[Row]:
    """Three warm messages to bo, a cold one with a demand, and one that nobody read."""
    scores = [WARM, WARM, WARM, COLD]
    seen = (Indicator(id="MAN-OBLIGATION", confidence=0.9),)
    scored = [
        row(f"m{n}", n, target="bo", traits={**dict.fromkeys(("fabrication",), 0.1), **each}, position=n, indicators=())
        for n, each in enumerate(scores)
    ]
    scored[3] = msgspec.structs.replace(scored[3], indicators=seen)
    return [*scored, row("m4", 4, state="unread", position=4)]


@pytest.fixture
def filled(graph: GraphStore) -> GraphStore:
    """A graph with a talk, its scores and its finding."""
    graph.seed()
    conversation = talk(*TEXTS)
    graph.put_conversation(conversation, *scans(conversation))
    (finding,) = [each for each in detect(rows(), load_rules()).findings if each.pattern == "love_bombing"]
    graph.append(rows(), [msgspec.structs.replace(finding, confidence=0.8)])
    return graph


def test_there_are_ten_queries_and_each_finds_something(filled: GraphStore) -> None:
    assert len(QUERIES) == 10
    empty = [query for query in QUERIES if not read(filled, query, agent="kira")]
    assert empty == []


def test_a_message_has_its_text_and_a_thread_its_title(filled: GraphStore) -> None:
    query = "MATCH (m:Message)-[:IN]->(t:Thread) RETURN m.text AS text, t.title AS title ORDER BY m.position"
    assert [each["text"] for each in read(filled, query)] == list(TEXTS)
    assert all(each["title"] for each in read(filled, query))


def test_an_agent_has_counts_and_averages(filled: GraphStore) -> None:
    (agent,) = read(filled, "MATCH (a:Agent) WHERE a.messages > 0 RETURN a AS a")
    facts = agent["a"]
    assert (facts["messages"], facts["evaluations"], facts["findings"], facts["likely_findings"]) == (5, 4, 1, 1)
    assert facts["avg_manipulation"] == pytest.approx(0.3)
    filled.append([row("m9", 9, traits={"manipulation": 0.8})])
    assert read(filled, "MATCH (a:Agent {name: 'kira'}) RETURN a.evaluations AS n, a.avg_manipulation AS mean") == [
        {"n": 5, "mean": pytest.approx(0.4)}
    ]


def test_a_finding_is_linked_to_its_evaluations_with_their_stages(filled: GraphStore) -> None:
    query = QUERIES[1]
    assert [(each["stage"], each["text"]) for each in read(filled, query)] == [
        ("PRAISE", TEXTS[0]), ("PRAISE", TEXTS[1]), ("PRAISE", TEXTS[2]), ("TURN", TEXTS[3]),
    ]  # fmt: skip


def test_a_finding_that_no_longer_holds_leaves_nothing_behind(filled: GraphStore) -> None:
    (name,) = filled.finding_ids()
    filled.append([], removed=[name])
    assert read(filled, "MATCH (f:Finding) RETURN f") == []
    assert read(filled, "MATCH (a:Agent {name: 'kira'}) RETURN a.findings AS n") == [{"n": 0}]


def test_patterns_have_titles_and_the_documented_name_is_the_rule_that_is_on(filled: GraphStore) -> None:
    (pattern,) = read(filled, "MATCH (p:Pattern {name: 'love_bombing_cycle'}) RETURN p.rule AS rule, p.title AS title")
    assert pattern == {"rule": "love_bombing", "title": "Love bombing"}
    assert read(filled, "MATCH (p:Pattern) WHERE p.title IS NULL RETURN p.name") == []


def test_the_taxonomy_is_there_when_a_graph_is_first_opened(graph: GraphStore) -> None:
    assert NEO4J
    count = "MATCH (i:Indicator) RETURN count(i) AS n"
    assert read(graph, count) == [{"n": 0}]
    with GraphStore(NEO4J, read_only=True) as reader:
        assert read(reader, count) == [{"n": 0}]
    with GraphStore(NEO4J) as opened:
        assert read(opened, count) == [{"n": 214}]


def test_a_graph_of_the_version_before_gets_texts_counts_and_findings(graph: GraphStore) -> None:
    conversation = talk(*TEXTS)
    graph.put_conversation(conversation, *scans(conversation))
    finding: Finding = msgspec.structs.replace(
        make_finding("f", "c1"), pattern="love_bombing", message_ids=("m0",), message_conversations=("c1",)
    )
    graph.append(rows(), [finding])
    older = (
        "MATCH (m:Message) REMOVE m.text WITH count(m) AS n MATCH (a:Agent) REMOVE a.messages, a.name"
        " WITH count(a) AS n MATCH (f:Finding) DETACH DELETE f"
        " WITH count(*) AS n MATCH (c:Cursor {name: 'version'}) SET c.change = 3"
    )
    graph._write(lambda transaction: transaction.run(older))
    with GraphStore(graph.address) as upgraded:
        assert read(upgraded, "MATCH (m:Message {message_id: 'm0'}) RETURN m.text AS text") == [{"text": TEXTS[0]}]
        assert read(upgraded, "MATCH (a:Agent {name: 'kira'}) RETURN a.messages AS n") == [{"n": 5}]
        assert read(upgraded, "MATCH (:Finding)-[:RESTS_ON]->(e) RETURN e.message_id AS id") == [{"id": "m0"}]
