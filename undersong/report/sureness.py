"""How sure a finding is, in words that say no more than was counted: counts for readings, tenths for rules."""

from __future__ import annotations

from undersong.models import Finding
from undersong.models.finding import OWN_RULE
from undersong.patterns.significance.confidence import reference_figures
from undersong.report.opening_sentences import sentences


def sure_words(finding: Finding) -> str:
    """``very likely: all 24 readings this sure were right in conversations that we wrote``."""
    if OWN_RULE in finding.notes:
        return sentences().how_sure["own_rule"]
    if finding.confidence is None:
        return sentences().how_sure["unmeasured"]
    shown = counts_words(round(finding.measures["certainty"])) if finding.is_read else tenths_words(finding.confidence)
    return f"{likelihood(finding.confidence)}: {shown}"


def likelihood(confidence: float) -> str:
    """A word for a confidence, 0 to 1."""
    return next(each.word for each in sentences().sure if confidence >= each.least)


def counts_words(certainty: int) -> str:
    """How often readings with this certainty (1 to 4) were right in the reference conversations."""
    counts = reference_figures().readings
    times, right = counts.times(certainty), counts.right[certainty - 1]
    how_sure = sentences().how_sure
    if not times:
        return how_sure["unmeasured"]
    if right < times:
        return how_sure["read_some"].format(right=right, times=times)
    return how_sure["read_all" if times > 1 else "read_one"].format(times=times)


def tenths_words(confidence: float) -> str:
    """``about 6 in 10``, never finer, and where that was measured."""
    return sentences().how_sure["measured"].format(share=share_words(confidence))


def share_words(confidence: float) -> str:
    """``about 6 in 10``."""
    tenths = round(10 * confidence)
    return {0: "fewer than 1 in 10", 10: "more than 9 in 10"}.get(tenths, f"about {tenths} in 10")
