"""Conversations while they go on: a message in → route, evaluation, new findings out, everything kept.

sync.SyncMonitor (monitor.Monitor for programs with an event loop) → desk (one update of the store) → talk (one
conversation), backwards (over conversations), agents (patterns over histories).
"""

from undersong.monitor.agents import FindingChanges
from undersong.monitor.monitor import Monitor
from undersong.monitor.state import Observation
from undersong.monitor.sync import SyncMonitor

__all__ = ["FindingChanges", "Monitor", "Observation", "SyncMonitor"]
