"""The wheel, the source archive and their bill of materials in dist/, each tried as a stranger would.

Run by `python3 make.py package`. The wheel is built from what is committed, in a clone, so that nothing that only lies
about in the folder gets into it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
WHEEL_BYTES = 16_000_000
ENVIRONMENT_BYTES = 110_000_000
FIRST_FINDING_SECONDS = 60.0
CHAT = ROOT / "demo" / "conversations"


def run(*command: str | Path, cwd: Path = ROOT, allowed: tuple[int, ...] = (0,)) -> str:
    """The output of a command; ends the program with it where the command fails."""
    ran = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False)
    if ran.returncode not in allowed:
        sys.exit(f"{command[0]} ended with {ran.returncode}:\n{ran.stdout}{ran.stderr}")
    return ran.stdout


def build(dist: Path = DIST) -> tuple[Path, Path]:
    """Build the wheel and the source archive from the last commit."""
    shutil.rmtree(dist, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "undersong"
        run("git", "clone", "--quiet", "--no-hardlinks", ROOT, clone)
        run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", dist, cwd=clone)
        readme = clone / "README.md"
        readme.write_text(without_local_links(readme.read_text(encoding="utf-8")), encoding="utf-8")
        run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", dist, cwd=clone)
    return next(dist.glob("*.whl")), next(dist.glob("*.tar.gz"))


def without_local_links(markdown: str) -> str:
    """A text whose links to files beside it are their words alone: on the page of a package index they lead nowhere."""
    return re.sub(r"\[([^\]]+)\]\((?![a-z]+:)[^)]*\)", r"\1", markdown)


def environment(folder: Path, wheel: Path) -> Path:
    """A fresh environment with nothing but the wheel and what it needs; the path of its Python."""
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    uv = shutil.which("uv")
    if uv:
        run(uv, "venv", "--quiet", "--python", sys.executable, folder)
        run(uv, "pip", "install", "--quiet", "--python", python, wheel)
    else:
        run(sys.executable, "-m", "venv", folder)
        run(python, "-m", "pip", "install", "--quiet", wheel)
    return python


def size(folder: Path) -> int:
    """Bytes of the files of an environment, without pip, bytecode and what links point to."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return sum(path.stat().st_size for path in files if not {"pip", "__pycache__"} & set(path.parts))


def try_out(wheel: Path) -> dict[str, float | int]:
    """Install the wheel afresh, have it examine itself and make a first report; the figures of that."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        python = environment(Path(folder) / "env", wheel)
        program = python.with_name("undersong")
        work = Path(folder) / "work"
        work.mkdir()
        shutil.copytree(CHAT, work / "chats")
        run(program, "doctor", cwd=work)
        run(program, "audit", "chats", cwd=work)
        seconds = time.monotonic() - began
        run(program, "verify", "undersong-report", cwd=work)
        return {
            "wheel_bytes": wheel.stat().st_size,
            "environment_bytes": size(Path(folder) / "env"),
            "seconds": seconds,
        }


def bill_of_materials(wheel: Path) -> Path:
    """The packages of a fresh installation as CycloneDX JSON beside the wheel."""
    target = wheel.with_name(f"{wheel.name.removesuffix('.whl')}.cdx.json")
    with tempfile.TemporaryDirectory() as folder:
        python = environment(Path(folder) / "env", wheel)
        text = run(sys.executable, "-m", "cyclonedx_py", "environment", python, "--output-reproducible")
    text = text.replace(wheel.resolve().parent.as_uri() + "/", "")  # where it was built says nothing of what it holds
    target.write_text(json.dumps(json.loads(text), indent=2, sort_keys=True) + "\n", encoding="utf-8")
    return target


def wanted(figures: dict[str, float | int]) -> list[str]:
    """What is over its bound, in words."""
    bounds = (
        ("wheel_bytes", WHEEL_BYTES),
        ("environment_bytes", ENVIRONMENT_BYTES),
        ("seconds", FIRST_FINDING_SECONDS),
    )
    return [f"{name}: {figures[name]:,.0f}, at most {bound:,.0f}" for name, bound in bounds if figures[name] > bound]


def foreign(wheel: Path) -> list[str]:
    """Members of the wheel outside the package and its metadata."""
    with zipfile.ZipFile(wheel) as archive:
        return [name for name in archive.namelist() if not name.startswith(("undersong/", "undersong-"))]


def main() -> None:
    """Build, try and describe; ends with 1 where a bound does not hold."""
    wheel, source = build()
    figures = try_out(wheel)
    bill = bill_of_materials(wheel)
    for path in (wheel, source, bill):
        print(f"{path.relative_to(ROOT)}  {path.stat().st_size:,} bytes")
    print(f"environment {figures['environment_bytes']:,} bytes; from nothing to a report {figures['seconds']:.1f} s")
    faults = wanted(figures) + [f"foreign file in the wheel: {name}" for name in foreign(wheel)]
    if faults:
        sys.exit("\n".join(faults))


if __name__ == "__main__":
    main()
