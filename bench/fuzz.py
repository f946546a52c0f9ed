"""Feeds mutated samples of every format to ingest: no crash, no hang, no unbounded memory.

python bench/fuzz.py --count 100000 --seed 1
"""

from __future__ import annotations

import argparse
import faulthandler
import gzip
import io
import json
import random
import re
import resource
import signal
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from undersong.errors import UndersongError
from undersong.formats import FORMATS
from undersong.formats.ingest import read
from undersong.models import Conversation, InputFile, Problem, encode

SAMPLES = Path(__file__).parent.parent / "tests" / "samples"
DEADLINE = 5.0  # seconds of processor time an input may take; the slowest ordinary one takes a few milliseconds
HARD_STOP = 600  # seconds by the clock after which a hang in C code, or one that waits, ends the run with a traceback
GROWTH = 300 << 20  # bytes by which the process may grow; a record may be 32 MiB and is decoded once
TOKENS = (b"[", b"]", b"{", b"}", b'"', b"\\", b",", b":", b"null", b"\x00", b"\x1b[2J", b"\n", b"\r\n", b"\xff\xfe",
          b"\xed\xa0\x80", b"\xc3", b"\\ud800", b"\\udc00", b"\\u0000", b"1e999", b"-1", b"NaN", b"9" * 400,
          "\u202e\u200b\u0301".encode(), b"- " * 50, b"User: ", b"**A:** ", b"[" * 300, b'{"a":' * 300)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.5, 10**30, 1e308, float("nan"), float("inf"), 253402300800, "", "x", "\ud800", "\x00",
    "2026-13-40T99:00:00", "99999-01-01", "9" * 40, "0001-01-01T00:00:00+23:59", "a" * 5000, [], {}, [[]], [None],
    {"": None}, [1, "a", {"type": "text"}], {"type": "tool_use"}, {"text": 1}, "user",
)  # fmt: skip


class Sample(NamedTuple):
    """A seed input: the format it is of, its file name and bytes."""

    form: str
    name: str
    data: bytes


class Outcome(NamedTuple):
    """What became of one input."""

    form: str
    verdict: str  # ok, problems, file error, crash, hang, lost words
    seconds: float
    detail: str = ""


FAILURES = ("crash", "hang", "lost words")
WORD = re.compile(r"[A-Za-z]{4,}")
KEY = re.compile(r'"([^"\\]{1,80})"\s*:')
ESCAPE = re.compile(r"\\.")  # of a JSON string: a backslash and what it escapes


def samples() -> list[Sample]:
    """The hand-written sample of each format, the exports also as ZIP, one also as gzip."""
    result = []
    for form in FORMATS:
        for path in sorted((SAMPLES / form.name).rglob("*.*")):
            data = path.read_bytes()
            result.append(Sample(form.name, path.name, data))
            if form.name in ("chatgpt", "claude"):
                result.append(Sample(form.name, "export.zip", _zipped(path.name, data)))
            if form.name == "jsonl":
                result.append(Sample(form.name, f"{path.name}.gz", gzip.compress(data, mtime=0)))
    return result


def mutated(rng: random.Random, seed: Sample) -> bytes:
    """One to three changes to a sample; those inside an archive half of the time."""
    data = seed.data
    if seed.name.endswith(".zip") and rng.random() < 0.5:
        return _zipped("conversations.json", mutated(rng, Sample(seed.form, "x.json", _unzipped(data))))
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        data = rng.choice(MUTATIONS)(rng, data)
    return data


def flip(rng: random.Random, data: bytes) -> bytes:
    """Other bytes in a few places."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        if changed:
            changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def cut(rng: random.Random, data: bytes) -> bytes:
    """The end is missing."""
    return data[: rng.randrange(len(data) + 1)]


def lose(rng: random.Random, data: bytes) -> bytes:
    """A stretch is missing."""
    start = rng.randrange(len(data) + 1)
    return data[:start] + data[start + rng.randint(1, 200) :]


def double(rng: random.Random, data: bytes) -> bytes:
    """A stretch stands again elsewhere, sometimes often."""
    start, to = rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)
    return data[:to] + data[start : start + rng.randint(1, 400)] * rng.choice((1, 1, 2, 20)) + data[to:]


def insert(rng: random.Random, data: bytes) -> bytes:
    """Brackets, quotes, control characters, huge numbers, broken UTF-8."""
    to = rng.randrange(len(data) + 1)
    return data[:to] + rng.choice(TOKENS) * rng.choice((1, 1, 1, 3, 500)) + data[to:]


def retype(rng: random.Random, data: bytes) -> bytes:
    """Values of other types in a JSON document or in JSON Lines."""
    try:
        return _dump(_swapped(rng, json.loads(data)))
    except (ValueError, RecursionError):
        pass
    lines = data.split(b"\n")
    index = rng.randrange(len(lines))
    try:
        lines[index] = _dump(_swapped(rng, json.loads(lines[index])))
    except (ValueError, RecursionError):
        return insert(rng, data)
    return b"\n".join(lines)


def nest(rng: random.Random, data: bytes) -> bytes:
    """Deep brackets around or inside."""
    depth, to = rng.choice((150, 250, 1200, 5000)), rng.randrange(len(data) + 1)
    inner = b"[" * depth + b"]" * rng.choice((0, depth))
    return b"[" * depth + data + b"]" * depth if rng.random() < 0.3 else data[:to] + inner + data[to:]


MUTATIONS: tuple[Callable[[random.Random, bytes], bytes], ...] = (
    flip, cut, lose, double, insert, retype, retype, retype, nest
)  # fmt: skip


def run(count: int, seed: int, folder: Path, keep: Path | None = None) -> Iterator[Outcome]:
    """Mutate and read ``count`` inputs; the same seed gives the same inputs. Those that fail are copied to ``keep``."""
    rng = random.Random(seed)
    seeds = samples()
    for sample in seeds:
        (folder / sample.name).write_bytes(sample.data)
    with _watch() as begin:
        for number in range(count):
            chosen = seeds[number % len(seeds)]
            data = mutated(rng, chosen)
            path = folder / chosen.name
            path.write_bytes(data)
            forced = rng.random() < 0.4
            if chosen.name.endswith(".telemetry.json"):
                path = folder / chosen.name.replace(".telemetry", "")
                path.write_bytes((SAMPLES / "session" / path.name).read_bytes())
            begin()
            form = chosen.form if forced else None
            outcome = attempt(path, chosen.form, forced=forced, wanted=Wanted.of(chosen, data, form))
            if keep and outcome.verdict in FAILURES:
                name = f"{seed}-{number}{'-forced' * forced}"
                _put_aside(keep / name, Sample(chosen.form, chosen.name, data), outcome)
            yield outcome


def _put_aside(folder: Path, sample: Sample, outcome: Outcome) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / sample.name).write_bytes(sample.data)
    print(f"{folder}: {outcome.form}: {outcome.verdict}: {outcome.detail}", flush=True)


class Wanted(NamedTuple):
    """The words that must be read of an input, or named: by a problem that the sample as it was does not have, or that
    stands at their place."""

    words: frozenset[str] = frozenset()
    usual: frozenset[str] = frozenset()
    data: bytes = b""

    @classmethod
    def of(cls, sample: Sample, data: bytes, form: str | None) -> Wanted:
        words = still_there(sample, data)
        return cls(words, usual_problems(sample, form), data) if words else cls()

    def lost(self, words: set[str], problems: list[Problem]) -> list[str]:
        """Those of the words that are not among ``words``, nor in one that is joined of several, and that no problem
        names."""
        lost = self.words - words
        if not lost or not self.usual.issuperset(problem.what for problem in problems):
            return []
        joined = words - _plain_words(self.data)
        lost -= {word for word in lost if any(word in other for other in joined)}
        return sorted(lost.difference(*(_words_at(self.data, problem.where) for problem in problems)))


NOTHING = Wanted()


@cache
def usual_problems(sample: Sample, form: str | None) -> frozenset[str]:
    """What is said of a sample as it stands in its file."""
    return frozenset(item.what for item in _read_alone(sample, form) if isinstance(item, Problem))


def _read_alone(sample: Sample, form: str | None = None) -> list[Conversation | Problem | InputFile]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / sample.name
        path.write_bytes(sample.data)
        return list(read([path], source_format=form))


def _words_at(data: bytes, where: str) -> set[str]:
    """The words at a place of an input, such as ``a.json#/turns/3`` or ``a.jsonl:4``."""
    match = re.fullmatch(r"[^#]*?(?::(\d+))?(?:#(/.*))?", where, re.DOTALL)
    if match is None:  # the name of a conversation, not a place
        return set()
    line, pointer = match.groups()
    lines = data.split(b"\n")
    part = lines[int(line) - 1] if line and int(line) <= len(lines) else data if pointer else b""
    try:
        value = json.loads(part) if pointer else None
        for step in pointer.split("/")[1:] if pointer else ():
            value = value[int(step)] if isinstance(value, list) else value[step.replace("~1", "/").replace("~0", "~")]
    except (ValueError, LookupError, TypeError, RecursionError):
        return set()
    return set(_plain_words(_dump(value) if pointer else part))


@cache
def said_in(sample: Sample) -> frozenset[str]:
    """The words of the messages of a sample that stand in the file as they are read, but those that are keys, too."""
    conversations = [item for item in _read_alone(sample) if isinstance(item, Conversation)]
    texts = [message.text for item in conversations for message in item.messages]
    keys = {word for key in KEY.findall(sample.data.decode("utf-8", "replace")) for word in WORD.findall(key)}
    return (frozenset(WORD.findall("\n".join(texts))) - keys) & _plain_words(sample.data)


def still_there(sample: Sample, data: bytes) -> frozenset[str]:
    """The words of a sample's messages that a mutated input still has as the text of a JSON string, or of a line."""
    if sample.name.endswith((".zip", ".gz", ".parquet", ".pb")) or _has_key_twice(data):
        return frozenset()  # of a key that stands twice in an object the last counts, as everywhere in JSON
    return said_in(sample) & _plain_words(data)


def _has_key_twice(data: bytes) -> bool:
    """Whether an object has a key twice, in a document or, where it is none, in one of its lines."""
    for part in (data, *data.split(b"\n")):
        if part.lstrip()[:1] in (b"{", b"["):
            try:
                _UNIQUE.decode(part.decode("utf-8", "surrogateescape"))
            except KeyTwiceError:
                return True
            except (ValueError, RecursionError):
                continue
            if part is data:
                return False
    return False


def _object(items: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(items)
    if len(value) < len(items):
        raise KeyTwiceError
    return value


_UNIQUE = json.JSONDecoder(object_pairs_hook=_object)


class KeyTwiceError(Exception):
    """An object has a key twice."""


def _plain_words(data: bytes) -> frozenset[str]:
    return frozenset(WORD.findall(ESCAPE.sub(" ", data.decode("utf-8", "replace"))))


def attempt(path: Path, form: str, *, forced: bool, wanted: Wanted = NOTHING) -> Outcome:
    """Read one input to its end and check what comes out."""
    started = time.perf_counter()
    try:
        with _deadline():
            verdict = _verdict(read([path], source_format=form if forced else None), wanted)
        return Outcome(form, verdict, time.perf_counter() - started)
    except UndersongError as error:
        return Outcome(form, "crash", time.perf_counter() - started, f"raised instead of reported: {error}")
    except _Late:
        return Outcome(form, "hang", time.perf_counter() - started, str(path))
    except LostWordsError as error:
        return Outcome(form, "lost words", time.perf_counter() - started, str(error))
    except Exception as error:  # noqa: BLE001  any other exception is what this program looks for
        detail = f"{type(error).__name__}: {error}"[:300]
        return Outcome(form, "crash", time.perf_counter() - started, detail)


def growth() -> int:
    """Peak memory of the process so far, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def table(outcomes: list[Outcome]) -> str:
    """Per format: inputs, verdicts, the slowest input."""
    verdicts = ("ok", "problems", "file error", "crash", "hang", "lost words")
    lines = [f"{'format':12} {'inputs':>8} " + " ".join(f"{name:>10}" for name in verdicts) + f" {'slowest ms':>11}"]
    for form in [each.name for each in FORMATS] + ["all"]:
        mine = [each for each in outcomes if form in (each.form, "all")]
        counts = " ".join(f"{sum(each.verdict == name for each in mine):>10}" for name in verdicts)
        slowest = max((each.seconds for each in mine), default=0.0) * 1000
        lines.append(f"{form:12} {len(mine):>8} {counts} {slowest:>11.1f}")
    return "\n".join(lines)


class _Late(BaseException):
    """The deadline of an input has passed; not an Exception, so that no handler on the way can take it."""


@contextmanager
def _deadline() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise _Late

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, DEADLINE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@contextmanager
def _watch() -> Iterator[Callable[[], None]]:
    """A function to call before each input: the process ends with a traceback HARD_STOP after the last call.

    Its thread is started anew once a second, since to end it takes longer than to read an input.
    """
    due = 0.0

    def begin() -> None:
        nonlocal due
        if time.monotonic() >= due:
            faulthandler.dump_traceback_later(HARD_STOP, exit=True)
            due = time.monotonic() + 1

    try:
        yield begin
    finally:
        faulthandler.cancel_dump_traceback_later()


def _verdict(items: Iterator[Conversation | Problem | InputFile], wanted: Wanted) -> str:
    verdict, messages, problems, words = "ok", 0, list[Problem](), set[str]()
    for item in items:
        encoded = encode(item).decode()
        if wanted.words and isinstance(item, Conversation):
            words.update(WORD.findall(ESCAPE.sub(" ", encoded)))
        if isinstance(item, Conversation):
            _check(item)
            messages += len(item.messages)
        elif isinstance(item, Problem):
            problems.append(item)
            if item.kind == "file":
                verdict = "file error"
            elif item.kind == "record" and verdict == "ok":
                verdict = "problems"
    if not messages and not problems:
        raise AssertionError("nothing was read and nothing was said")
    if lost := wanted.lost(words, problems):
        raise LostWordsError(f"neither read nor said: {', '.join(lost[:8])}")
    return verdict


class LostWordsError(Exception):
    """Words of an input are neither in what was read nor is anything said of it."""


def _check(conversation: Conversation) -> None:
    ids = [message.id for message in conversation.messages]
    if len(set(ids)) != len(ids) or not all(ids):
        raise AssertionError("message ids are not unique")
    for position, message in enumerate(conversation.messages):
        if message.position != position or not message.agent or message.agent == message.target:
            raise AssertionError(f"message {message.id!r} is not settled")


def _swapped(rng: random.Random, document: Any) -> Any:
    """The document with one value replaced, removed, doubled or moved."""
    places = list(_places(document))
    if not places:
        return rng.choice(VALUES)
    parent, key = rng.choice(places)
    action = rng.random()
    if action < 0.7:
        parent[key] = rng.choice(VALUES)
    elif action < 0.8:
        del parent[key]
    elif action < 0.9:
        other, name = rng.choice(places)
        if name in other if isinstance(other, dict) else name < len(other):
            parent[key] = json.loads(json.dumps(other[name]))
    elif isinstance(parent, list):
        parent.extend(json.loads(json.dumps(parent[:3])))
    return document


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    stack = [value]
    while stack:
        item = stack.pop()
        keys = list(item) if isinstance(item, dict) else range(len(item)) if isinstance(item, list) else ()
        for key in keys:
            yield item, key
            stack.append(item[key])


def _dump(value: Any) -> bytes:
    return json.dumps(value).encode()


def _zipped(name: str, data: bytes) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
        archive.writestr(zipfile.ZipInfo("user.json"), "{}")
    return target.getvalue()


def _unzipped(data: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return archive.read(archive.namelist()[0])


def main() -> int:
    """Run from the command line; exit code 1 on any crash, hang or unbounded memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="folder for the inputs that failed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        list(run(50, options.seed, Path(folder)))
        before, started = growth(), time.perf_counter()
        outcomes = list(run(options.count, options.seed, Path(folder), options.keep))
    grown = growth() - before
    print(table(outcomes))
    print(f"{time.perf_counter() - started:.0f} s, memory grew by {grown / 2**20:.0f} MiB (limit {GROWTH >> 20})")
    failed = [each for each in outcomes if each.verdict in FAILURES]
    for outcome in failed[:20]:
        print(f"{outcome.form}: {outcome.verdict}: {outcome.detail}")
    return 1 if failed or grown > GROWTH else 0


if __name__ == "__main__":
    sys.exit(main())
