"""Files that still grow → findings: of messages, which are scored and kept, and of rows that were scored elsewhere."""

from undersong.monitor.tail.watch import DetectedInput, detect_input, follow_lines, watch, watch_messages, watch_rows

__all__ = ["DetectedInput", "detect_input", "follow_lines", "watch", "watch_messages", "watch_rows"]
