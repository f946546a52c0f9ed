"""The figures over the reviews of a store, with what nobody has decided on."""

from __future__ import annotations

from undersong.report.review_figures import ReviewFigures, UnreviewedItem, figures
from undersong.stores.protocol import Store
from undersong.stores.review_queue import Pool, candidates
from undersong.stores.reviewing import pattern_of

POOLS: tuple[Pool, ...] = ("likely", "unlikely", "lead", "claim")


def figures_of(store: Store) -> ReviewFigures:
    """The figures over the reviews of a store."""
    rest = [
        UnreviewedItem(
            pool=pool,
            pattern=pattern_of(each.item),
            level=getattr(each.item, "level", None),
            confidence=getattr(each.item, "confidence", None),
        )
        for pool in POOLS
        for each in candidates(store, pool)
        if not each.answered
    ]
    return figures(store.reviews(), rest)
