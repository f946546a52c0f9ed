"""What is known of a table before it is searched, where earlier searches looked at most of its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from undersong.patterns.language.compile import PatternRule
from undersong.patterns.vectorized.path_cache import PathCache
from undersong.patterns.vectorized.vector_logic import B, Masks


class ChangedSequences(NamedTuple):
    """The sequences of rules by target to search: those towards the targets of ``rows``.

    ``rows`` of the source are public, or directed at such a target; of ``timelines`` the sequence of the public rows
    alone is searched, too.
    """

    rows: B
    timelines: B


class EarlierResults(NamedTuple):
    """``paths``: matches that were found before; ``bits``: of each row of the source the variables that it fits alone.

    ``changed``: the sequences in which there can be others than before. None: not known. ``narrowed``: the bits say
    what the agent's rows before a row rule out, too. ``firsts``: of each timeline the place of its first row there.
    """

    paths: PathCache | None = None
    bits: Callable[[PatternRule], Masks] | None = None
    changed: Callable[[], ChangedSequences] | None = None
    narrowed: bool = False
    firsts: Sequence[int] | None = None


NOTHING_KNOWN = EarlierResults()
