"""What a run over rows should find, with the confidence of each finding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from undersong.models import Finding, Row
from undersong.patterns.detect import detect
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.significance.confidence import with_confidence


def confident_findings(rows: Iterable[Row], rules: Sequence[PatternRule]) -> tuple[Finding, ...]:
    """The findings of rules over rows, each with its confidence at the usual prevalence."""
    known = list(rows)
    return with_confidence(detect(known, rules).findings, known, rules)
