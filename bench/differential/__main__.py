"""The program: chooses, runs at most two processes at a time, compares, and prints."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import bench.differential as package
from bench.differential import compare, inputs
from bench.differential.bench import Bench, Plan, Side
from bench.differential.normal import Normal
from bench.differential.sections import SECTIONS
from bench.differential.sections.verify import verify

AT_A_TIME = 2
PORT = 47310  # fixed, since the address is part of a judge's name, and so of hashes
NAMES = (*SECTIONS, "verify")


def main() -> int:
    """Run and compare; the exit code."""
    options = arguments()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background of a shell, and inherited
    with tempfile.TemporaryDirectory(prefix="undersong-differential-") as temporary:
        work = (options.work or Path(temporary)).resolve()
        sides = make_sides(options, work)
        plan = Plan(work / "inputs", options.quick, sides[0], options.port)
        inputs.make(plan, sides[0], options.shared.resolve(), rules="rules" in (options.only or NAMES))
        for side in sides:
            record_inputs(Bench(plan, side, "inputs"))
        run(plan, sides, options.only or NAMES)
        return conclude(options, sides)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.differential", description=package.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    data = os.environ.get("UNDERSONG_DATA")
    parser.add_argument(
        "checkouts", type=Path, nargs="+", metavar="CHECKOUT", help="OLD NEW, or one with a golden file"
    )
    parser.add_argument("--old-python", default=sys.executable)
    parser.add_argument("--new-python", default=sys.executable)
    parser.add_argument("--only", action="append", choices=NAMES, help="only this section; repeatable")
    parser.add_argument("--quick", action="store_true", help="small inputs, some minutes")
    parser.add_argument("--shared", type=Path, default=Path(data).parent.parent if data else Path("../shared"),
                        help="folder with bench/planted/*/blind.jsonl.gz")  # fmt: skip
    parser.add_argument("--port", type=int, default=PORT, help="of the judge's server; golden files depend on it")
    parser.add_argument("--work", type=Path, help="an empty or new folder to work in, which stays")
    parser.add_argument("--golden", type=Path, metavar="FILE", help="write the hashes of the last checkout's records")
    parser.add_argument("--against", type=Path, metavar="FILE", help="compare one checkout with a golden file")
    options = parser.parse_args()
    check(parser, options)
    return options


def check(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Refuse what cannot be meant."""
    wanted = (1,) if options.against else (1, 2) if options.golden else (2,)
    if len(options.checkouts) not in wanted:
        parser.error("give OLD and NEW, or one checkout with --golden or --against")
    for checkout in options.checkouts:
        if not (checkout / "undersong" / "__init__.py").is_file() and not (checkout / "src" / "undersong").is_dir():
            parser.error(f"{checkout} holds no undersong")
    if options.against and json.loads(options.against.read_text(encoding="utf-8"))["quick"] != options.quick:
        parser.error(f"{options.against} was written {'without' if options.quick else 'with'} --quick")
    if options.work and options.work.exists() and any(options.work.iterdir()):
        parser.error(f"{options.work} is not empty")
    if not any((options.shared / "bench" / "planted").glob("*/blind.jsonl.gz")):
        parser.error(f"{options.shared} holds no bench/planted/*/blind.jsonl.gz; give --shared DIR")


def make_sides(options: argparse.Namespace, work: Path) -> list[Side]:
    """One side for each checkout; the version is replaced where the two differ."""
    pythons = [options.old_python, options.new_python][-len(options.checkouts) :]
    checkouts = [path.resolve() for path in options.checkouts]
    versions = [version_of(python, path) for python, path in zip(pythons, checkouts, strict=True)]
    same = len({*versions}) == 1
    sides = []
    for name, path, python, version in zip(("old", "new"), checkouts, pythons, versions, strict=False):
        paths = ((str(work / name), b"<WORK>"), (str(work), b"<WORK>"), (str(path), b"<CHECKOUT>"))
        normal = Normal(tuple((text.encode(), stand_in) for text, stand_in in paths), None if same else version)
        sides.append(Side(name, path, python, work / name, normal))
    return sides


def version_of(python: str, checkout: Path) -> str:
    """The version of a checkout; ends the program where another one is imported."""
    code = "import undersong; print(undersong.__version__, undersong.__file__)"
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    ran = subprocess.run([python, "-P", "-c", code], env=environment, capture_output=True, text=True, check=False)
    version, _, place = ran.stdout.strip().partition(" ")
    if ran.returncode or not Path(place).is_relative_to(checkout):
        sys.exit(f"{python} does not import undersong from {checkout}: {place or ran.stderr[-1000:]}")
    return version


def run(plan: Plan, sides: list[Side], wanted: tuple[str, ...] | list[str]) -> None:
    """The sections of all sides, at most two at a time; those of the judge one after the other, then verify."""
    names = [name for name in SECTIONS if name in wanted] or ["samples"]  # verify alone needs reports
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        groups = [(name, group) for name in names for group in ([sides] if name == "judge" else [[s] for s in sides])]
        finish([pool.submit(one_section, plan, group, name) for name, group in groups])
        if "verify" in wanted:
            finish([pool.submit(verified, plan, reader, writer) for reader, writer in pairs(sides)])


def record_inputs(bench: Bench) -> None:
    """The hashes of the inputs, for golden files: other inputs explain every other difference."""
    bench.begin("inputs")
    for path in sorted(bench.plan.inputs.iterdir()):
        hashes = compare.digests(path) if path.is_dir() else hashlib.sha256(path.read_bytes()).hexdigest()
        bench.record(path.name, json.dumps(hashes, indent=0).encode())


def pairs(sides: list[Side]) -> list[tuple[Side, Side]]:
    """Who verifies whose reports: each its own and the other's."""
    return [(reader, writer) for writer in sides for reader in sides]


def one_section(plan: Plan, sides: list[Side], name: str) -> None:
    """A section on each of these sides in turn."""
    for side in sides:
        began = time.monotonic()
        SECTIONS[name](Bench(plan, side, name))
        progress(side, name, began)


def verified(plan: Plan, reader: Side, writer: Side) -> None:
    """The last section; a version that verifies the other's reports should say what that one says of them."""
    section = "verify" if reader is writer else "cross"
    began = time.monotonic()
    verify(Bench(plan, reader, section), writer)
    progress(reader, section, began)


def progress(side: Side, name: str, began: float) -> None:
    """A line on standard error."""
    print(f"{side.name} {name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)


def finish(tasks: list[Future[None]]) -> None:
    """Wait for all of them; raises what one raised."""
    for task in tasks:
        task.result()


def conclude(options: argparse.Namespace, sides: list[Side]) -> int:
    """Write the golden file, or compare and print."""
    records = [side.work / "records" for side in sides]
    if options.golden:
        compare.write_golden(options.golden, records[-1], options.quick)
    if options.against:
        count, texts = compare.against(options.against, records[0])
    elif len(records) == 2:
        count, texts = compare.differences(*records)
    else:
        count, texts = len(compare.files(records[0])), []
    for text in texts:
        print(text)
    print(f"{count} comparisons, {len(texts)} differences")
    return 1 if texts else 0


if __name__ == "__main__":
    sys.exit(main())
