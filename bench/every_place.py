"""Changes every place of every JSON sample in turn: each word is read, or named by what is said of the input.

python -m bench.every_place [--only telegram,slack]

The fuzz run (bench/fuzz.py) changes places by chance; here each key has another name once, and each value is once of
another type, in a list and in an object. The judge of each input is that of the fuzz run. Exit code 1 where words are
lost.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bench.fuzz import FAILURES, Sample, Wanted, attempt, samples

VALUES: tuple[Any, ...] = (["x"], {"x": "y"}, 5, None, "zzz", [], {"q": ["Some words here."]})


class Change(NamedTuple):
    """A sample with one place changed."""

    what: str
    place: tuple[str | int, ...]
    data: bytes


def changes(sample: Sample) -> Iterator[Change]:
    """Each change of a sample that is a JSON document, or of JSON Lines; none of any other."""
    try:
        for what, place, document in _changed(json.loads(sample.data)):
            yield Change(what, place, json.dumps(document).encode())
        return
    except ValueError:
        pass
    lines = sample.data.decode("utf-8", "replace").split("\n")
    for number, line in enumerate(lines):
        try:
            document = json.loads(line)
        except ValueError:
            continue
        for what, place, other in _changed(document):
            rest = [*lines[:number], json.dumps(other), *lines[number + 1 :]]
            yield Change(what, (number, *place), "\n".join(rest).encode())


def _changed(document: Any) -> Iterator[tuple[str, tuple[str | int, ...], Any]]:
    for place in _places(document):
        key = place[-1]
        if isinstance(key, str):
            other, parent = _copied(document, place)
            items = [(f"other_{name}" if name == key else name, value) for name, value in parent.items()]
            parent.clear()
            parent.update(items)
            yield "another key", place, other
        for value in VALUES:
            other, parent = _copied(document, place)
            parent[key] = value
            yield f"{value!r} in its place", place, other
        for what in ("in a list", "in an object"):
            other, parent = _copied(document, place)
            parent[key] = [parent[key]] if what == "in a list" else {"inner": parent[key]}
            yield what, place, other


def _copied(document: Any, place: tuple[str | int, ...]) -> tuple[Any, Any]:
    """A copy of a document, and what in it holds a place."""
    other = parent = copy.deepcopy(document)
    for step in place[:-1]:
        parent = parent[step]
    return other, parent


def _places(document: Any) -> Iterator[tuple[str | int, ...]]:
    stack: list[tuple[tuple[str | int, ...], Any]] = [((), document)]
    while stack:
        place, value = stack.pop()
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, inner in items:
            yield (*place, key)
            stack.append(((*place, key), inner))


def lost(sample: Sample, folder: Path) -> Iterator[str]:
    """What went wrong with each change of a sample, detected and by its name."""
    path = folder / sample.name
    for change in changes(sample):
        path.write_bytes(change.data)
        for forced in (False, True):
            form = sample.form if forced else None
            outcome = attempt(path, sample.form, forced=forced, wanted=Wanted.of(sample, change.data, form))
            if outcome.verdict in FAILURES:
                yield f"{sample.form} {sample.name}: {change.place} {change.what}: {outcome.verdict}: {outcome.detail}"
                break


def main() -> int:
    """Run from the command line; exit code 1 where words are lost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="formats, with commas between")
    options = parser.parse_args()
    wrong = 0
    for sample in samples():
        # telemetry stands beside the session that it is of, and is no conversation
        if (options.only and sample.form not in options.only.split(",")) or sample.name.endswith(".telemetry.json"):
            continue
        with tempfile.TemporaryDirectory() as folder:
            for line in lost(sample, Path(folder)):
                print(line, flush=True)
                wrong += 1
    print(f"{wrong} lost" if wrong else "each word was read or named")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
