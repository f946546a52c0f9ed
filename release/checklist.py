"""A release as a program: `python3 make.py release check VERSION`, then `python3 make.py release make VERSION`.

Before it, `python3 make.py test` has to pass: this program tries the package, not the tests. After it `check` says
whether the tag, the version and the changelog agree, as the workflow asks before it publishes.

``check`` changes nothing and says everything that stands against the release. ``make`` does the rest, on a clean
``main``: the version and the changelog's heading, a commit, the package tried as a stranger would, notes, the tag.
``notes`` prints what the changelog says of a version, as the workflow publishes it.
Nothing is pushed or published: the last lines say how.
"""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import date
from pathlib import Path

from release import package

ROOT = Path(__file__).resolve().parents[1]
VERSION_FILE = ROOT / "undersong" / "__init__.py"
CHANGELOG = ROOT / "CHANGELOG.md"
BRANCH = "main"
MOST_LINES = 200  # of one release in the changelog: people read it
_VERSION = re.compile(r"\d+\.\d+\.\d+")
_LINE = re.compile(r'^__version__ = "(.*)"$', re.MULTILINE)


def git(*arguments: str) -> str:
    """The output of git in this project."""
    ran = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return ran.stdout.strip()


def version() -> str:
    """The version that the package has now: its one place is ``undersong/__init__.py``."""
    match = _LINE.search(VERSION_FILE.read_text(encoding="utf-8"))
    assert match, VERSION_FILE
    return match[1]


def section(heading: str, changelog: str) -> str:
    """The lines below a heading of the changelog such as ``Unreleased``; "" where it is not there."""
    found_at = re.search(
        rf"^## \[?{re.escape(heading)}\]?(?: [^\n]*)?$\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL
    )
    return found_at[1].strip() if found_at else ""


def against(new: str, *, tagged: bool) -> list[str]:
    """What stands against a release of this version, in words; ``tagged``: everything is done but publishing."""
    if not _VERSION.fullmatch(new):
        return [f"{new!r} is no version: write three numbers, such as 0.2.0"]
    changelog = CHANGELOG.read_text(encoding="utf-8")
    notes = section(new if tagged else "Unreleased", changelog)
    faults = []
    if not notes:
        faults.append(f"CHANGELOG.md has nothing under {new if tagged else 'Unreleased'}")
    if len(notes.splitlines()) > MOST_LINES:
        faults.append(f"CHANGELOG.md has {len(notes.splitlines())} lines for this release, at most {MOST_LINES}")
    if tagged and version() != new:
        faults.append(f"undersong/__init__.py says {version()}")
    if not tagged and git("tag", "--list", f"v{new}"):
        faults.append(f"v{new} is tagged already")
    elif not tagged and _numbers(new) <= _numbers(version()):
        faults.append(f"{new} is not later than {version()}, which undersong/__init__.py says")
    if not tagged and (branch := git("branch", "--show-current")) != BRANCH:
        faults.append(f"this is branch {branch or 'none'}, releases are made on {BRANCH}")
    if git("status", "--porcelain", "--untracked-files=no"):
        faults.append("files are changed and not committed")
    return faults


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


def make(new: str, today: date) -> None:
    """Everything up to the tag; ends with 1, and says why, where something stands against it."""
    _end_with(against(new, tagged=False))
    text = VERSION_FILE.read_text(encoding="utf-8")
    VERSION_FILE.write_text(_LINE.sub(f'__version__ = "{new}"', text), encoding="utf-8")
    changelog = CHANGELOG.read_text(encoding="utf-8")
    CHANGELOG.write_text(
        changelog.replace("## Unreleased\n", f"## Unreleased\n\n## {new} - {today.isoformat()}\n", 1), encoding="utf-8"
    )
    git("commit", "--quiet", "--all", "--message", f"Version {new}")
    package.main()
    notes = package.DIST / "notes.md"
    notes.write_text(section(new, CHANGELOG.read_text(encoding="utf-8")) + "\n", encoding="utf-8")
    _end_with(against(new, tagged=True))
    git("tag", "--annotate", f"v{new}", "--message", f"undersong {new}")
    print(f"tagged v{new}; the notes are in {notes.relative_to(ROOT)}")
    print(f"to publish: git push origin main v{new} (the workflow 'release' builds the same, attests and uploads it)")
    print(f"to take it back before that: git tag --delete v{new} && git reset --hard HEAD~1")


def _end_with(faults: list[str]) -> None:
    if faults:
        sys.exit("\n".join(faults))


def main(arguments: list[str]) -> None:
    """``check VERSION``, ``make VERSION`` or ``notes VERSION``."""
    if len(arguments) != 2 or arguments[0] not in ("check", "make", "notes"):
        sys.exit(__doc__)
    verb, new = arguments
    if verb == "make":
        make(new, date.today())
        return
    if verb == "notes":
        print(section(new, CHANGELOG.read_text(encoding="utf-8")) or sys.exit(f"CHANGELOG.md has nothing under {new}"))
        return
    _end_with(against(new, tagged=version() == new))
    print(f"nothing stands against {new}")


if __name__ == "__main__":
    main(sys.argv[1:])
