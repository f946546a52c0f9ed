"""One side at work in one section: runs commands in the section's folder and records what they leave."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.differential.normal import Normal, report_file, tables

INSIDE = Path(__file__).parent / "inside"
LONGEST = 1800.0  # seconds that one command may take


@dataclass(frozen=True)
class Plan:
    """What a run is about: where its inputs are, how much of them is used, and whose judge's server answers where."""

    inputs: Path
    quick: bool
    server: Side
    port: int

    def size(self, quick: int, full: int) -> int:
        """The number for this run."""
        return quick if self.quick else full


@dataclass(frozen=True)
class Side:
    """One version: its checkout, its interpreter, the folder that it works in, and what is replaced in its bytes."""

    name: str
    checkout: Path
    python: str
    work: Path
    normal: Normal

    def environment(self) -> dict[str, str]:
        """Variables of a process of this side: nothing of the caller's but the path of programs."""
        (self.work / "home").mkdir(parents=True, exist_ok=True)
        return {
            "PATH": os.environ.get("PATH", ""), "HOME": str(self.work / "home"), "PYTHONPATH": str(self.checkout),
            "LANG": "C.UTF-8", "TZ": "UTC", "COLUMNS": "120", "OPENBLAS_NUM_THREADS": "1", "PYTHONUTF8": "1",
            "PYTHONDONTWRITEBYTECODE": "", "UNDERSONG_JUDGE_KEY": "own-secret",
        }  # fmt: skip


@dataclass
class Bench:
    """A section of one side. Every command is a numbered step; its folder of records is compared with the other's."""

    plan: Plan
    side: Side
    section: str
    variables: dict[str, str] = field(default_factory=dict)
    steps: int = 0
    step: Path = field(default_factory=Path)

    @property
    def folder(self) -> Path:
        """Where commands run."""
        return self.side.work / "runs" / self.section

    @property
    def records(self) -> Path:
        """Where the records of the section are."""
        return self.side.work / "records" / self.section

    def take(self, *names: str) -> None:
        """Put inputs into the folder, under their own names; large ones as links."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            source, target = self.plan.inputs / name, self.folder / name
            if source.is_dir():
                shutil.copytree(source, target, copy_function=os.link)
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                os.link(source, target)

    def begin(self, command: str) -> None:
        """A new step; what is recorded from now on belongs to it."""
        self.steps += 1
        name = re.sub(r"[^\w.=-]+", "_", command)[:70]
        self.step = self.records / f"{self.steps:04} {name}"
        self.step.mkdir(parents=True)
        self.record("command", command.encode())

    def record(self, name: str, raw: bytes) -> None:
        """Keep bytes for the comparison."""
        path = self.step / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.side.normal(raw))

    def undersong(self, *arguments: str, stdin: bytes = b"") -> bytes:
        """Run the command line and record what it says; its standard output."""
        self.begin(f"undersong {' '.join(arguments)}")
        ran = self.process([self.side.python, "-P", "-m", "undersong", *arguments], stdin)
        self.record("stdout", ran.stdout)
        self.record("stderr", ran.stderr)
        self.record("exit", str(ran.returncode).encode())
        return ran.stdout

    def many(self, commands: Iterable[Sequence[str]]) -> list[bytes]:
        """Run commands that keep nothing, all in one process for the sake of time; their standard outputs."""
        wanted = [list(command) for command in commands]
        ran = self.process([self.side.python, "-P", str(INSIDE / "commands.py")], json.dumps(wanted).encode())
        if ran.returncode:
            raise SystemExit(f"{self.side.name}: {self.section}: commands.py failed\n{ran.stderr.decode()[-3000:]}")
        outs = []
        for command, line in zip(wanted, ran.stdout.splitlines(), strict=True):
            self.begin(f"undersong {' '.join(command)}")
            streams = json.loads(line)
            for name, text in streams.items():
                self.record(name, text.encode("utf-8", "surrogateescape"))
            outs.append(streams["stdout"].encode("utf-8", "surrogateescape"))
        return outs

    def script(self, name: str, *arguments: str) -> bytes:
        """Run a helper of ``inside/`` with this side's interpreter and record what it says; its standard output."""
        self.begin(f"{name} {' '.join(arguments)}")
        ran = self.process([self.side.python, "-P", str(INSIDE / name), *arguments])
        self.record("stdout", ran.stdout)
        self.record("stderr", ran.stderr)
        self.record("exit", str(ran.returncode).encode())
        return ran.stdout

    def environment(self) -> dict[str, str]:
        """Variables of this section's processes."""
        return {**self.side.environment(), **self.variables}

    def process(self, command: list[str], stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Run to the end; one that takes far too long is recorded as such."""
        try:
            return subprocess.run(
                command,
                input=stdin,
                cwd=self.folder,
                env=self.environment(),
                capture_output=True,
                timeout=LONGEST,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, 999, b"", b"took too long")

    def report(self, name: str) -> None:
        """Record every file of a report folder (or of any folder)."""
        for path in sorted((self.folder / name).rglob("*")):
            if path.is_file():
                self.record(str(Path(name) / path.relative_to(self.folder / name)), report_file(path))

    def file(self, *names: str) -> None:
        """Record files, where they were written."""
        for name in names:
            if (self.folder / name).is_file():
                self.record(name, (self.folder / name).read_bytes())

    def store(self, name: str = "undersong.db", *, unordered: bool = False) -> None:
        """Record every table of a store, where there is one."""
        if (self.folder / name).is_file():
            for table, raw in tables(self.folder / name, unordered=unordered).items():
                self.record(f"{name}/{table}", raw)

    def audit(self, out: str, *arguments: str, unordered: bool = False) -> None:
        """Audit into a folder and a store of its own, and record both."""
        self.undersong("audit", *arguments, "--out", out, "--store", f"{out}.db")
        self.report(out)
        self.store(f"{out}.db", unordered=unordered)


Section = Callable[[Bench], None]
