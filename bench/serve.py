#!/usr/bin/env python3
"""How soon the first byte of each page of a large store comes: the real server, asked over HTTP.

usage: serve.py [--messages 100000] [--findings 10000] [--times 15] [--writer] [--store FILE|postgresql://…]
Prints what a million additions take here (50 ms where nothing else runs), the first request, the median and the slowest
of the others in milliseconds, and the CPU time of the server for each of them (user and system, of all its threads),
which other programs on the machine lengthen less; that of a PostgreSQL is not in it. Exit code 1 where a median is
above the bound of 100 ms. ``--writer``: another process writes a conversation into the store every 200 ms meanwhile.
``--store``: where the store is made, or is already from an earlier run.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

from tests.serve.world import conversation, fill
from undersong.models import Scan, ThreadScan
from undersong.stores.protocol import open_store

BOUND = 100.0  # ms
SIZE = 20  # messages of a conversation
PAGES = (
    "/", "/findings", "/findings?sort=recent", "/findings?level=high&sure=likely", "/findings?reviewed=none",
    "/findings?q=garden+rain", "/findings/{finding}", "/review", "/review?from=lead",
    "/review?from=claim", "/review?conversation=talk-00007", "/review/decisions", "/review/figures", "/leads",
    "/claims", "/agents", "/agents?name=ada",
    "/agent?name=talk-00007/ada", "/conversations", "/conversations?q=garden", "/conversations?title=garden",
    "/conversation?id=talk-00007", "/compare", "/compare?by=agent", "/live", "/rules", "/rules/darvo", "/runs",
    "/api/v1/findings?limit=50", "/api/v1/agents", "/api/v1/conversations", "/api/v1/search?words=garden",
)  # fmt: skip


def asked(port: int, path: str) -> tuple[float, int, bytes]:
    """Milliseconds to the first byte of the answer, its status, and the answer."""
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    connection.connect()
    began = time.perf_counter()
    connection.request("GET", path)
    answer = connection.getresponse()
    took = 1000 * (time.perf_counter() - began)
    body = answer.read()
    connection.close()
    return took, answer.status, body


@contextmanager
def serving(store: str) -> Iterator[tuple[int, int]]:
    """The port and the process of a server that was started as people start it."""
    command = [sys.executable, "-m", "undersong", "serve", str(store), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield urlsplit(process.stdout.readline().strip()).port or 0, process.pid
        finally:
            process.terminate()


def cpu(process: int) -> float:
    """Milliseconds of CPU that a process has used, user and system."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return 1000 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def writing(store: str, wanted: bool) -> Iterator[None]:
    """Another process that writes a conversation every 200 ms."""
    if not wanted:
        yield
        return
    with subprocess.Popen([sys.executable, "-m", "bench.serve", "--write", "--store", str(store)]) as process:
        try:
            yield
        finally:
            process.terminate()


def write(store: str) -> None:
    """Write a conversation every 200 ms, for good."""
    with open_store(store) as opened:
        for number in count(900_000):
            talk = conversation(number, 2)
            scans = tuple(Scan(message_id=message.id) for message in talk.messages)
            opened.put_conversation(talk, scans, ThreadScan(conversation=talk.id))
            time.sleep(0.2)


def main() -> int:
    """Make the store, start the server, ask for every page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--findings", type=int, default=10_000)
    parser.add_argument("--times", type=int, default=15)
    parser.add_argument("--writer", action="store_true")
    parser.add_argument("--store")
    parser.add_argument("--write", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write:
        write(options.store)
    with tempfile.TemporaryDirectory() as folder:
        store = options.store or str(Path(folder) / "large.db")
        with open_store(store) as opened:
            counts, facts = opened.counts(), opened.facts()
        if not counts["messages"]:
            fill(store, options.messages // SIZE, SIZE, options.findings, leads=200)
            counts = {"messages": options.messages, "findings": options.findings}
        print(f"{counts['messages']:,} messages, {counts['findings']:,} findings, {facts.get('server', 'SQLite')}")
        with serving(store) as (port, process), writing(store, options.writer):
            time.sleep(2)  # what it loads at its start
            return measured(port, process, options.times)


def measured(port: int, process: int, times: int) -> int:
    """Ask for every page and print; 1 where one is too slow."""
    name = asked(port, "/api/v1/findings?limit=1")[2].partition(b'"finding_id":"')[2].partition(b'"')[0].decode()
    slow = 0
    began = time.process_time()
    for number in range(1_000_000):
        slow += number * 0
    print(f"a million additions: {1000 * (time.process_time() - began):.0f} ms of CPU")
    print(f"{'first':>8} {'median':>8} {'slowest':>8} {'CPU':>6}  page")
    for page in PAGES:
        path = page.replace("{finding}", name)
        first, status, _ = asked(port, path)
        before = cpu(process)
        others = [asked(port, path)[0] for _ in range(times)]
        used = (cpu(process) - before) / times
        middle = statistics.median(others)
        slow += middle > BOUND or status != 200
        failed = "" if status == 200 else f"  STATUS {status}"
        print(f"{first:8.1f} {middle:8.1f} {max(others):8.1f} {used:6.1f}  {page}{failed}")
    print(f"{slow} of {len(PAGES)} pages above {BOUND:.0f} ms" if slow else f"every median is below {BOUND:.0f} ms")
    return int(slow > 0)


if __name__ == "__main__":
    sys.exit(main())
