#!/usr/bin/env python3
"""The ritual: `python3 make.py VERB`; needs Python 3.11 or later and nothing else.

demo     set up an environment of its own and audit the conversations in demo/ into undersong-report/
test     set up an environment of its own and run linter, type checker and tests (--quick: few, --spark: with pyspark)
check    the linter and the type checker alone
docs     build the documentation site into build/docs, and the man page into build/man
package  build the wheel, the source archive and their bill of materials into dist/, and try them in a fresh environment
numbers  run every published figure again and write docs/numbers.md (--check: say what got worse instead)
release  `release check VERSION`, `release make VERSION`: the checklist of a release as a program
lock     write the locked requirements again (needs uv)
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent
ENVIRONMENT = ROOT / ".venv"
PYTHON = ENVIRONMENT / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def run(*command: str | Path) -> None:
    """Run a command in the project's folder; end with its exit code if it fails."""
    code = subprocess.run([str(part) for part in command], cwd=ROOT, check=False).returncode
    if code:
        sys.exit(code)


def environment(lock: str) -> None:
    """Make .venv with the locked requirements and this package, unless it is there already."""
    wanted = ROOT / "requirements" / lock
    stamp = ENVIRONMENT / f".{lock}.sha256"
    digest = hashlib.sha256(wanted.read_bytes() + (ROOT / "pyproject.toml").read_bytes()).hexdigest()
    if stamp.is_file() and stamp.read_text() == digest:
        return
    if not PYTHON.is_file():
        made = subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=False).returncode
        if made:
            shutil.rmtree(ENVIRONMENT, ignore_errors=True)  # half of one: the next run would take it for whole
            sys.exit(made)
    install("--require-hashes", "--requirement", wanted)
    install("--no-deps", "--no-build-isolation", "--editable", ".")
    stamp.write_text(digest)


def install(*what: str | Path) -> None:
    """Install into .venv: with uv where it is at hand and succeeds, as it is many times as fast, else with pip."""
    uv = shutil.which("uv")
    if uv:
        command = [uv, "pip", "install", "--quiet", "--python", PYTHON, *what]
        if subprocess.run(command, cwd=ROOT, check=False).returncode == 0:
            return
    run(PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what)


def demo() -> None:
    """Audit the conversations of the demo with the readings that are kept for them, then one without any judge."""
    environment("core.txt")
    program = PYTHON.with_name("undersong").relative_to(ROOT)
    audit = ("audit", "demo/conversations", "--read", "sequences", "--judge", "replay:demo/readings.replay")
    for arguments in (audit, ("leads", "demo/network.jsonl")):
        print(f"$ undersong {' '.join(arguments)}", flush=True)
        run(program, *arguments)
        print(flush=True)
    print(f"Now your own file or folder: {program} audit PATH")
    print(f"PATH is an export of ChatGPT, Claude or a messenger, or ~/.claude/projects; {program} formats lists all.")


def check() -> None:
    """Linter and type checker."""
    environment("dev.txt")
    run(PYTHON, "-m", "ruff", "check", ".")
    run(PYTHON, "-m", "ruff", "format", "--check", ".")
    run(PYTHON, "-m", "mypy")


def test() -> None:
    """Linter, type checker and tests, these in up to four processes; further arguments go to pytest.

    ``--quick`` leaves out the tests that are marked slow, and those that need servers or browsers. ``--spark`` installs
    pyspark, for the tests that need it: half a gigabyte.
    """
    environment("dev.txt")
    arguments = sys.argv[2:]
    if "--spark" in arguments:
        arguments.remove("--spark")
        install("--require-hashes", "--requirement", ROOT / "requirements" / "spark.txt")
    if "--quick" in arguments:
        arguments = ["-m", "not slow and not servers", *(each for each in arguments if each != "--quick")]
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(ENVIRONMENT / "bytecode")  # the many programs that tests start compile once
    for library in ("OPENBLAS", "OMP", "MKL"):  # the tests share the processors already
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    os.environ.setdefault("PIP_NO_COMPILE", "1")  # what a test installs runs once or twice
    with bytecode():
        check()
    processes = min(4, (os.cpu_count() or 1) + 1)  # one more than processors: some tests wait for servers
    spread = (f"--numprocesses={processes}", "--dist=loadfile", "--no-loadscope-reorder")
    run(PYTHON, "-m", "pytest", *spread, *arguments)


@contextmanager
def bytecode() -> Iterator[None]:
    """Beside the block, which keeps one processor busy, what the tests import is compiled, where it is not yet.

    Else each process of the tests compiles all of it at the same time.
    """
    if Path(os.environ["PYTHONPYCACHEPREFIX"]).exists():
        yield
        return
    collect = (PYTHON, "-m", "pytest", "--collect-only", "-qq", "-p", "no:cacheprovider")
    with subprocess.Popen(collect, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as collecting:
        try:
            yield
        except BaseException:
            collecting.terminate()
            raise


def docs() -> None:
    """The documentation site and the man page; a warning is an error."""
    environment("dev.txt")
    for builder, folder in (("html", "build/docs"), ("man", "build/man")):
        run(PYTHON, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", builder, "docs", folder)
    print(f"open {ROOT / 'build' / 'docs' / 'index.html'}")


def package() -> None:
    """The wheel, the source archive and their bill of materials in dist/, tried as a stranger would."""
    environment("dev.txt")
    run(PYTHON, "-m", "release.package")


def numbers() -> None:
    """Every published figure again."""
    environment("dev.txt")
    run(PYTHON, "-m", "bench.figures", *sys.argv[2:])


def release() -> None:
    """The checklist of a release."""
    environment("dev.txt")
    run(PYTHON, "-m", "release.checklist", *sys.argv[2:])


def lock() -> None:
    """Lock versions and hashes for every platform, without any address."""
    within = ["--constraint", str(ROOT / "requirements" / "dev.txt")]
    for name, options in (("core", []), ("dev", ["--group", "dev"]), ("spark", ["--extra", "spark", *within])):
        target = ROOT / "requirements" / f"{name}.txt"
        header = ("--no-emit-index-url", "--no-header", "--no-annotate", "--generate-hashes", "--universal", "--quiet")
        extra = [ROOT / "requirements" / "build.in"]
        run(
            "uv",
            "pip",
            "compile",
            "pyproject.toml",
            *extra,
            *options,
            *header,
            "--python-version",
            "3.11",
            "-o",
            target,
        )


VERBS = {verb.__name__: verb for verb in (demo, test, check, docs, package, numbers, release, lock)}

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in VERBS:
        sys.exit(__doc__)
    VERBS[sys.argv[1]]()
