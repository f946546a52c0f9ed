"""Confidence fitted anew to what people decided: a line through the log-odds, held to the shipped figures by a prior.

Platt's scaling (1999) with a prior: a slope of 1 and an intercept of 0 change nothing, and with few decisions little
moves away from there. It is used only where it predicts the decisions about agents that it was not fitted to clearly
better than the shipped confidence does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from undersong.models import Finding, Record

ENOUGH, EACH = 30, 5  # decisions, and of each kind, from which on confidence is fitted
SLOPE_SPREAD, INTERCEPT_SPREAD = 0.5, 1.5  # standard deviations of the prior around 1 and 0
STEPS, CLOSE = 50, 1e-9
FOLDS = 10
MARGIN = 1.645  # standard errors by which a fit has to be better: one chance in twenty where it is not
SURELY = 1e-4  # no confidence is nearer to 0 or 1 than this
SHIPPED = "confidence_shipped"  # among the measures of a finding: what it had before


class DecidedFinding(NamedTuple):
    """A decision: the confidence that the finding has by the shipped figures, its agent, and whether it is right."""

    confidence: float
    agent: str
    right: bool


class ConfidenceMap(Record, frozen=True, kw_only=True):
    """From shipped confidence to the one by ``reviews`` decisions, of which ``right`` were confirmed.

    ``before`` and ``after`` are the mean log losses over agents that were left out of the fit: lower is better.
    """

    slope: float
    intercept: float
    reviews: int
    right: int
    before: float
    after: float

    def of(self, confidence: float) -> float:
        """The confidence by the reviews."""
        return round(_probability(self.intercept + self.slope * _log_odds(confidence)), 4)


def refitted(findings: Sequence[Finding], fitted: ConfidenceMap | None) -> tuple[Finding, ...]:
    """The findings with their confidence by the reviews; what they had before is among their measures."""
    if fitted is None:
        return tuple(findings)
    return tuple(
        each if each.confidence is None
        else msgspec.structs.replace(
            each, confidence=fitted.of(each.confidence), measures=each.measures | {SHIPPED: each.confidence}
        )
        for each in findings
    )  # fmt: skip


def shipped_confidence(finding: Finding) -> float | None:
    """The confidence of a finding before reviews changed it."""
    return finding.measures.get(SHIPPED, finding.confidence)


def fit_confidence(decided: Sequence[DecidedFinding]) -> ConfidenceMap | str:
    """The map of these decisions, or why there is none."""
    right = sum(each.right for each in decided)
    if len(decided) < ENOUGH or min(right, len(decided) - right) < EACH:
        return (
            f"{len(decided)} decisions that a draw came upon, {right} of them confirmed: at least {ENOUGH} are needed,"
            f" and {EACH} of each kind"
        )
    losses = np.array(list(_left_out_losses(decided)))
    before, after = (float(each) for each in losses.mean(axis=0))
    gains = losses[:, 0] - losses[:, 1]
    if gains.mean() <= MARGIN * gains.std(ddof=1) / math.sqrt(len(gains)):
        return (
            f"fitted to {len(decided)} decisions it predicts those about other agents not clearly better"
            f" (log loss {after:.3f}, {before:.3f} before)"
        )
    slope, intercept = _fit(decided)
    facts = {"slope": slope, "intercept": intercept, "before": before, "after": after}
    return ConfidenceMap(
        **{name: round(value, 4) for name, value in facts.items()}, reviews=len(decided), right=right
    )  # fmt: skip


def _left_out_losses(decided: Sequence[DecidedFinding]) -> Iterator[tuple[float, float]]:
    """Of each decision the loss of the shipped confidence, and of a line that is fitted without its agent."""
    agents = sorted({each.agent for each in decided})
    for fold in filter(None, (set(agents[number::FOLDS]) for number in range(FOLDS))):
        line = _fit([each for each in decided if each.agent not in fold])
        for own in (each for each in decided if each.agent in fold):
            yield _loss(own, (1.0, 0.0)), _loss(own, line)


def _loss(decided: DecidedFinding, line: tuple[float, float]) -> float:
    slope, intercept = line
    share = _probability(intercept + slope * _log_odds(decided.confidence))
    return -math.log(min(1 - SURELY, max(SURELY, share if decided.right else 1 - share)))


def _fit(decided: Sequence[DecidedFinding]) -> tuple[float, float]:
    """Slope and intercept with the highest posterior: Newton's method, each step halved until it leads down."""
    places = np.array([_log_odds(each.confidence) for each in decided])
    right = np.array([float(each.right) for each in decided])
    inputs = np.stack((places, np.ones_like(places)))
    centre, precision = np.array((1.0, 0.0)), np.diag((SLOPE_SPREAD**-2, INTERCEPT_SPREAD**-2))

    def objective(line: np.ndarray) -> float:
        log_odds, off = line @ inputs, line - centre
        return float(np.sum(np.logaddexp(0, log_odds) - right * log_odds) + off @ precision @ off / 2)

    line = centre
    for _ in range(STEPS):
        shares = 1 / (1 + np.exp(-(line @ inputs)))
        gradient = inputs @ (shares - right) + precision @ (line - centre)
        step = np.linalg.solve((inputs * (shares * (1 - shares))) @ inputs.T + precision, gradient)
        while objective(line - step) > objective(line) and np.abs(step).max() > CLOSE:
            step = step / 2
        line = line - step
        if np.abs(step).max() <= CLOSE:
            break
    return float(line[0]), float(line[1])


def _log_odds(share: float) -> float:
    inside = min(1 - SURELY, max(SURELY, share))
    return math.log(inside / (1 - inside))


def _probability(log_odds: float) -> float:
    return 1 / (1 + math.exp(-min(50.0, max(-50.0, log_odds))))
