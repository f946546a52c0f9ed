#!/usr/bin/env python3
"""The picture of docs/graph.md, drawn from a graph in a real Neo4j: one finding and all that it rests on.

usage: python tests/neo4j/serve.py -- python -m tests.neo4j.picture   (writes docs/graph.svg)
"""

from __future__ import annotations

import os
from html import escape
from pathlib import Path
from typing import Any

import msgspec

from tests.stores.deeds import scans, talk
from tests.stores.test_graph_queries import TEXTS, rows
from undersong.patterns.catalog import load_rules
from undersong.patterns.detect import detect
from undersong.stores.neo4j import GraphStore

OUT = Path(__file__).parents[2] / "docs" / "graph.svg"
COLOURS = {
    "Agent": "#f79767", "Finding": "#f16667", "Pattern": "#57c7e3", "Evaluation": "#8dcc93", "Message": "#d9c8ae",
    "Thread": "#c990c0", "Indicator": "#ffc454",
}  # fmt: skip
RADIUS = {"Finding": 44, "Agent": 40, "Pattern": 40, "Thread": 36, "Evaluation": 28, "Message": 46, "Indicator": 38}
QUERY = """
MATCH (a:Agent)-[:HAS_FINDING]->(f:Finding)-[:MATCHES]->(p:Pattern)
MATCH (f)-[r:RESTS_ON]->(e:Evaluation)-[:OF]->(m:Message)-[:IN]->(t:Thread)
OPTIONAL MATCH (e)-[:DETECTED]->(i:Indicator)
RETURN a.name AS agent, f.name AS finding, f.confidence AS confidence, p.name AS pattern, r.stage AS stage,
       e.trait_manipulation AS manipulation, e.trait_compassion AS compassion, m.text AS text, t.title AS thread,
       i.indicator_id AS indicator
ORDER BY r.place
"""
Point = tuple[float, float]


class Picture:
    """Circles with captions, and arrows with names between them."""

    def __init__(self) -> None:
        self.nodes: list[str] = []
        self.arrows: list[str] = []

    def node(self, kind: str, at: Point, *lines: str) -> tuple[Point, float]:
        """A circle; its place and radius for ``arrow``."""
        x, y, radius = *at, RADIUS[kind]
        first = y - 5.5 * (len(lines) - 1)
        words = "".join(
            f'<text x="{x}" y="{first + 11 * n:.1f}" class="c">{escape(line)}</text>' for n, line in enumerate(lines)
        )
        self.nodes.append(f'<circle cx="{x}" cy="{y}" r="{radius}" fill="{COLOURS[kind]}"/>{words}')
        return at, radius

    def arrow(self, start: tuple[Point, float], end: tuple[Point, float], name: str) -> None:
        """An arrow from edge to edge."""
        (x1, y1), (x2, y2) = start[0], end[0]
        length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
        dx, dy = (x2 - x1) / length, (y2 - y1) / length
        ax, ay, bx, by = x1 + dx * start[1], y1 + dy * start[1], x2 - dx * (end[1] + 5), y2 - dy * (end[1] + 5)
        self.arrows.append(f'<line x1="{ax:.1f}" y1="{ay:.1f}" x2="{bx:.1f}" y2="{by:.1f}"/>')
        self.arrows.append(f'<text x="{(ax + bx) / 2:.1f}" y="{(ay + by) / 2 - 3:.1f}" class="r">{escape(name)}</text>')

    def svg(self, width: int, height: int) -> str:
        """The document."""
        style = (
            ".c{font:10px sans-serif;text-anchor:middle;dominant-baseline:middle}"
            ".r{font:9px sans-serif;text-anchor:middle;fill:#555}line{stroke:#888;marker-end:url(#a)}"
        )
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            f'role="img"><title>A finding in the graph</title><style>{style}</style><defs>'
            '<marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            '<path d="M0 0L8 4L0 8z" fill="#888"/>'
            '</marker></defs><rect width="100%" height="100%" fill="#fff"/>'
        )
        return head + "".join((*self.arrows, *self.nodes)) + "</svg>\n"


def drawn(records: list[dict[str, Any]]) -> str:
    """The picture of the records of QUERY."""
    picture, first = Picture(), records[0]
    finding = picture.node("Finding", (480, 80), first["finding"], f"confidence {first['confidence']}")
    agent = picture.node("Agent", (180, 80), first["agent"])
    pattern = picture.node("Pattern", (780, 80), *first["pattern"].rsplit("_", 1))
    thread = picture.node("Thread", (480, 530), first["thread"])
    picture.arrow(agent, finding, "HAS_FINDING")
    picture.arrow(finding, pattern, "MATCHES")
    before = None
    for n, record in enumerate(records):
        x = 150 + 220 * n
        scores = (f"comp. {record['compassion']}", f"man. {record['manipulation']}")
        evaluation = picture.node("Evaluation", (x, 240), *scores)
        message = picture.node("Message", (x, 390), *wrapped(record["text"]))
        picture.arrow(finding, evaluation, f"RESTS_ON {record['stage']}")
        picture.arrow(evaluation, message, "OF")
        picture.arrow(message, thread, "IN")
        if before:
            picture.arrow(before, evaluation, "PRECEDES")
        if record["indicator"]:
            seen = picture.node("Indicator", (x + 95, 320), *record["indicator"].split("-"))
            picture.arrow(evaluation, seen, "DETECTED")
        before = evaluation
    return picture.svg(960, 580)


def wrapped(text: str, width: int = 14) -> list[str]:
    """The words in lines of so many letters."""
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) > width and lines[-1]:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def main() -> None:
    """Fill the graph and draw it."""
    with GraphStore(os.environ["UNDERSONG_NEO4J"]) as graph:
        conversation = talk(*TEXTS)
        graph.put_conversation(conversation, *scans(conversation))
        detection = detect(rows(), load_rules())
        (finding,) = [each for each in detection.findings if each.pattern == "love_bombing"]
        graph.append(rows(), [msgspec.structs.replace(finding, confidence=0.8)])
        OUT.write_text(drawn([record.data() for record in graph._read(QUERY)]), encoding="utf-8")


if __name__ == "__main__":
    main()
