"""The confidence of a store's findings, fitted to what people decided of them."""

from __future__ import annotations

from collections.abc import Iterator

from undersong.models import Finding
from undersong.patterns.significance.refit import ConfidenceMap, DecidedFinding, fit_confidence, shipped_confidence
from undersong.stores.protocol import Store
from undersong.stores.review_queue import Pool, candidates

FINDINGS: tuple[Pool, ...] = ("likely", "unlikely")


def decided_findings(store: Store) -> Iterator[DecidedFinding]:
    """The findings of a store that were decided on as they are now, and that a draw came upon or all were."""
    for pool in FINDINGS:
        every = candidates(store, pool)
        whole = all(each.answered for each in every)
        for candidate in every:
            if candidate.standing is None or candidate.standing.stale or not (candidate.drawn or whole):
                continue
            verdict, confidence = candidate.standing.review.verdict, _confidence(candidate.item)
            if verdict != "unsure" and confidence is not None:
                yield DecidedFinding(confidence, candidate.item.agent, verdict == "confirmed")


def confidence_by_reviews(store: Store) -> ConfidenceMap | str:
    """The map from shipped confidence to that by the reviews of a store, or why there is none."""
    return fit_confidence(list(decided_findings(store)))


def _confidence(item: object) -> float | None:
    return shipped_confidence(item) if isinstance(item, Finding) else None
