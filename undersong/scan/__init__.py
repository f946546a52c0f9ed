"""The free signals: phrases, structure, threads and telemetry; no model, no cost, every message."""

from undersong.scan.conversation import scan_conversation, scan_conversations
from undersong.scan.library import KeywordScanResult, ThreadScanResult, scan_keywords, scan_thread
from undersong.scan.phrases import SignalBook, load_book
from undersong.scan.prepared import prepare

__all__ = [
    "KeywordScanResult",
    "SignalBook",
    "ThreadScanResult",
    "load_book",
    "prepare",
    "scan_conversation",
    "scan_conversations",
    "scan_keywords",
    "scan_thread",
]
