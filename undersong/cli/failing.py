"""What makes ``--fail-on`` end an audit with exit code 1, in one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from undersong.models import Deduction
from undersong.report.results import FindingResult, Result
from undersong.visible import one_line
from undersong.wording import counted, mechanism_name


def failing_line(results: Iterable[Result], level: str) -> str:
    """``--fail-on medium: 2 deductions (false promise ×2)``."""
    kinds: dict[str, Counter[str]] = {}
    for result in results:
        noun, name = _kind(result)
        kinds.setdefault(noun, Counter())[name] += 1
    parts = (f"{counted(names.total(), noun)} ({_times(names)})" for noun, names in kinds.items())
    return f"--fail-on {level}: {', '.join(parts)}"


def _kind(result: Result) -> tuple[str, str]:
    if isinstance(result, FindingResult):
        return "finding", result.finding.pattern
    if isinstance(result.claim, Deduction):
        return "deduction", mechanism_name(result.claim.mechanism)
    return "smoking gun", mechanism_name(result.claim.code)


def _times(names: Counter[str]) -> str:
    return ", ".join(one_line(name, 40) + (f" ×{count}" if count > 1 else "") for name, count in names.items())
