"""Files that still grow → findings: of messages, which are scored and kept, and of rows that were scored elsewhere."""

from undersong.watch.growing import pieces
from undersong.watch.kind import Known, known
from undersong.watch.messages import watch_messages
from undersong.watch.rows import watch, watch_rows

__all__ = ["Known", "known", "pieces", "watch", "watch_messages", "watch_rows"]
