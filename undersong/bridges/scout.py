"""A scanner of Inspect Scout, ``undersong/audit``: a result for each finding, with references to its messages."""

from __future__ import annotations

from functools import partial

from anyio import to_thread
from inspect_scout import Reference, Result, Scanner, Transcript, scanner

from undersong.bridges.inspect_items import SampleAudit, SampleAuditor, cites_of
from undersong.models import Level


@scanner(name="audit", messages="all", version=1)
def audit_scanner(
    judge: str = "offline", level: Level = "medium", sequences: bool = False, budget: float | None = None
) -> Scanner[Transcript]:
    """Findings, contradicted claims and points for a false promise of ``level`` or above in a transcript.

    ``judge`` as in ``--judge``; ``sequences``: an LLM judge reads the whole; ``budget`` in USD for all transcripts.
    """
    samples = SampleAuditor(judge, level, sequences=sequences, budget=budget)

    async def scan(transcript: Transcript) -> list[Result]:
        call = partial(samples.audit, transcript.messages, transcript.transcript_id)
        return results_of(await to_thread.run_sync(call), transcript)

    return scan


def results_of(audit: SampleAudit, transcript: Transcript) -> list[Result]:
    """Each result as one of Scout; without any, one that says what was looked at, null where that was not all."""
    if not audit.results:
        value = None if audit.incomplete else False
        return [
            Result(
                value=value,
                label="nothing_found",
                explanation=audit.coverage,
                metadata={"not_read": list(audit.incomplete)},
            )
        ]
    return [
        Result(
            value=True,
            label=result.name,
            explanation=result.explanation,
            metadata=result.facts | {"coverage": audit.coverage, "not_read": list(audit.incomplete)},
            references=[
                Reference(type="message", cite=cite, id=name)
                for name, cite in cites_of(transcript.messages, result.message_ids)
            ],
        )
        for result in audit.results
    ]
