"""Text of a kind that the offline judge was not measured on, through a whole audit: ranks, and no rule held to them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Undersong
from undersong.models import DIMENSIONS, TRAITS
from undersong.patterns.catalog import load_rules
from undersong.training.ood import load_genres, messages

COUNT = 100  # messages of each kind; bench/offline.py counts 500
OWN = {  # by hand, beside what the generator makes
    "recipe": ("Rub the butter into the flour until it looks like crumbs, then bring it together with cold water.",),
    "code_review": ("This loop allocates on every pass; hoist the buffer and rename `tmp2` before we merge.",),
    "legal": ("The Lessee shall not assign this agreement without the prior written consent of the Lessor.",),
}


@pytest.mark.parametrize("kind", OWN)
def test_foreign_text_is_unmeasured_and_no_rule_with_limits_on_traits_finds_anything(
    kind: str, undersong: Undersong
) -> None:
    texts = [*messages(load_genres()[kind], COUNT, "audit"), *OWN[kind]]
    lines = [
        {"id": f"m{n}", "conversation": f"c{n // 26}", "author": f"writer{n % 4}", "role": "agent", "text": text,
         "time": f"2026-01-{1 + n // 24:02}T{n % 24:02}:00:00Z"}
        for n, text in enumerate(texts)
    ]  # fmt: skip
    Path("talk.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    ran = undersong("audit", "talk.jsonl", "--no-chance", "--json")
    assert ran.code == 0
    facts = json.loads(ran.out)
    rows = [json.loads(line) for line in Path("undersong-report/evaluations.jsonl").read_bytes().splitlines()]
    assert sum(row["domain"] == "unmeasured" for row in rows) >= 0.9 * len(texts)
    held_to_limits = {rule.id for rule in load_rules() if not rule.needs.isdisjoint({*TRAITS, *DIMENSIONS})}
    assert held_to_limits
    assert held_to_limits.isdisjoint(found["pattern"] for found in facts["findings"])
    outcomes = json.loads(Path("undersong-report/case.json").read_bytes())["outcomes"]
    not_run = {outcome["pattern"]: outcome["reason"] for outcome in outcomes if outcome["status"] != "ran"}
    assert held_to_limits <= {name for name, why in not_run.items() if "--judge" in why or "indicators" in why}
