"""Check a report folder: every byte by its hash, every quote in its message, every pure step by doing it again."""

from undersong.verify.check import Verification, check, verify
from undersong.verify.manifest_check import Discrepancy

__all__ = ["Discrepancy", "Verification", "check", "verify"]
