"""Live monitoring of conversations: a message in, its route, evaluation and new findings out, everything stored.

sync.SyncMonitor (monitor.Monitor for programs with an event loop) → state (one update of the store, reading back
over conversations) → conversation (one of them), agents (patterns over histories). watch follows a file.
"""

from undersong.monitor.monitor import Monitor
from undersong.monitor.state import Observation
from undersong.monitor.sync import SyncMonitor
from undersong.patterns.live import Changes

__all__ = ["Changes", "Monitor", "Observation", "SyncMonitor"]
