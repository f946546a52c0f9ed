"""The free signals: phrases, structure, threads and telemetry; no model, no cost, every message."""

from undersong.scan.conversation import scan_conversation, scan_conversations
from undersong.scan.library import KeywordScanResult, ThreadScanResult, scan_keywords, scan_thread
from undersong.scan.phrases import SignalBook, load_book

__all__ = [
    "KeywordScanResult",
    "SignalBook",
    "ThreadScanResult",
    "load_book",
    "scan_conversation",
    "scan_conversations",
    "scan_keywords",
    "scan_thread",
]
