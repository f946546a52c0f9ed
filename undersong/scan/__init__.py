"""The free signals: phrases, structure, threads and telemetry; no model, no cost, every message."""

from undersong.scan.conversation import scan_conversation, scan_conversations
from undersong.scan.phrases import SignalBook, load_book

__all__ = ["SignalBook", "load_book", "scan_conversation", "scan_conversations"]
