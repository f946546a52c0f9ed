"""``to_frame`` of the records, which is worked out where the tables are, on first use: records know no tables."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Literal

FrameLibrary = Literal["polars", "pandas", "pyarrow"]
FrameRows = Literal["findings", "leads", "claims", "reviews"]


def frame_of(record: Any, library: FrameLibrary, rows: FrameRows = "findings") -> Any:
    """The public ``undersong.to_frame`` of a record."""
    return import_module("undersong").to_frame(record, library, rows)
