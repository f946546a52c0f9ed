"""Hyperscan (Vectorscan) as another engine; needs ``pip install undersong[hyperscan]``."""

from __future__ import annotations

from collections.abc import Sequence

from undersong.errors import UsageError


class HyperscanMatcher:
    """All strings as literals in one database."""

    def __init__(self, strings: Sequence[bytes]) -> None:
        """Raises UsageError where hyperscan is not installed."""
        try:
            import hyperscan
        except ImportError as error:
            raise UsageError("hyperscan is not installed", remedy="pip install 'undersong[hyperscan]'") from error
        self._lengths = [len(one) for one in strings]
        self._database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
        self._database.compile(
            expressions=list(strings), ids=list(range(len(strings))), elements=len(strings), flags=0, literal=True
        )
        self._scratch = hyperscan.Scratch(self._database)

    def find(self, data: bytes) -> list[tuple[int, int, int]]:
        """See Matcher; the engine says where a string ends, its length where it starts."""
        found: list[tuple[int, int, int]] = []
        lengths = self._lengths

        def on_match(index: int, _start: int, end: int, _flags: int, _context: object) -> None:
            found.append((index, end - lengths[index], end))

        self._database.scan(data, match_event_handler=on_match, scratch=self._scratch)
        return found
