"""Changes every place of every JSON sample in turn: each word is read, or named by what is said of the input.

python -m bench.every_place [--only telegram,slack]

The fuzz run (bench/fuzz.py) changes places by chance; here each key has another name once, each value is once of
another type, in a list and in an object, and texts of messages, and what is around them, are once in every other place.
The judge of each input is that of the fuzz run. Exit code 1 where words are
lost.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from bench.fuzz import FAILURES, WORD, Sample, Wanted, attempt, said_in, samples

VALUES: tuple[Any, ...] = (["x"], {"x": "y"}, 5, None, "zzz", [], {"q": ["Some words here."]})


class Change(NamedTuple):
    """A sample with one place changed."""

    what: str
    place: tuple[str | int, ...]
    data: bytes


def changes(sample: Sample) -> Iterator[Change]:
    """Each change of a sample that is a JSON document, or of JSON Lines; none of any other."""
    for document, written in _documents(sample):
        for what, place, other in _changed(document):
            yield Change(what, place, written(other))


def moves(sample: Sample, texts: int = 2) -> Iterator[Change]:
    """A sample with some texts of its messages, and the one or two values around each, moved to every other place."""
    for document, written in _documents(sample):
        spoken = _spoken(document, said_in(sample))
        random.Random(1).shuffle(spoken)
        around = [place[:end] for place in spoken[:texts] for end in range(len(place), max(0, len(place) - 3), -1)]
        for source in dict.fromkeys(around):
            for target in _elsewhere(document, source):
                yield Change(f"has {source}", target, written(_moved(document, source, target)))


def moves_by_key(sample: Sample) -> Iterator[Change]:
    """Those of ``moves`` that move a text of a sample to one place of each key."""
    keys = set[str | int]()
    for document, written in _documents(sample):
        for source in _spoken(document, said_in(sample))[:1]:
            for target in _elsewhere(document, source):
                if isinstance(target[-1], str) and target[-1] not in keys:
                    keys.add(target[-1])
                    yield Change(f"has {source}", target, written(_moved(document, source, target)))


def _spoken(document: Any, words: frozenset[str]) -> list[tuple[str | int, ...]]:
    """The places of the texts that have words of messages."""
    strings = ((place, _at(document, place)) for place in _places(document))
    return [place for place, text in strings if isinstance(text, str) and " " in text and words & {*WORD.findall(text)}]


def _elsewhere(document: Any, source: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    """The places that are neither within another one nor around it."""
    for target in _places(document):
        if target[: len(source)] != source and source[: len(target)] != target:
            yield target


def _documents(sample: Sample) -> Iterator[tuple[Any, Callable[[Any], bytes]]]:
    """The JSON document of a sample, or that of each line, and what writes the sample with another one."""
    try:
        yield json.loads(sample.data), lambda other: json.dumps(other).encode()
        return
    except ValueError:
        pass
    lines = sample.data.decode("utf-8", "replace").split("\n")
    for number, line in enumerate(lines):
        with suppress(ValueError):
            yield json.loads(line), partial(_with_line, lines, number)


def _with_line(lines: list[str], number: int, document: Any) -> bytes:
    return "\n".join([*lines[:number], json.dumps(document), *lines[number + 1 :]]).encode()


def _moved(document: Any, source: tuple[str | int, ...], target: tuple[str | int, ...]) -> Any:
    """A copy of a document with a value in another place, and an empty one of its kind where it was."""
    other, parent = _copied(document, target)
    value = _at(document, source)
    parent[target[-1]] = copy.deepcopy(value)
    _at(other, source[:-1])[source[-1]] = "x" if isinstance(value, str) else type(value)()
    return other


def _at(document: Any, place: tuple[str | int, ...]) -> Any:
    for step in place:
        document = document[step]
    return document


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
    for change in chain(changes(sample), moves(sample)):
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
