#!/usr/bin/env python3
"""What the store costs beside plain SQL, and plain Cypher, over the same tables and the same rows, in the same run.

usage: store.py [--rows 100000] [--agents 1000] [--graph bolt://HOST:PORT [--graph-rows 8000]]
CPU seconds of this process for SQLite, elapsed ones for a server; the least of three. Plain SQL inserts the same
bytes into the same tables and reads them back as dictionaries; plain Cypher makes the same nodes and relationships.
Neither looks whether anything changed, and neither knows which agents a sweep has to read again. ``--rows 0`` leaves
SQLite out; tests/neo4j/serve.py runs a command beside a server whose address is in UNDERSONG_NEO4J.
"""

from __future__ import annotations

import argparse
import os
import random
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from undersong.models import NEGATIVE_TRAITS, TRAITS, Row
from undersong.patterns.catalog import load_rules
from undersong.pipeline.history_sweep import Sweep, sweep
from undersong.rows.binary import microseconds, pack
from undersong.stores.codec import row_body
from undersong.stores.sqlite import SQLiteStore
from undersong.stores.sqlite.connection import open_database

if TYPE_CHECKING:
    from undersong.stores.neo4j import GraphStore

BATCH, REPEATS, ASKED = 1_000, 3, 300
GRAPH_WARM_UP = 2  # batches for which a server plans, and compiles
START = datetime(2026, 1, 1, tzinfo=UTC)
JUDGE = "bench"
BAD, HARM, SLIP = 50, 0.3, 0.0  # every 50th agent is harmful in 30 % of its messages, the others in none
LOW, HIGH = (2, 8), (5, 4)  # of a beta distribution; as in bench/detect.py


def rows(number: int, agents: int, seed: int = 1) -> Iterator[list[Row]]:
    """Rows of many agents in many threads, as they come in time, a batch at a time."""
    dice = random.Random(seed)
    batch = []
    for n in range(number):
        agent = dice.randrange(agents)
        target = f"agent{(agent + dice.randrange(4)) % agents}"
        batch.append(
            Row(
                id=f"m{n}", conversation=f"t{n // 50}", position=n % 50, time=START + timedelta(seconds=7 * n),
                agent=f"agent{agent}", target=target, tier="deep", state="scored", judge="offline", judge_hash=JUDGE,
                traits=scores(dice, harmful=dice.random() < (HARM if agent % BAD == 0 else SLIP)),
            )
        )  # fmt: skip
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def scores(dice: random.Random, harmful: bool) -> dict[str, float]:
    """Twelve scores as judges give them: low where a trait speaks against the author, unless the message is harmful."""
    return {
        trait: round(dice.betavariate(*(HIGH if harmful == (trait in NEGATIVE_TRAITS) else LOW)), 3) for trait in TRAITS
    }


def plain_append(db: sqlite3.Connection, batch: list[Row]) -> None:
    """What one would write by hand."""
    db.execute("BEGIN IMMEDIATE")
    db.executemany(
        "INSERT OR IGNORE INTO history VALUES (?, ?, 1, ?, ?, ?, ?, ?, ?)",
        (
            (
                r.conversation,
                r.id,
                r.agent,
                microseconds(r.time) if r.time else None,
                r.position,
                r.state,
                row_body(r),
                pack(r),
            )
            for r in batch
        ),
    )
    db.execute("COMMIT")


def plain_history(db: sqlite3.Connection, agent: str) -> list[dict[str, object]]:
    """What one would read by hand: a dictionary a row."""
    query = "SELECT body FROM history WHERE agent = ? AND judge = 1 ORDER BY time, position, id, conversation"
    return [msgspec.json.decode(body) for (body,) in db.execute(query, (agent,))]


def cpu(work: Callable[[], object]) -> float:
    """CPU seconds of some work."""
    began = time.process_time()
    work()
    return time.process_time() - began


def append_both(folder: Path, number: int, agents: int) -> None:
    """Append everything both ways, batch by batch in turn, so that both meet the same noise."""
    ours, plain = 0.0, 0.0
    db, turns = open_database(folder / "plain.db")
    db.execute("PRAGMA synchronous = NORMAL")
    with SQLiteStore(folder / "ours.db") as store:
        for place, batch in enumerate(rows(number, agents)):
            work = (lambda b=batch: store.append(b)), (lambda b=batch: plain_append(db, b))  # type: ignore[misc]
            times = [cpu(each) for each in (work if place % 2 else work[::-1])]
            mine, theirs = times if place % 2 else times[::-1]
            ours, plain = ours + mine, plain + theirs
            if place % 16 == 0:
                plain += cpu(lambda: db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall())
    show("append, microseconds a row", ours * 1e6 / number, plain * 1e6 / number)
    db.close()
    turns.close()


def histories_both(folder: Path, agents: int) -> None:
    """Read the histories of some agents both ways."""
    dice = random.Random(2)
    names = [f"agent{dice.randrange(agents)}" for _ in range(ASKED)]
    db = sqlite3.connect(folder / "plain.db")
    with SQLiteStore(folder / "ours.db", read_only=True) as store:
        mine, theirs = [], []
        for _ in range(REPEATS):
            mine.append([cpu(lambda n=n: store.history(n, JUDGE)) * 1e3 for n in names])  # type: ignore[misc]
            theirs.append([cpu(lambda n=n: plain_history(db, n)) * 1e3 for n in names])  # type: ignore[misc]
        ours, plain = (min(map(statistics.median, each)) for each in (mine, theirs))
        size = statistics.mean(len(store.history(name, JUDGE)) for name in names)
    show(f"history of {size:.0f} rows, ms (median)", ours, plain)
    print(f"{'':<40} p99 {min(sorted(each)[int(0.99 * len(each))] for each in mine):.2f} ms")
    db.close()


def sweeps(folder: Path, number: int, agents: int) -> None:
    """Sweep everything with all shipped rules: at first, when kernels are loaded; again; and as a new rule would.

    Then with nothing to do, and after one percent more rows, of a percent of the agents and of any.
    """
    rules = load_rules()
    with SQLiteStore(folder / "ours.db") as store:
        done: list[Sweep] = []
        first = cpu(lambda: sweep(store, rules, JUDGE))
        again = min(cpu(lambda: done.append(sweep(store, rules, JUDGE, again=True))) for _ in range(REPEATS))
        packed = cpu(lambda: [history.rows for history in store.packed(JUDGE)])
        objects = cpu(lambda: [len(history.rows) for history in store.histories(JUDGE)])
        store._db.execute("DELETE FROM swept")
        reading = cpu(lambda: [history.rows for history in store.packed(JUDGE)])
        unkept = cpu(lambda: sweep(store, rules, JUDGE, again=True))
        nothing = cpu(lambda: sweep(store, rules, JUDGE))
        accused = len({finding.agent for finding in store.findings()})
        print(
            f"sweep with {len(rules)} rules: {number / again:,.0f} rows per CPU second, the first {number / first:,.0f}"
        )
        print(f"  {number / unkept:,.0f} where no packed history is kept from a sweep before")
        print(f"  {done[0].findings:,} findings about {accused:,} of {done[0].agents:,} agents")
        speeds = ", ".join(f"{name} {number / spent:,.0f}" for name, spent in (("kept", packed), ("packed", reading)))
        print(f"reading all histories alone: {speeds}, as rows {number / objects:,.0f} per CPU second")
        print(f"sweep with nothing changed: {nothing * 1e3:.0f} ms")
        for name, some in ((f"of {agents // 100:,} agents", agents // 100), ("of any agent", agents)):
            store.append(later(number, some, name))
            spent = cpu(lambda: done.append(sweep(store, rules, JUDGE)))
            share = f"{done[-1].agents:,} agents with {done[-1].rows:,} rows read"
            print(f"sweep after one percent more rows {name}: {spent / again:.3f} of a full one, {share}")


def later(number: int, agents: int, name: str) -> Iterator[Row]:
    """One percent more rows, after all others."""
    for batch in rows(number // 100, max(1, agents), seed=2):
        for row in batch:
            time_ = row.time and row.time + timedelta(seconds=7 * number)
            yield msgspec.structs.replace(row, conversation=f"{name}{row.conversation}", time=time_)


PLAIN_CYPHER = """
UNWIND $items AS item
MERGE (a:Agent {agent_id: item.properties.agent_id})
MERGE (t:Thread {thread_id: item.properties.thread_id})
MERGE (m:Message {thread_id: item.properties.thread_id, message_id: item.properties.message_id})
MERGE (m)-[:IN]->(t)
MERGE (e:Evaluation {evaluation_id: item.id})
SET e += item.properties, e += item.traits
MERGE (e)-[:OF]->(m)
MERGE (a)-[:EVALUATED]->(e)
"""
PLAIN_CYPHER_READ = """
MATCH (:Agent {agent_id: $agent})-[:EVALUATED]->(e:Evaluation {judge_hash: $judge})
RETURN e.body AS body ORDER BY e.time, e.position, e.message_id
"""


def graph_both(address: str, number: int) -> None:
    """The same in Neo4j: elapsed seconds, since the work is the server's."""
    from undersong.stores.neo4j import GraphStore
    from undersong.stores.neo4j.histories import item

    agents, run = max(1, number // 100), f"{time.time_ns()}-"
    names = [f"{run}agent{n}" for n in range(min(agents, ASKED))]
    with GraphStore(address) as graph:
        times: tuple[list[float], list[float]] = [], []
        for place, batch in enumerate(rows(number, agents)):
            mine = [named(row, f"ours-{run}") for row in batch]
            items = [item(f"{run}{row.id}", named(row, run)) for row in batch]
            work = (lambda m=mine: graph.append(m)), (lambda i=items: plain_graph(graph, i))  # type: ignore[misc]
            for way in (0, 1) if place % 2 else (1, 0):
                spent = elapsed(work[way]) * 1e3 / len(batch)
                times[way].extend([spent] if place >= GRAPH_WARM_UP else [])
        show("Neo4j: append, ms a row (median)", *map(statistics.median, times))
        pairs = [graph_history(graph, name) for name in names]
    show("Neo4j: history, ms (median)", *(statistics.median(each) for each in zip(*pairs, strict=True)))


def plain_graph(graph: GraphStore, items: list[dict[str, Any]]) -> None:
    """What one would write by hand, in one transaction."""
    with graph._driver.session() as session:
        session.execute_write(lambda transaction: transaction.run(PLAIN_CYPHER, items=items).consume())


def elapsed(work: Callable[[], object]) -> float:
    """Elapsed seconds of some work."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def graph_history(graph: GraphStore, name: str) -> tuple[float, float]:
    """Milliseconds for one history, ours and by hand."""
    began = time.perf_counter()
    graph.history(f"ours-{name}", JUDGE)
    middle = time.perf_counter()
    records = graph._driver.execute_query(PLAIN_CYPHER_READ, agent=name, judge=JUDGE).records
    for record in records:
        msgspec.json.decode(record["body"])
    return (middle - began) * 1e3, (time.perf_counter() - middle) * 1e3


def named(row: Row, run: str) -> Row:
    """The row under names of this run alone, so that a run finds nothing of an earlier one."""
    return msgspec.structs.replace(row, conversation=run + row.conversation, agent=run + row.agent)


def show(what: str, ours: float, plain: float) -> None:
    """One line: ours, plain, and how much more ours takes."""
    print(f"{what:<40} ours {ours:8.3f}  plain {plain:8.3f}  overhead {100 * (ours / plain - 1):+.0f} %")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--agents", type=int, default=1_000)
    parser.add_argument("--graph", default=os.environ.get("UNDERSONG_NEO4J"))
    parser.add_argument("--graph-rows", type=int, default=8_000)
    options = parser.parse_args()
    if options.graph and options.graph_rows <= GRAPH_WARM_UP * BATCH:
        parser.error(f"--graph-rows {options.graph_rows}: the first {GRAPH_WARM_UP * BATCH} are left out; give more")
    if options.rows:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            print(f"{options.rows:,} rows of {options.agents:,} agents")
            append_both(folder, options.rows, options.agents)
            histories_both(folder, options.agents)
            sweeps(folder, options.rows, options.agents)
    if options.graph:
        graph_both(options.graph, options.graph_rows)


if __name__ == "__main__":
    main()
