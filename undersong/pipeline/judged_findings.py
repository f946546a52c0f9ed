"""Notes on findings that rest on messages about which the two judges of a panel disagree."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from undersong.core.text import counted
from undersong.judges.panel import disagree
from undersong.models import Finding, Row
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.language.inputs import inputs_by_stage, stage_inputs


def with_disagreement(
    findings: Sequence[Finding], rows: Sequence[Row], rules: Sequence[PatternRule]
) -> tuple[Finding, ...]:
    """The findings of rules, each with a note where the judges lie .5 or more apart on what a stage asks for."""
    if not any(row.reading is not None and row.reading.panel for row in rows):
        return tuple(findings)
    by_place = {(row.conversation, row.id): row for row in rows}
    names = {rule.hash: inputs_by_stage(rule) for rule in rules}
    return tuple(each if each.is_read else _noted(each, by_place, names.get(each.rule_hash, {})) for each in findings)


def _noted(finding: Finding, rows: dict[tuple[str, str], Row], inputs: dict[str, frozenset[str]]) -> Finding:
    stages = finding.stages or tuple(("", message_id) for message_id in finding.message_ids)
    placed = zip(stages, finding.message_conversations, finding.message_ids, strict=False)
    read = [(rows[name, message_id], stage) for (stage, _), name, message_id in placed if (name, message_id) in rows]
    apart = sum(disagree(row, stage_inputs(inputs, stage)) for row, stage in read)
    if not apart:
        return finding
    note = f"the two judges disagree on {apart} of {counted(len(finding.message_ids), 'message')}"
    return msgspec.structs.replace(finding, notes=(*finding.notes, note))
