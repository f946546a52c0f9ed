"""Records as data frames, where the optional package is missing."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
sys.modules["pyarrow"] = None
import undersong
try:
    undersong.models.frame.frame_of(object(), "polars")
except undersong.errors.UsageError as error:
    print(error)
"""


def test_a_frame_without_its_extra_names_the_extra() -> None:
    program = PROGRAM.replace("import undersong\n", "import undersong, undersong.models.frame, undersong.errors\n")
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "undersong[parquet]" in ran.stdout
