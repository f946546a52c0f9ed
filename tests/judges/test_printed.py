"""What the commands about judges print is what the published JSON Schema of each says, over a server that answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Undersong
from tests.judges.dialogue import KEYS, Served
from tests.monitor.test_constraints import BOMB, MESSAGE
from tests.report.outputs import check
from undersong.models import TRAITS


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


def test_what_is_measured_of_a_judge_is_what_its_schema_says(undersong: Undersong, served: Served) -> None:
    labels = [
        {"author": f"a{n % 5}", "text": f"text number {n}", "traits": dict.fromkeys(TRAITS, n % 5 / 4)}
        for n in range(25)
    ]
    Path("labels.jsonl").write_text("".join(json.dumps(each) + "\n" for each in labels))
    spec = served.spec()
    ran = undersong("judge", "validate", "labels.jsonl", "--judge", spec, "--json")
    assert check("judge validate --json", ran.out) == 1, ran.err
    for kind in ("repeat", "context", "framing"):
        ran = undersong("judge", kind, "samples", "--judge", spec, "--all", "--sample", "6", "--json")
        assert check(f"judge {kind} --json", ran.out) > 0, ran.err
    assert check("judges --json", undersong("judges", "--json").out) > 0
    ran = undersong("judge", "check", spec, "--json")
    assert check("judge check --json", ran.out) == 1, ran.err
    ran = undersong("judge", "export", "--judge", spec)
    assert check("judge export", ran.out) > 1, ran.err


def test_a_hard_constraint_that_watch_prints_is_what_its_schema_says(undersong: Undersong, served: Served) -> None:
    Path("talk.jsonl").write_text(json.dumps(MESSAGE | {"text": BOMB}) + "\n")
    ran = undersong("watch", "talk.jsonl", "--judge", served.spec(), "--all", "--no-follow")
    assert check("watch", ran.out) == 1, ran.err
