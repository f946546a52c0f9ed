"""A store of an installed package is opened by the scheme of its entry point."""

from __future__ import annotations

import json
from pathlib import Path

from tests.conftest import SAMPLES

from .conftest import Command


def test_an_audit_into_a_store_of_another_package_says_what_one_into_a_file_says(run: Command, tmp_path: Path) -> None:
    audit = ("-m", "undersong", "audit", SAMPLES, "--draws", "9")
    own = run(*audit, "--store", "own.db", "--out", "own")
    other = run(*audit, "--store", "memory://here", "--out", "other")
    assert (other.returncode, other.stderr) == (own.returncode, own.stderr)
    for name in ("evaluations.jsonl", "findings.jsonl", "forensic_audit_report.md"):
        assert (tmp_path / "other" / name).read_bytes() == (tmp_path / "own" / name).read_bytes()


def test_the_histories_of_such_a_store_can_be_swept(run: Command) -> None:
    code = f"""
import undersong
from undersong.patterns.catalog import load_rules
from undersong.pipeline.history_sweep import chosen_judge, sweep
from undersong.stores.protocol import open_store
def swept(address):
    with open_store(address) as store:
        undersong.audit([{str(SAMPLES)!r}], store)
        done = sweep(store, load_rules(), chosen_judge(store, None).judge_hash, least=5)
        return done.agents, done.rows, [each.finding_id for each in store.findings()]
assert swept("memory://here") == swept("own.db")
"""
    assert run("-c", code).stderr == ""


def test_what_such_a_store_lacks_is_said(run: Command, tmp_path: Path) -> None:
    message = {"conversation": "c", "id": "m", "position": 0, "author": "kira", "text": "hello"}
    (tmp_path / "log.jsonl").write_text(json.dumps(message))
    watched = run("-m", "undersong", "watch", "log.jsonl", "--no-follow", "--store", "memory://here")
    assert (watched.returncode, watched.stderr) == (
        4, "undersong: error: MemoryStore has no live runs; name a file with --store instead\n"
    )  # fmt: skip


def test_an_unknown_scheme_names_the_stores_that_are_there(run: Command) -> None:
    sent = run("-m", "undersong", "audit", SAMPLES, "--store", "nowhere://here")
    assert sent.returncode == 2
    assert "unknown kind of store 'nowhere'" in sent.stderr
    assert sent.stderr.rstrip().endswith("neo4j+ssc, memory")


def test_a_check_says_that_such_a_store_has_no_seals(run: Command) -> None:
    checked = run("-m", "undersong", "store", "check", "--store", "memory://here")
    assert (checked.returncode, checked.stderr) == (0, "")
    assert checked.stdout.splitlines() == [
        "memory://here holds together",
        "not compared with what was stored: this store has neither seals nor a digest",
    ]
