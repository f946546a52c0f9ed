"""Patterns over rows as they come: after every row the findings are those of a batch run over the rows so far.

row → detector.LiveDetector → row_log (order, late rows) → timeline (which rules can change) → vectorized (the search)
"""

from undersong.patterns.live.changes import Changes
from undersong.patterns.live.detector import LiveDetector

__all__ = ["Changes", "LiveDetector"]
