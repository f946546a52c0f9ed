"""undersong finds in conversations what no single message shows."""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"

_PUBLIC = {
    "Case": "undersong.models",
    "Conversation": "undersong.models",
    "Finding": "undersong.models",
    "Message": "undersong.models",
    "Monitor": "undersong.monitor",
    "Observation": "undersong.monitor",
    "Options": "undersong.pipeline.options",
    "RunLimits": "undersong.judges.limits",
    "SyncMonitor": "undersong.monitor",
    "UndersongError": "undersong.errors",
    "audit": "undersong.pipeline.audit",
    "build_evaluation_prompt": "undersong.pipeline.compat",
    "detect_patterns": "undersong.patterns.detect",
    "scan_keywords": "undersong.pipeline.compat",
    "scan_thread": "undersong.pipeline.compat",
    "to_frame": "undersong.rows.arrow",
}
__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str) -> Any:
    """Load a public name on first use, so that ``import undersong`` stays light."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'undersong' has no attribute {name!r}")
    from importlib import import_module

    try:
        return getattr(import_module(_PUBLIC[name]), name)
    except ModuleNotFoundError as error:
        if error.name != "pyarrow":
            raise
        usage_error = import_module("undersong.errors").UsageError
        raise usage_error("pyarrow is not installed", remedy="pip install 'undersong[parquet]'") from error


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
