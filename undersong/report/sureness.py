"""How sure a finding is, in words that say no more than was counted: counts for readings, tenths for rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from undersong.models import Finding, Lead
from undersong.models.finding import OWN_RULE
from undersong.models.verdict import REQUEST
from undersong.patterns.lead_weights import high_words, lead_weights
from undersong.patterns.request_leads import SOURCE as REQUESTS
from undersong.patterns.request_leads import counted_to_one
from undersong.patterns.significance.confidence import ASSUMED_PREVALENCE, ReadingCounts, reference_figures
from undersong.report.opening_sentences import sentences
from undersong.report.review_figures import wilson


def sure_words(finding: Finding, counts: ReadingCounts | None = None) -> str:
    """``the reader's own certainty is 4 of 4; how often this reader is right was not measured``.

    ``counts`` are of the readers that were measured; None: those that ship.
    """
    how_sure = sentences().how_sure
    if OWN_RULE in finding.notes:
        return how_sure["own_rule"]
    if finding.is_read:
        return _reader_words(finding, counts or reference_figures().readings)
    if finding.confidence is None:
        return how_sure["unmeasured"]
    if finding.reading:
        return how_sure["read_too"]
    return f"{likelihood(finding.confidence)}: {tenths_words(finding.confidence)}"


def short_sure_words(finding: Finding) -> str:
    """``likely``, or the reader's own certainty where nobody measured how often that reader is right."""
    if is_unmeasured_reading(finding):
        certainty = f"certainty {finding.measures['certainty']:.0f} of 4, " if finding.is_read else ""
        return f"{certainty}a reader that was not measured"
    return "how sure is not known" if finding.confidence is None else likelihood(finding.confidence)


def is_unmeasured_reading(finding: Finding, counts: ReadingCounts | None = None) -> bool:
    """Whether it is as sure as a reader says, of which nobody measured how often it is right."""
    counts = counts or reference_figures().readings
    return (finding.is_read or finding.reading is not None) and not counts.measured(finding)


def likelihood(confidence: float) -> str:
    """A word for a confidence, 0 to 1."""
    return next(each.word for each in sentences().sure if confidence >= each.least)


def _reader_words(finding: Finding, counts: ReadingCounts) -> str:
    how_sure, certainty = sentences().how_sure, round(finding.measures["certainty"])
    if is_unmeasured_reading(finding, counts) or finding.confidence is None:
        return how_sure["read_unmeasured"].format(certainty=certainty)
    likely = likelihood(finding.confidence)
    return how_sure["read_measured"].format(likely=likely, **_share_right(certainty, counts))


def others_words(certainty: int) -> str:
    """How often the readers of the reference conversations were right with this certainty (1 to 4), "" if never so."""
    counts = reference_figures().readings
    return (
        sentences().how_sure["read_others"].format(**_share_right(certainty, counts)) if counts.times(certainty) else ""
    )


def _share_right(certainty: int, counts: ReadingCounts) -> dict[str, str]:
    right, times = counts.right[certainty - 1], counts.times(certainty)
    least = wilson(right / times, times)[0]
    return {"right": str(right), "times": str(times), "least": f"{least:.2f}".removeprefix("0")}


def assumed_words(parameters: Mapping[str, Any]) -> str:
    """What share of speakers the confidence of a run's findings assumes to show a shape; "" where none has one."""
    shares = tuple(parameters.get(ASSUMED_PREVALENCE, ()))
    if not shares:
        return ""
    if len(shares) > 1:
        return f"{' and '.join(shares)} are assumed, by the kind of talk; --prevalence sets one for all"
    one_in = f"1 speaker in {round(1 / float(shares[0]))} shows a shape"
    why = "as this run was told" if parameters.get("prevalence") else "--prevalence sets another"
    return f"{shares[0]} is assumed ({one_in}); {why}"


def tenths_words(confidence: float) -> str:
    """``about 6 in 10``, never finer, and where that was measured."""
    return sentences().how_sure["measured"].format(share=share_words(confidence))


def share_words(confidence: float) -> str:
    """``about 6 in 10``."""
    tenths = round(10 * confidence)
    return {0: "fewer than 1 in 10", 10: "more than 9 in 10"}.get(tenths, f"about {tenths} in 10")


def lead_words(lead: Lead, leads: Iterable[Lead] = ()) -> str:
    """How sure a lead is: the one sentence of it, which the audit, the report, ``leads`` and ``explain`` say.

    Exact words are there for certain; where one of two is among ``leads`` for what was counted, too, that is said.
    """
    how_sure, weights = sentences().how_sure, lead_weights()
    if lead.kind == "conversation":
        return how_sure["lead_conversation"].format(high=high_words(lead.score))
    if lead.kind == "agent":
        return how_sure["lead"]
    if not any(row.source == REQUESTS for row in lead.evidence):
        return how_sure[max((score, code) for code, score in weights.orders.items() if score <= lead.score)[1]]
    counted = counted_to_one(leads).get((lead.agent, lead.conversation))
    return f"{how_sure[REQUEST]}; {lead_words(counted)}" if counted else how_sure[REQUEST]
