"""How fast ``undersong scan`` is: ``python bench/scan.py [--messages N] [--runs N] [--large N] [--data DIR]``.

Prints messages per CPU second and MB/s of the whole program (all signals; phrases and threads alone; two processes,
and two scans at once), beside what else can be done with the same file in the same run: reading it (the floor), the
same phrases through stdlib ``re`` and through ripgrep where it is installed. Then the share of each stage. Each
figure is the least of ``--runs`` runs, which take turns, since a machine is not equally fast all the time; stdlib
``re`` and the stages have one. ``--input FILE`` takes our own JSON Lines instead of a generated corpus. With
``--data`` (labelled conversations) the same on natural text, repeated with changed words. With ``--large`` the peak
memory at both sizes, also with interleaved conversations, and nothing else. Figures are of this machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from corpora import generated, interleaved, natural

from undersong.scan import load_book

MIB = 1 << 20
FEW = 500  # messages that stdlib re gets: it is so slow
FASTEST = ("--signals", "phrases,threads")


# runs the program and says, last on standard error, what this process took without the ones it started
TOLD = """
import resource, sys
from undersong.cli import main
try:
    main()
finally:
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(used.ru_utime + used.ru_stime, file=sys.stderr)
"""


class Cost(NamedTuple):
    """What a program took: CPU seconds of all its processes, seconds on the clock, peak memory of one in MiB, and CPU
    seconds of the first process alone."""

    cpu: float
    wall: float
    memory: float
    first: float = 0.0


def main() -> None:
    """Measure and print."""
    arguments = _arguments()
    print(f"{_processor()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    with tempfile.TemporaryDirectory(prefix="undersong-bench-") as folder:
        if arguments.large:
            memory(Path(folder), arguments)
            return
        for title, path in _inputs(Path(folder), arguments):
            messages, size = _count(path), path.stat().st_size
            print(f"\n{title}: {messages} messages, {size / MIB:.1f} MiB, {size / messages:.0f} bytes a line\n")
            table(path, messages, size, arguments.runs)
            two_processes(path, arguments.runs)
            stages(path, messages)


def _inputs(folder: Path, arguments: argparse.Namespace) -> Iterator[tuple[str, Path]]:
    if arguments.input:
        yield arguments.input.name, arguments.input
        return
    path = folder / "corpus.jsonl"
    generated(arguments.messages, arguments.seed, path)
    yield "generated", path
    if arguments.data:
        natural(arguments.data, arguments.messages, arguments.seed, path)
        yield "natural text", path


def table(path: Path, messages: int, size: int, runs: int) -> None:
    """The whole program beside the floor and beside other ways to find the phrases."""
    phrases = [phrase.text for phrase in load_book().phrases]
    ways: dict[str, Callable[[], Cost]] = {
        "read and parse (floor)": lambda: of_function(lambda: parse(path)),
        "undersong scan, all signals": lambda: scan(path),
        "undersong scan, phrases and threads": lambda: scan(path, *FASTEST),
    }
    if shutil.which("rg"):
        ways["ripgrep -c -i -w -F, same phrases"] = lambda: by_ripgrep(path, phrases)
    start = least(runs, lambda: scan(Path(os.devnull), given_format=False))[0].cpu
    share = start / messages * 1e6
    print(f"start-up: {start:.2f} s of CPU time, {share:.1f} µs a message; it is included below")
    print(f"{'':36}{'messages/CPU s':>15}{'MB/s':>8}{'× floor':>9}")
    costs = [each.cpu for each in least(runs, *ways.values())]
    for title, cost in zip(ways, costs, strict=True):
        line(title, cost, messages, size, costs[0])
    few = min(messages, FEW)
    first = _fewer(path, few)
    slow = of_function(lambda: by_re(first, phrases)).cpu * messages / few
    line(f"stdlib re, the same {len(phrases)} phrases", slow, messages, size, costs[0])
    print("" if shutil.which("rg") else "ripgrep is not installed\n")


def two_processes(path: Path, runs: int) -> None:
    """How much faster two processes are than one, on the clock; they need two idle cores.

    Beside it what these cores give: two scans that share nothing, at once, against one after the other.
    """
    for title, more in (("all signals", ()), ("phrases and threads", FASTEST)):
        alone = partial(scan, path, *more)
        one, two, both = least(runs, alone, partial(scan, path, *more, "--processes", "2"), partial(at_once, alone))
        print(
            f"two processes, {title}: {one.wall / two.wall:.2f} times one ({two.cpu / one.cpu:.2f} times the CPU time, "
            f"{two.first / two.cpu:.0%} of it in the process that hands out the work); "
            f"two scans at once: {2 * one.wall / both.wall:.2f} times one ({both.cpu / one.cpu / 2:.2f})"
        )
    print(f"cores in use by others meanwhile: {os.getloadavg()[0]:.1f} (load)\n")


def at_once(work: Callable[[], Cost]) -> Cost:
    """What a program costs twice, both at the same time."""
    began = time.perf_counter()
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.submit(work), pool.submit(work)
        costs = first.result(), second.result()
    wall = time.perf_counter() - began
    return Cost(sum(cost.cpu for cost in costs), wall, max(cost.memory for cost in costs))


def least(runs: int, *ways: Callable[[], Cost]) -> list[Cost]:
    """The least that each way took in so many runs, in which the ways take turns."""
    rounds = [[way() for way in ways] for _ in range(runs)]
    return [Cost(*map(min, zip(*costs, strict=True))) for costs in zip(*rounds, strict=True)]


def memory(folder: Path, arguments: argparse.Namespace) -> None:
    """Peak memory at two sizes, in order and interleaved."""
    for title, write in (("in order", generated), ("interleaved", interleaved)):
        peaks = []
        for number in (arguments.messages, arguments.large):
            path = folder / "memory.jsonl"
            write(number, arguments.seed, path)
            peaks.append(scan(path).memory)
        grown = 100 * (peaks[1] / peaks[0] - 1)
        print(f"peak memory, {title}: {arguments.messages} messages {peaks[0]:.0f} MiB, ", end="")
        print(f"{arguments.large} messages {peaks[1]:.0f} MiB ({grown:+.1f} %)", flush=True)
    print()


def stages(path: Path, messages: int) -> None:
    """CPU time of each step of the scan, one after the other in this process."""
    from undersong.formats.ingest import gather
    from undersong.formats.normalize import normalize_conversation
    from undersong.formats.spool import Spool
    from undersong.pipeline.scan_export.stream import _Pieces, _retain_memory

    _retain_memory()
    clock = _Clock()
    with Spool(early=True) as spool:
        pieces = iter(_Pieces(gather([path], spool, hashed=False), spool))
        while True:
            with clock("read, check, decode, spool"):
                piece = next(pieces, [])
            if not piece:
                break
            with clock("decode from the spool"):
                decoded = [stored.decoded() for stored in piece]
            with clock("normalize"):
                conversations = [normalize_conversation(parts)[0] for parts in decoded]
            scan_steps(conversations, clock)
    total = sum(clock.seconds.values())
    print(f"by stage: {total / messages * 1e6:.1f} µs of CPU time a message, of all signals")
    for name, seconds in clock.seconds.items():
        print(f"  {name:28}{seconds / messages * 1e6:6.1f} µs {100 * seconds / total:5.0f} %")


def scan_steps(conversations: list[Any], clock: _Clock) -> None:
    """The steps on the conversations of a piece, each on the clock."""
    from undersong.pipeline.scan_export.rows import encode_rows
    from undersong.routing.route import load_policy, propose, read_demand, unbudgeted_routes
    from undersong.scan import conversation as steps
    from undersong.scan.loops import loops_of

    book, policy = load_book(), load_policy()
    messages = [message for conversation in conversations for message in conversation.messages]
    with clock("fold into blocks"):
        blocks = list(steps._blocks([message.text for message in messages]))
    with clock("loops and replies"):
        loops = loops_of(conversations, messages, blocks, book.loops)
    with clock("phrases"):
        scans = steps.scans_of(messages, blocks, loops, book, True)
    with clock("structure, code"):
        steps._add_structures(conversations, scans, blocks, book.structure)
    with clock("triage"):
        steps.add_triage(messages, scans, book.triage)
        scan_iter = iter(scans)
        own = [tuple(next(scan_iter) for _ in conversation.messages) for conversation in conversations]
    with clock("thread signals"):
        pairs = zip(conversations, own, strict=True)
        threads = [steps.thread_of(conversation, scans, book, steps.ALL, False) for conversation, scans in pairs]
    with clock("route, draw the audit sample"):
        proposals = [propose(*each, policy) for each in zip(conversations, own, threads, strict=True)]
        for conversation, own_scans, proposal in zip(conversations, own, proposals, strict=True):
            read_demand(conversation, own_scans, proposal.ranks, 0)
    with clock("encode rows"):
        routes = [route for proposal in proposals for route in unbudgeted_routes(proposal)]
        encode_rows(zip(messages, [scan for own_scans in own for scan in own_scans], routes, strict=True), text=True)


def scan(path: Path, *more: str, given_format: bool = True) -> Cost:
    """What ``undersong scan`` costs on a file."""
    form = ("--from", "jsonl") if given_format else ()
    command = (sys.executable, "-c", TOLD, "scan", str(path), "--out", os.devnull, *form, *more)
    return of_program(*command, tells=True)


def of_program(*command: str, tells: bool = False) -> Cost:
    """What a program and its processes cost; one that ``tells`` ends with what it took itself."""
    began = time.perf_counter()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        _, _, used = os.wait4(process.pid, 0)
        errors.seek(0)
        first = float(errors.read().split()[-1]) if tells else 0.0
    scale = 1 if sys.platform == "darwin" else 1024
    return Cost(used.ru_utime + used.ru_stime, time.perf_counter() - began, used.ru_maxrss * scale / MIB, first)


def of_function(work: Callable[[], object]) -> Cost:
    """What a function costs in this process; its memory is not told."""
    began, clock = time.process_time(), time.perf_counter()
    work()
    return Cost(time.process_time() - began, time.perf_counter() - clock, 0.0)


def parse(path: Path) -> int:
    """Read a file and parse its lines with the quickest parser at hand."""
    import msgspec

    with path.open("rb") as lines:
        return sum(len(msgspec.json.decode(each)["text"]) for each in lines)


def by_re(texts: list[str], phrases: list[str]) -> int:
    """Count the phrases with one alternation, as most tools do."""
    longest_first = sorted(map(re.escape, phrases), key=len, reverse=True)
    pattern = re.compile(rf"\b(?:{'|'.join(longest_first)})\b", re.IGNORECASE)
    return sum(1 for text in texts for _ in pattern.finditer(text))


def by_ripgrep(path: Path, phrases: list[str]) -> Cost:
    """Count the lines with a phrase."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as patterns:
        patterns.write("\n".join(phrases))
        patterns.flush()
        return of_program("rg", "-c", "-i", "-w", "-F", "--threads", "1", "-f", patterns.name, str(path))


def line(title: str, seconds: float, messages: int, size: int, floor: float) -> None:
    """Print one row of the table."""
    print(f"{title:36}{messages / seconds:15,.0f}{size / seconds / 1e6:8.1f}{seconds / floor:9.1f}", flush=True)


class _Clock:
    """CPU seconds by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        began = time.process_time()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.process_time() - began


def _count(path: Path) -> int:
    with path.open("rb") as lines:
        return sum(1 for _ in lines)


def _fewer(path: Path, number: int) -> list[str]:
    with path.open("rb") as lines:
        return [json.loads(each)["text"] for each, _ in zip(lines, range(number), strict=False)]


def _processor() -> str:
    try:
        match = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    except OSError:
        match = None
    return match[1] if match else platform.processor() or platform.machine()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=300_000, help="messages of the generated corpus")
    parser.add_argument("--runs", type=int, default=2, help="the least of so many is told")
    parser.add_argument("--large", type=int, default=0, help="measure memory only, at this number of messages too")
    parser.add_argument("--seed", type=int, default=1)
    default = os.environ.get("UNDERSONG_DATA")
    parser.add_argument("--data", type=Path, default=default, help="labelled conversations: measure natural text too")
    parser.add_argument("--input", type=Path, help="our own JSON Lines to use instead of generated ones")
    return parser.parse_args()


if __name__ == "__main__":
    main()
