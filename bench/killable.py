"""Commands to be killed: processes of their own, or copies of this process, which has loaded what they need.

A copy works within milliseconds, where a process of its own first loads the program; both are killed alike.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import IO, Any

from undersong import cli

Main = Callable[[], object]


class Command:
    """A command at work, the leader of its process group; what it prints goes into files.

    ``words`` follow the interpreter's name: ``-m undersong audit …``. With ``main``, a function that does what the
    command does, it is a copy of this process.
    """

    def __init__(
        self, words: Sequence[str], main: Main | None = None, *, cwd: Path | None = None,
        environment: Mapping[str, str] = os.environ, out: IO[Any] | None = None,
    ) -> None:  # fmt: skip
        self.words = tuple(words)
        self.out = out or tempfile.TemporaryFile()  # noqa: SIM115 - read when the process has ended
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - likewise
        if main is None:
            command = [sys.executable, *words]
            self._process: subprocess.Popen[bytes] | _Copy = subprocess.Popen(
                command, cwd=cwd, stdout=self.out, stderr=self._errors, env=environment, start_new_session=True
            )
        else:
            self._process = _Copy(main, words, (self.out.fileno(), self._errors.fileno()), cwd, environment)

    def poll(self) -> int | None:
        """None while it runs, else its exit code; minus the number of the signal that ended it."""
        return self._process.poll()

    def wait(self) -> int:
        """Wait for its end, and give its exit code."""
        return self._process.wait()

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to the process alone, unless it has ended."""
        if self.poll() is None:
            os.kill(self._process.pid, number)

    def kill_group(self) -> None:
        """Kill -9 it and every process that it started."""
        if self.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)

    def finish(self) -> None:
        """Wait for a command that must succeed."""
        if self.wait():
            sys.exit(self.ended())

    def ended(self) -> str:
        """How it ended, and what it printed on stderr."""
        self._errors.seek(0)
        return f"{' '.join(self.words)} ended with {self.poll()}: {self._errors.read().decode()}"


class _Copy:
    """A copy of this process that runs a function: of ``subprocess.Popen`` what a Command asks for."""

    def __init__(
        self, main: Main, words: Sequence[str], streams: tuple[int, int], cwd: Path | None, names: Mapping[str, str]
    ) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        work = (main, words, streams, cwd or Path.cwd(), dict(names))
        self._process: BaseProcess = get_context("fork").Process(target=_play, args=work)
        self._process.start()
        self.pid = self._process.pid or 0
        with contextlib.suppress(OSError):  # it has ended
            os.setpgid(self.pid, self.pid)

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self) -> int:
        self._process.join()
        return self._process.exitcode or 0


def _play(main: Main, words: Sequence[str], streams: tuple[int, int], cwd: Path, environment: dict[str, str]) -> None:
    for number, stream in enumerate(streams, 1):
        os.dup2(stream, number)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv, tempfile.tempdir = _argv(words), None  # the folder for temporary files is that of the environment
    main()


def _argv(words: Sequence[str]) -> list[str]:
    return list(words[1:] if words[0] == "-m" else words)


def run_here(words: Sequence[str], cwd: Path, main: Main = cli.main) -> None:
    """Run a command to its end in this process; what it loads and compiles is there for the copies that follow."""
    with _restored(), open(os.devnull, "w", encoding="utf-8") as nowhere:
        os.chdir(cwd)
        sys.argv, sys.stdout, sys.stderr = _argv(words), nowhere, nowhere
        try:
            main()
        except SystemExit as ended:
            if ended.code not in (None, 0):
                raise


@contextmanager
def _restored() -> Iterator[None]:
    """Have what a program sets for itself as it was."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    handlers, mask, folder = [signal.getsignal(number) for number in numbers], os.umask(0o077), Path.cwd()
    before = sys.argv, sys.stdout, sys.stderr
    try:
        yield
    finally:
        sys.argv, sys.stdout, sys.stderr = before
        os.chdir(folder)
        os.umask(mask)
        for number, handler in zip(numbers, handlers, strict=True):
            signal.signal(number, handler)
