"""The real receiver of the OpenTelemetry Collector, built from its Go modules."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

PROGRAM = Path(__file__).parent / "collector"
SECONDS = 20.0


class Collector(NamedTuple):
    """A receiver that runs: its address, and the file that it writes what it took to."""

    url: str
    output: Path

    def records(self, number: int) -> list[dict[str, Any]]:
        """The log records that it took so far, each with its scope; waits until there are so many."""
        end = time.monotonic() + SECONDS
        while True:
            lines = self.output.read_text(encoding="utf-8").splitlines()[1:]
            scopes = [scope for line in lines for resource in json.loads(line)["resourceLogs"]
                      for scope in resource["scopeLogs"]]  # fmt: skip
            records = [record | {"scope": scope} for scope in scopes for record in scope["logRecords"]]
            if len(records) >= number or time.monotonic() > end:
                return records
            time.sleep(0.02)


@pytest.fixture(scope="session")
def collector_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    go = shutil.which("go")
    if go is None:
        assert not os.environ.get("CI"), "the receiver of the collector is built with go, which is not here"
        pytest.skip("needs go, to build the receiver of the OpenTelemetry Collector")
    program = tmp_path_factory.mktemp("collector") / "receiver"
    command = [go, "build", "-o", str(program), "."]
    built = subprocess.run(command, cwd=PROGRAM, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return program


@pytest.fixture
def collector(collector_program: Path, tmp_path: Path) -> Iterator[Collector]:
    output = tmp_path / "received.jsonl"
    with output.open("wb") as file, subprocess.Popen([collector_program], stdout=file) as process:
        try:
            end = time.monotonic() + SECONDS
            while not output.read_bytes().endswith(b"\n"):
                assert process.poll() is None
                assert time.monotonic() < end
                time.sleep(0.02)
            yield Collector(f"http://{output.read_text().strip()}", output)
        finally:
            process.terminate()
