"""Summaries of parts as bytes, to travel in a column beside the rows.

They are pickles of which only our own summaries and what these hold are read: a table that somebody else wrote can
name no other code.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from io import BytesIO
from typing import Any, Protocol, TypeVar

from undersong.errors import InputError
from undersong.pipeline.partwise import ScannedPart, ScoredPart, SearchedPart, WeighedPart

PartSummary = ScannedPart | ScoredPart | SearchedPart | WeighedPart
_ALLOWED = frozenset(
    {
        *((kind.__module__, kind.__qualname__) for kind in (ScannedPart, ScoredPart, SearchedPart, WeighedPart)),
        ("undersong.patterns.significance.estimate", "HypothesisFamily"),
        ("undersong.routing.budget", "DemandHistogram"), ("undersong.routing.budget", "LowestDraws"),
        ("undersong.routing.budget", "Census"), ("undersong.routing.lookback", "LookBackIndex"),
        ("undersong.rows.corpus_scales", "PercentileRanks"), ("undersong.rows.corpus_scales", "NullBandCounter"),
        ("undersong.patterns.language.inputs", "CorpusInputs"), ("undersong.patterns.detect", "SearchCounts"),
        ("msgspec._utils", "rebuild"), ("array", "_array_reconstructor"), ("array", "array"),
        ("collections", "Counter"), ("numpy", "dtype"), ("numpy", "ndarray"),
        ("numpy._core.multiarray", "_reconstruct"), ("numpy.core.multiarray", "_reconstruct"),
        ("numpy._core.numeric", "_frombuffer"), ("numpy.core.numeric", "_frombuffer"),
    }
)  # fmt: skip
M = TypeVar("M", bound="Mergeable")


class Mergeable(Protocol):
    """A summary that takes in that of another part."""

    def merge(self, other: Any) -> None:
        """Take in the summary of another part."""
        ...


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"{module}.{name} is part of no summary")
        return super().find_class(module, name)


def packed_summary(summary: PartSummary) -> bytes:
    """The summary as bytes."""
    return pickle.dumps(summary, protocol=5)


def unpacked_summary(data: bytes) -> PartSummary:
    """The summary back; raises InputError for bytes that are none."""
    try:
        summary = _Unpickler(BytesIO(data)).load()
    except (pickle.UnpicklingError, EOFError, AttributeError, TypeError, ValueError, IndexError, KeyError) as error:
        remedy = "give the batches as the step before wrote them"
        raise InputError(f"a summary cannot be read: {error}", where="column 'summary'", remedy=remedy) from error
    if not isinstance(summary, PartSummary):
        raise InputError(f"a summary is {type(summary).__name__}", where="column 'summary'")
    return summary


def merged_summary(parts: Iterable[M]) -> M:
    """The summary of all parts; the first one takes in the others. Raises InputError where there is none."""
    several = iter(parts)
    whole = next(several, None)
    if whole is None:
        raise InputError("no part has a summary", remedy="give the batches as the step before wrote them")
    for part in several:
        whole.merge(part)
    return whole
