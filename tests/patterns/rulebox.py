"""Small rules and rows for the pattern tests: ``rule("A+ B", A="manipulation > 0.5", B="…")``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from undersong.datafiles.yaml_loader import FAST, YamlDocument
from undersong.models import Row
from undersong.patterns.language.compile import PatternRule, compile_rule
from undersong.patterns.reference.partitions import timelines
from undersong.patterns.reference.search import search
from undersong.patterns.tools.rule_tests import table

FAST_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
MINIMAL: dict[str, Any] = {
    "id": "probe",
    "title": "Probe",
    "level": "low",
    "falsepositives": ["anything"],
    "partition_by": ["agent"],
    "measures": {"strength": 1},
}


def rule(pattern: str, keys: dict[str, Any] | None = None, **define: str) -> PatternRule:
    """A compiled rule from its clauses, with the least that a file must say."""
    value = {**MINIMAL, "pattern": pattern, "define": define, **(keys or {})}
    return compile_rule(document(value))


def document(value: dict[str, Any]) -> YamlDocument:
    """The YAML document of a rule, as if it were a file."""
    loader = FAST(yaml.dump(value, Dumper=FAST_DUMPER, sort_keys=False))  # thousands of random rules come this way
    node = loader.get_single_node()
    assert node is not None
    return YamlDocument(Path("probe.yaml"), loader.construct_document(node), node)


def match_ids(chosen: PatternRule, rows: list[Row] | str) -> list[str]:
    """The message ids of each match, one text per match; ``target: ids`` where it has a target."""
    rows = table(rows) if isinstance(rows, str) else rows
    texts = []
    for match in search(chosen, timelines(rows)).matches:
        ids = " ".join(entry.row.id for _, entry in match.named)
        target = match.partition.target
        texts.append(f"{target}: {ids}" if target else ids)
    return texts
