"""``to_frame`` of the records, which is worked out where the tables are, on first use: records know no tables."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Literal

from undersong.errors import UsageError

FrameLibrary = Literal["polars", "pandas", "pyarrow"]


def frame_of(record: Any, library: FrameLibrary) -> Any:
    """The public ``undersong.to_frame`` of a record; raises UsageError where the extra ``parquet`` is missing."""
    try:
        to_frame = import_module("undersong").to_frame
    except ModuleNotFoundError as error:
        if error.name != "pyarrow":
            raise
        raise UsageError("pyarrow is not installed", remedy="pip install 'undersong[parquet]'") from error
    return to_frame(record, library)
