"""Audits within a program, one after the other, with a judge that is opened once: what a test asserts with."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any, Literal, Self

import msgspec

from undersong import __version__
from undersong.core.sanitize import one_line
from undersong.core.text import counted
from undersong.errors import NothingReadError, UsageError
from undersong.formats.objects import Inputs
from undersong.judges.limits import RunLimits
from undersong.judges.llm.budget import Budget
from undersong.models import LEVELS, Bypass, Case, Deduction, LedgerClaim, Level, Moment
from undersong.patterns.catalog import all_rules
from undersong.pipeline.audit import audit
from undersong.pipeline.judge_session import JudgeSession, open_session
from undersong.pipeline.options import Options
from undersong.report.coverage import coverage_of
from undersong.report.finding_view import rule_words
from undersong.report.narrative import certainty_words, unassessed_words
from undersong.report.order import FindingResult, Result, at_or_above
from undersong.report.render.sarif import sarif
from undersong.stores.sqlite import temporary_store

QUOTE = 200  # characters
SHOWN = 10  # results of one audit that a failed assertion names
TEST = "PYTEST_CURRENT_TEST"  # the variable in which pytest names the test that runs


class Auditor:
    """A judge, and the cases of all audits with it, each with the name of the test that asked for it.

    ``options`` are those of ``undersong.audit``; what the judge spends counts against one budget for all audits. The
    judge is opened with the first audit. Use it in a ``with`` statement, or ``close`` it.
    """

    def __init__(self, options: Options | None = None, *, level: Level = "medium") -> None:
        chosen = options or Options()
        self.options = msgspec.structs.replace(chosen, terms=Budget.shared(chosen.terms))
        self.level = level
        self.cases: list[tuple[str, Case]] = []
        self._stack = ExitStack()
        self._session: JudgeSession | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the judge and forget its answers."""
        self._stack.close()
        self._session = None

    @property
    def session(self) -> JudgeSession:
        """The judge, opened once."""
        if self._session is None:
            store = self._stack.enter_context(temporary_store())
            self._session = self._stack.enter_context(open_session(self.options.judge, self.options.terms, store))
        return self._session

    def audit(self, inputs: Inputs) -> Case:
        """The case of some inputs, as ``undersong.audit`` takes them; kept for the summary and SARIF.

        Raises what ``undersong.audit`` raises: NothingReadError where no message could be read.
        """
        case, _ = audit(inputs, options=self.options, session=self.session)
        self.cases.append((os.environ.get(TEST, "").partition(" (")[0], case))
        return case

    def assert_clean(
        self,
        inputs: Inputs,
        *,
        level: Level | None = None,
        confidence: float | None = None,
        unassessed: Literal["pass", "fail"] = "pass",
    ) -> Case:
        """The case, where nothing of ``level`` or above was found; raises AssertionError with the words otherwise.

        What ``--fail-on`` counts is counted: findings, contradicted claims, from ``medium`` down disputed ones, too,
        ways round a check, points. A finding counts from ``confidence`` (0-1, default .5) on, and where its own is not
        known. What could not be read, and a judge that failed, fail the assertion too; ``unassessed="fail"`` adds what
        could not be looked for.
        """
        __tracebackhide__ = True  # pytest shows the line of the test, not this function
        limit = self.level if level is None else level
        if limit not in LEVELS:
            raise UsageError(f"no level '{limit}'", where="level", remedy=f"known are {', '.join(LEVELS)}")
        try:
            case = self.audit(inputs)
        except NothingReadError as error:
            raise AssertionError(f"undersong read nothing: {error}") from error
        lines = [*_unread(case), *_results(at_or_above(case, limit, confidence))]
        lines += unassessed_words(case) if unassessed == "fail" else ()
        if lines:
            raise AssertionError("\n".join((f"undersong, at {limit} or above:", *lines, coverage_of(case).missing)))
        return case

    def summary(self) -> Iterator[str]:
        """What was looked at, and each thing that was not, so that "no finding" is not taken for more than it is."""
        messages = sum(case.messages for _, case in self.cases)
        scored = sum(case.states.get("scored", 0) for _, case in self.cases)
        what = f"{counted(len(self.cases), 'audit')} of {counted(messages, 'message')}"
        read = sum(reading.state == "scored" for _, case in self.cases for reading in case.sequences)
        sequences = f" and read {counted(read, 'sequence')}" if self.options.read != "messages" else ""
        yield f"{what}, of which the judge {self.options.judge} scored {scored:,}{sequences}"
        yield from dict.fromkeys(one_line(words, 500) for _, case in self.cases for words in unassessed_words(case))

    def sarif(self) -> dict[str, Any]:
        """All results as one run of SARIF 2.1.0, each with its test."""
        words = rule_words(all_rules())
        if not self.cases:
            return sarif(Case(version=__version__, parameters={}), words)
        logs = [(test, sarif(case, words)) for test, case in self.cases]
        merged = logs[0][1]
        run = merged["runs"][0]
        rules = {rule["id"]: rule for _, log in logs for rule in log["runs"][0]["tool"]["driver"]["rules"]}
        places = {name: place for place, name in enumerate(rules)}
        run["tool"]["driver"]["rules"] = list(rules.values())
        run["results"] = [
            result | {"ruleIndex": places[result["ruleId"]], "properties": result["properties"] | {"test": test}}
            for test, log in logs
            for result in log["runs"][0]["results"]
        ]
        for name in ("invocations", "artifacts"):
            run[name] = [entry for _, log in logs for entry in log["runs"][0][name]]
        return merged


def _unread(case: Case) -> Iterator[str]:
    """What stands between "nothing was found" and "it was looked at"."""
    for problem in case.problems:
        if problem.kind != "note":
            yield f"- not read: {one_line(problem.where, QUOTE)}: {one_line(problem.what, QUOTE)}"


def _results(results: Sequence[Result]) -> Iterator[str]:
    for result in results[:SHOWN]:
        yield from _lines(result)
    if len(results) > SHOWN:
        yield f"- and {len(results) - SHOWN:,} more"


def _lines(result: Result) -> Iterator[str]:
    """A result, what it is based on, and its first words."""
    if isinstance(result, FindingResult):
        finding = result.finding
        aim = f" towards {finding.target}" if finding.target else ""
        messages = counted(len(finding.message_ids), "message")
        yield f"- {messages} of {one_line(finding.agent + aim)} consistent with {finding.title} ({finding.level})"
        yield from (f"  {words}" for words in certainty_words(finding))
        quotes = finding.quotes
    else:
        claim = result.claim
        kind = claim.mechanism if isinstance(claim, Deduction) else claim.kind
        what = claim.reason if isinstance(claim, LedgerClaim) else _explained(claim)
        yield f"- {kind.replace('_', ' ')} in {one_line(result.session.conversation)}: {one_line(what, QUOTE)}"
        quotes = () if isinstance(claim, Bypass) else claim.quotes
    first_and_last = (*quotes[:1], *quotes[1:][-1:])
    yield from (f"  “{one_line(quote.text, QUOTE)}” ({one_line(quote.message_id)})" for quote in first_and_last)


def _explained(claim: Deduction | Bypass | Moment) -> str:
    return claim.what if isinstance(claim, Bypass) else claim.explanation


def auditor(
    judge: str,
    *,
    budget: float | None = None,
    level: Level = "medium",
    sequences: bool = False,
    source_format: str | None = None,
) -> Auditor:
    """An auditor by the name of a judge, which may read whole ``sequences`` in place of single messages."""
    read: Literal["messages", "sequences"] = "sequences" if sequences else "messages"
    options = Options(judge=judge, terms=RunLimits(budget=budget), read=read, source_format=source_format)
    return Auditor(options, level=level)
