"""Files that still grow → findings: of messages, which are scored and kept, and of rows that were scored elsewhere."""

from undersong.watch.growing import follow_lines
from undersong.watch.kind import DetectedInput, detect_input
from undersong.watch.messages import watch_messages
from undersong.watch.rows import watch, watch_rows

__all__ = ["DetectedInput", "detect_input", "follow_lines", "watch", "watch_messages", "watch_rows"]
