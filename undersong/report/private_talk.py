"""What a report on private talk leaves out: mechanisms that are about work with code and tools, and an empty grade."""

from __future__ import annotations

from collections.abc import Sequence

from undersong.models import Mechanism, SessionVerdict
from undersong.models.verdict import PERSONAL


def shown_mechanisms(verdict: SessionVerdict) -> tuple[Mechanism, ...]:
    """The mechanisms that a reader is told of: of private talk none that do not apply, since most are about work with
    code and tools."""
    is_private = verdict.profile in PERSONAL
    return tuple(each for each in verdict.mechanisms if not is_private or each.assessment != "not_applicable")


def is_graded(sessions: Sequence[SessionVerdict]) -> bool:
    """Whether a score is spoken of: not where all is private talk without one."""
    return not sessions or any(each.profile not in PERSONAL or each.score is not None for each in sessions)
