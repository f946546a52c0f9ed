"""What Inspect loads by our entry point: the scorer, and the scanner where Scout is installed."""

from __future__ import annotations

from importlib.util import find_spec

from undersong.bridges.inspect_scorer import audit_scorer

if find_spec("inspect_scout") is not None:
    from undersong.bridges.scout import audit_scanner

    __all__ = ["audit_scanner", "audit_scorer"]
else:
    __all__ = ["audit_scorer"]
