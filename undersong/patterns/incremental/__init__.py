"""Patterns over rows that come one at a time: ``state, row → state, findings``, equal to the search over all of them.

row → live.Live → archive (order, late rows) → agent → view (windows) → track (a sequence) → run (a rule) → machine
"""

from undersong.patterns.incremental.live import Changes, LiveDetector

__all__ = ["Changes", "LiveDetector"]
