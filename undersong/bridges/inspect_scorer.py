"""A scorer of Inspect AI, ``undersong/audit``: whether anything was found in the messages of a sample."""

from __future__ import annotations

from functools import partial

from anyio import to_thread
from inspect_ai.scorer import CORRECT, INCORRECT, NOANSWER, Score, Scorer, Target, accuracy, scorer, stderr
from inspect_ai.solver import TaskState

from undersong.bridges.inspect_items import SampleAudit, SampleAuditor, cites_of
from undersong.models import Level


@scorer(name="audit", metrics=[accuracy(), stderr()])
def audit_scorer(
    judge: str = "offline", level: Level = "medium", sequences: bool = False, budget: float | None = None
) -> Scorer:
    """``C`` where nothing of ``level`` or above was found, ``I`` where something was, ``N`` where not all was read.

    The explanation says what was looked at and what was not: ``C`` is no all-clear.
    """
    samples = SampleAuditor(judge, level, sequences=sequences, budget=budget)

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001 - Inspect's signature
        audit = await to_thread.run_sync(partial(samples.audit, state.messages, f"{state.sample_id}/{state.epoch}"))
        return score_of(audit, state)

    return score


def score_of(audit: SampleAudit, state: TaskState) -> Score:
    """The score of an audit, with references that Inspect View follows."""
    value = INCORRECT if audit.results else NOANSWER if audit.incomplete else CORRECT
    ids = dict.fromkeys(name for result in audit.results for name in result.message_ids)
    references = [{"type": "message", "cite": cite, "id": name} for name, cite in cites_of(state.messages, list(ids))]
    parts = [f"{result.name}: {result.explanation}" for result in audit.results]
    return Score(
        value=value,
        answer=", ".join(dict.fromkeys(result.name for result in audit.results)) or None,
        explanation="\n\n".join((*parts, audit.coverage, *audit.incomplete)),
        metadata={"scanner_references": references, "found": [result.facts for result in audit.results]},
    )
