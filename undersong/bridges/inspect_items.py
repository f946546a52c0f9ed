"""An audit of the messages of an Inspect sample or Scout transcript: what was found, each with its messages."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from undersong.bridges.auditor import Auditor, auditor
from undersong.core.sanitize import one_line, visible
from undersong.errors import NothingReadError
from undersong.models import Bypass, Case, Deduction, LedgerClaim, Level, Quote
from undersong.report.coverage import coverage_of
from undersong.report.narrative import certainty_words
from undersong.report.order import FindingResult, Result, at_or_above

QUOTE = 300  # characters
T = TypeVar("T")


class ChatMessageLike(Protocol):
    """A message of Inspect: a Pydantic model with an id."""

    id: str | None

    def model_dump(self, *, mode: str, exclude_none: bool) -> dict[str, Any]:
        """The message as JSON values."""
        ...


class SampleResult(NamedTuple):
    """Something found: its name, what it says, the messages that it stands on, and figures."""

    name: str
    explanation: str
    message_ids: tuple[str, ...]
    facts: dict[str, Any]


class SampleAudit(NamedTuple):
    """What was found in a sample, what was looked at and what was not, and whether anything was left unread."""

    results: tuple[SampleResult, ...]
    coverage: str
    incomplete: tuple[str, ...]


class SampleAuditor:
    """Audits samples one after the other in one thread of its own, whatever loop asks: the judge is opened once."""

    def __init__(self, judge: str, level: Level, *, sequences: bool, budget: float | None) -> None:
        self.level = level
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="undersong")
        self._make: Callable[[], Auditor] = lambda: auditor(
            judge, budget=budget, level=level, sequences=sequences, source_format="inspect"
        )
        self._auditor: Auditor | None = None

    def audit(self, messages: Sequence[ChatMessageLike], name: str) -> SampleAudit:
        """The audit of a sample; waits for it. Raises what ``undersong.audit`` raises but for a sample without text."""
        return self._thread.submit(self._audited, messages, name).result()

    def _audited(self, messages: Sequence[ChatMessageLike], name: str) -> SampleAudit:
        if self._auditor is None:
            self._auditor = self._make()
        sample = {"id": name, "uuid": name, "epoch": 1, "input": "", "target": "",
                  "messages": [each.model_dump(mode="json", exclude_none=True) for each in messages]}  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "sample.json"
            path.write_text(json.dumps(sample), encoding="utf-8")
            try:
                case = self._auditor.audit([path])
            except NothingReadError as error:
                return SampleAudit((), "Nothing was looked at.", (one_line(str(error), QUOTE),))
        self._auditor.cases.clear()
        cites = {each.id: f"[M{number}]" for number, each in enumerate(messages, 1) if each.id}
        reaching = at_or_above(case, self.level)
        incomplete = tuple(one_line(each.what, QUOTE) for each in case.problems if each.kind != "note")
        return SampleAudit(tuple(_sample_result(each, cites) for each in reaching), _coverage(case), incomplete)


def cites_of(messages: Sequence[ChatMessageLike], ids: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The (message id, cite) pairs of some messages, numbered from 1 as they stand."""
    numbers = {each.id: number for number, each in enumerate(messages, 1)}
    yield from ((name, f"[M{numbers[name]}]") for name in ids if name in numbers)


def _coverage(case: Case) -> str:
    coverage = coverage_of(case)
    return f"{coverage.looked} {coverage.missing}"


def _sample_result(result: Result, cites: dict[str, str]) -> SampleResult:
    if isinstance(result, FindingResult):
        finding = result.finding
        what = f"Consistent with {finding.title}; {'; '.join(certainty_words(finding))}."
        numbers = {name: getattr(finding, name) for name in ("confidence", "strength", "level", "agent", "target")}
        facts = {"undersong_id": finding.finding_id, "lead": finding.is_lead} | numbers
        return SampleResult(finding.pattern, _cited(what, finding.quotes, cites), finding.message_ids, facts)
    claim = result.claim
    if isinstance(claim, LedgerClaim):
        name, what, facts = f"{claim.state}_claim", claim.reason, {"state": claim.state, "kind": claim.kind}
    elif isinstance(claim, Bypass):
        return SampleResult("check_bypass", visible(claim.what), (claim.message_id,), {"kind": claim.kind})
    elif isinstance(claim, Deduction):
        name, what, facts = claim.mechanism, claim.explanation, {"points": claim.points, "kind": claim.kind}
    else:
        name, what, facts = claim.code, claim.explanation, {"kind": claim.kind}
    ids = dict.fromkeys((claim.message_id, *(quote.message_id for quote in claim.quotes)))
    return SampleResult(name, _cited(what, claim.quotes, cites), tuple(ids), facts)


def _cited(what: str, quotes: Sequence[Quote], cites: dict[str, str]) -> str:
    """What is said, then each quote with the number of its message."""
    lines = [f"“{one_line(quote.text, QUOTE)}” {cites.get(quote.message_id, '')}".rstrip() for quote in quotes]
    return "\n".join((visible(what), *lines))
