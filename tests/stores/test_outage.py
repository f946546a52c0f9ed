"""A Neo4j server that goes away in the middle of a run: the run waits or ends with exit code 4, and goes on."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from tests.conftest import Undersong
from tests.neo4j.serve import SHORT_LIVED, free_port, kill, start
from undersong.stores.neo4j import GraphStore

MESSAGES = 200
STORE_FAILED = 4


def corpus(path: Path) -> None:
    """Many small conversations, so that a run writes for a while."""
    with path.open("w", encoding="utf-8") as lines:
        for n in range(MESSAGES):
            message = {
                "id": f"m{n}", "conversation": f"c{n // 4}", "agent": f"agent{n % 7}", "text": f"{n}: you must act now",
                "time": f"2026-01-01T{n // 3600:02}:{n // 60 % 60:02}:{n % 60:02}Z",
            }  # fmt: skip
            lines.write(json.dumps(message) + "\n")


def audit(address: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "undersong", "audit", "corpus.jsonl", "--draws", "9", "--store", address]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def await_messages(address: str, run: subprocess.Popen[str]) -> None:
    """Wait until the run has written some of its messages."""
    with GraphStore(address, read_only=True) as graph:
        while graph.counts()["messages"] < MESSAGES // 10:
            assert run.poll() is None, run.communicate()
            time.sleep(0.1)


def test_a_run_outlives_its_server(undersong: Undersong, tmp_path: Path) -> None:
    corpus(Path("corpus.jsonl"))
    folder, port = tmp_path / "neo4j", free_port()
    folder.mkdir()
    address = f"bolt://127.0.0.1:{port}"
    server = start(port, folder, *SHORT_LIVED)
    run = audit(address)
    await_messages(address, run)
    kill(server)
    server = start(port, folder, *SHORT_LIVED)
    try:
        output = run.communicate()
        assert run.returncode in (0, STORE_FAILED), output
        assert undersong("audit", "corpus.jsonl", "--draws", "9", "--store", address).code == 0
        with GraphStore(address) as graph:
            assert graph.counts()["messages"] == graph.counts()["evaluations"] == MESSAGES
    finally:
        kill(server)
    report = [(Path("undersong-report") / name).read_bytes() for name in ("manifest.json", "findings.jsonl")]
    assert undersong("audit", "corpus.jsonl", "--draws", "9", "--out", "alone").code == 0
    assert report == [(Path("alone") / name).read_bytes() for name in ("manifest.json", "findings.jsonl")]
