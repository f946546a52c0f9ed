"""Options that several verbs share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import wraps
from math import isnan
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from undersong.models import Problem
    from undersong.patterns.significance.estimate import ResamplingConfig
    from undersong.pipeline.options import Options, Progress

F = TypeVar("F", bound=Callable[..., Any])
NOT_EVERYTHING_READ = 3  # exit code where a file could not be read
_DRAWS = click.IntRange(1, 100_000)  # patterns.chance.MOST
_BLOCK = click.IntRange(1)
SHOWN_PROBLEMS = 20  # lines of problems on stderr; all of them are in the report


class NumberRange(click.FloatRange):
    """A range of numbers: ``nan``, which no limit of a FloatRange holds back, is none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number; a message of wrong use where it is none, or lies outside."""
        number = super().convert(value, param, ctx)
        if isnan(number):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return number


def corpus_options(function: F) -> F:
    """PATH... and what chooses from them."""
    decorators = (
        click.argument("paths", nargs=-1, required=True, metavar="PATH..."),
        click.option("--from", "source_format", metavar="FORMAT", help="Input format; see `undersong formats`."),
        click.option("--only", multiple=True, metavar="PATTERN", help="Only conversations whose id or title matches."),
        click.option("--since", metavar="DATE", help="Only conversations with a message at or after this ISO date."),
        click.option("--seed", default=0, show_default=True, help="Seed of all that is drawn."),
    )
    for decorator in reversed(decorators):
        function = decorator(function)
    return function


def budget_options(function: F) -> F:
    """How much is read."""
    share = NumberRange(0, 1)
    decorators = (
        click.option("--budget-share", type=share, metavar="SHARE", help="Read at most this share of all messages."),
        click.option("--recall", type=share, metavar="R", help="Read as far as triage needs for this recall instead."),
    )
    for decorator in reversed(decorators):
        function = decorator(function)
    return function


def judge_options(function: F) -> F:
    """What a paid judge may spend, and how it is asked; they become one ``terms``."""
    usd, calls = NumberRange(min=0), click.IntRange(min=0)
    decorators = (
        click.option("--budget", type=usd, metavar="USD", help="Stop asking a paid judge before it costs more."),
        click.option("--max-calls", type=calls, metavar="N", help="Stop asking a paid judge after so many requests."),
        click.option("--concurrency", default=16, show_default=True, type=click.IntRange(1, 1024), help="At a time."),
        click.option("--timeout", default=120.0, show_default=True, type=usd, help="Seconds for one answer."),
        click.option("--batch", is_flag=True, help="Hand questions to the provider's batches; run again to collect."),
        click.option("--price-in", type=usd, metavar="USD", help="Price of a million tokens of questions."),
        click.option("--price-out", type=usd, metavar="USD", help="Price of a million tokens of answers."),
    )

    @wraps(function)
    def with_terms(*args: Any, **chosen: Any) -> Any:
        from undersong.judges.limits import RunLimits

        names = ("budget", "max_calls", "concurrency", "timeout", "batch", "price_in", "price_out")
        terms = RunLimits(**{name: chosen.pop(name) for name in names})
        return function(*args, terms=terms, **chosen)

    for decorator in reversed(decorators):
        with_terms = decorator(with_terms)
    return with_terms  # type: ignore[return-value]


def chance_options(function: F) -> F:
    """How much work goes into how sure a finding is."""
    decorators = (
        click.option(
            "--chance/--no-chance", "with_chance", default=True, show_default=True, help="Compute chance, q, stability."
        ),
        click.option("--draws", default=999, show_default=True, type=_DRAWS, help="Shuffles per sequence, at most."),
        click.option("--block", default=1, show_default=True, type=_BLOCK, help="Messages that are shuffled as one."),
    )
    for decorator in reversed(decorators):
        function = decorator(function)
    return function


def effort_of(with_chance: bool, draws: int, block: int, seed: int) -> ResamplingConfig | None:
    """The effort from the flags; None where nothing is to be computed."""
    from undersong.patterns.significance.estimate import ResamplingConfig

    return ResamplingConfig(draws=draws, block=block, seed=seed) if with_chance else None


def options_of(source_format: str | None, only: tuple[str, ...], since: str | None, seed: int, **more: Any) -> Options:
    """The pipeline's options from the flags; raises UsageError for a date that is none, or for two budgets."""
    from undersong.errors import UsageError
    from undersong.pipeline.options import Options

    if more.get("budget_share") is not None and more.get("recall") is not None:
        raise UsageError("--budget-share and --recall together", remedy="give one of them: each decides what is read")
    return Options(source_format=source_format, only=only, since=_date(since), seed=seed, **more)


def show_problems(problems: list[Problem] | tuple[Problem, ...]) -> None:
    """Print what could not be read on stderr, the first lines of it."""
    from undersong.core.sanitize import one_line

    for problem in problems[:SHOWN_PROBLEMS]:
        remedy = f"; {problem.remedy}" if problem.remedy else ""
        click.echo(one_line(f"{problem.kind}: {problem.where}: {problem.what}{remedy}", 400), err=True)
    if len(problems) > SHOWN_PROBLEMS:
        click.echo(f"… and {len(problems) - SHOWN_PROBLEMS} more", err=True)


def exit_code(problems: list[Problem] | tuple[Problem, ...]) -> int:
    """4 where the judge failed, 3 where a file could not be read, else 0."""
    kinds = {problem.kind for problem in problems}
    return 4 if "judge" in kinds else NOT_EVERYTHING_READ if "file" in kinds else 0


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A progress line on stderr while it works, only on a terminal."""
    from undersong.pipeline.options import silent

    if not sys.stderr.isatty():
        yield silent
        return

    def draw(step: str, done: int, total: int) -> None:
        share = f" {'█' * (24 * done // total):<24}" if total else ""
        click.echo(
            f"\r{step:<9}{share} {done:,}{f' of {total:,}' if total else ''} messages \x1b[K", nl=False, err=True
        )

    yield draw
    click.echo("\r\x1b[K", nl=False, err=True)


@contextmanager
def output(path: str) -> Iterator[IO[bytes]]:
    """A file that appears whole or not at all; ``-`` is stdout."""
    if path == "-":
        yield sys.stdout.buffer
        return
    target = Path(path)
    if target.exists() and not target.is_file():  # a pipe or a device is written as it comes
        with target.open("wb") as stream:
            yield stream
        return
    partial = target.with_name(f".{target.name}.partial")
    try:
        with partial.open("wb") as stream:
            yield stream
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


class CountingWriter:
    """A function that writes JSON Lines, and how many bytes it wrote."""

    def __init__(self, write: Callable[[bytes | memoryview], object]) -> None:
        self._write, self.size = write, 0

    def __call__(self, rows: bytes | memoryview) -> None:
        """Write some rows."""
        self._write(rows)
        self.size += len(rows)


def require_messages(written: int, problems: list[Problem] | tuple[Problem, ...]) -> None:
    """Where no message was read, say why and end with InputError, before an older result is written over."""
    from undersong.errors import InputError

    if written == 0:
        show_problems(problems)
        raise InputError("no message could be read, so nothing was written", remedy="see the problems above")


def check_targets(inputs: Iterable[str], *targets: str | None) -> None:
    """Raise UsageError where an output would be written over an input or another output, or has no folder."""
    from undersong.errors import UsageError

    inputs, seen = tuple(inputs), set[Path]()
    for target in targets:
        if target is None or target == "-" or not _is_plain(Path(target)):
            continue
        place = Path(target).resolve()
        if "://" not in target and not place.parent.is_dir():
            raise UsageError(f"no folder {place.parent}", where=target, remedy="make it, or correct the path")
        if place in seen:
            raise UsageError("is named for two outputs", where=target, remedy="give each its own file")
        seen.add(place)
        for input_path in inputs:
            if _would_destroy(place, input_path):
                remedy = "choose another file, outside of what is read"
                raise UsageError("is an input and would be written over", where=target, remedy=remedy)


def check_store(store: str) -> None:
    """Raise UsageError where the folder of ``--store`` is missing: a typo must not make folders."""
    from undersong.errors import UsageError

    if "://" in store:
        return
    folder = Path(store).absolute().parent
    if not folder.is_dir():
        raise UsageError(f"no folder {folder}", where=f"--store {store}", remedy="make it, or correct the path")


def check_existing(store: str) -> None:
    """Raise UsageError where there is no such store: what only makes sense for one that holds something."""
    from undersong.errors import UsageError

    if "://" not in store and not Path(store).is_file():
        raise UsageError(f"no store at {store}", remedy="run `undersong audit` first, or name its store with --store")


def _is_plain(path: Path) -> bool:
    """A file, or nothing yet; pipes and devices may be named twice."""
    return path.is_file() or not path.exists()


def _would_destroy(target: Path, input_path: str) -> bool:
    """Whether ``target`` is the input, or an existing file that would be read from an input folder."""
    from undersong.formats.sources import SUFFIXES

    if input_path in ("-", ""):
        return False
    source = Path(input_path).resolve()
    if source == target or (source.is_file() and target.is_file() and source.samefile(target)):
        return True
    return source.is_dir() and target.is_file() and source in target.parents and target.name.lower().endswith(SUFFIXES)


def _date(text: str | None) -> datetime | None:
    from undersong.errors import UsageError

    if text is None:
        return None
    try:
        date = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(
            f"--since {text} is not a date", remedy="write it like 2026-03-01 or 2026-03-01T12:00"
        ) from error
    return date if date.tzinfo else date.replace(tzinfo=UTC)
