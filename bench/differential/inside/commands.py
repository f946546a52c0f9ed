"""Runs the command lines of a JSON list from standard input in this process; prints one JSON line for each."""

from __future__ import annotations

import io
import json
import runpy
import sys
import traceback
import warnings

RESULTS = sys.stdout


def run(arguments: list[str]) -> dict[str, str]:
    """What one command line prints, and its exit code."""
    out, errors = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    sys.stdout, sys.stderr, sys.argv = out, errors, ["undersong", *arguments]
    code: object = 0
    try:
        runpy.run_module("undersong", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code
    except Exception:  # noqa: BLE001, a traceback is a result to compare
        traceback.print_exc()
        code = "traceback"
    texts = [each.buffer.getvalue().decode("utf-8", "surrogateescape") for each in (out, errors)]
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
    return {"stdout": texts[0], "stderr": texts[1], "exit": str(code or 0)}


def main() -> None:
    """Every command in turn."""
    warnings.filterwarnings("ignore", category=RuntimeWarning, module="runpy")
    for command in json.load(sys.stdin):
        print(json.dumps(run(command)), file=RESULTS, flush=True)


if __name__ == "__main__":
    main()
