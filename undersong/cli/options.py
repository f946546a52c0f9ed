"""Options, checks and printing that several verbs share."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import wraps
from math import isnan
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn, TypeVar

import click
from click.core import ParameterSource

from undersong.core.sanitize import one_line, visible
from undersong.core.text import counted
from undersong.errors import InputError, UsageError
from undersong.models import LEVELS
from undersong.stores.addresses import without_password
from undersong.stores.protocol import Store, open_store

if TYPE_CHECKING:
    from undersong.models import Finding, Problem
    from undersong.pipeline.options import Options

F = TypeVar("F", bound=Callable[..., Any])
NOT_EVERYTHING_READ = 3  # exit code where a file could not be read
_DRAWS = click.IntRange(1, 100_000)  # patterns.chance.MOST
_BLOCK = click.IntRange(1)
WIDEST, WHERE = 160, 60  # characters of a line on stderr, and of a place in it; the report has all of it
SHOWN_PROBLEMS = 20  # lines of problems on stderr; all of them are in the report
PROBLEM_COLOURS = {"file": "red", "judge": "red", "record": "yellow"}  # a note has none
_NUMBER = re.compile(r"\d[\d,.]*|'[^']*'|\"[^\"]*\"")  # what differs between problems of a kind


class NumberRange(click.FloatRange):
    """A range of numbers: ``nan``, which no limit of a FloatRange holds back, is none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number; a message of wrong use where it is none, or lies outside."""
        number = super().convert(value, param, ctx)
        if isnan(number):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return number


def _options(*decorators: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator, in the order in which the help lists them."""

    def decorate(function: F) -> F:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


_SHARE, _USD, _CALLS = NumberRange(0, 1), NumberRange(min=0), click.IntRange(min=0)

DEFAULT_STORE = "undersong-report.db"  # of every command: what an audit without --out leaves beside its report
LEDGER = "undersong-report.ledger.db"  # paid answers, where the store is on a server


def _fields(ctx: click.Context, param: click.Parameter, value: str | None) -> dict[str, str] | None:  # noqa: ARG001
    """The keys of ``--map``, checked before any work."""
    from undersong.formats.field_map import field_map

    return field_map(value) if value else None


def store_option(store: str) -> str:
    """What another command needs to find the same store, with a space before; "" for the usual one."""
    return "" if store == DEFAULT_STORE else f" --store {shlex.quote(without_password(store))}"


def options_again(context: click.Context, names: Collection[str]) -> str:
    """Those of these options that somebody typed, as a shell takes them, with a space before each."""
    from undersong.report.commands import map_words

    shown = ""
    for option in (each for each in context.command.params if isinstance(each, click.Option)):
        name, value = option.name or "", context.params.get(option.name or "")
        if name not in names or context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        flag = (option.opts if value is not False else option.secondary_opts)[0]
        values = value if isinstance(value, tuple) else (value,)
        values = (map_words(value),) if isinstance(value, dict) else values  # of --map
        parts = ("",) if option.is_flag else (f" {shlex.quote(without_password(str(one)))}" for one in values)
        shown += "".join(f" {flag}{part}" for part in parts)
    return shown


map_option = click.option(
    "--map",
    "fields",
    metavar="OURS=THEIRS,…",
    callback=_fields,
    help="What keys of your own JSON mean, such as text=body,author=user_id.",
)


def _corpus_options(required: bool) -> Callable[[F], F]:
    """PATH... and what chooses from them."""
    return _options(
        click.argument("paths", nargs=-1, required=required, metavar="PATH..."),
        click.option("--from", "source_format", metavar="FORMAT", help="Input format; see `undersong formats`."),
        click.option(
            "--dates",
            type=click.Choice(["day-first", "month-first"]),
            help="How to read the dates of an export that can be read in two ways, such as 3/4/25.",
        ),
        map_option,
        click.option("--only", multiple=True, metavar="PATTERN", help="Only conversations whose id or title matches."),
        click.option(
            "--since",
            metavar="DATE",
            help="Only conversations with a message since this ISO date, or 30d, 2w, 12h ago.",
        ),
        click.option("--seed", default=0, show_default=True, help="Seed of all that is drawn."),
    )


corpus_options = _corpus_options(True)
optional_corpus_options = _corpus_options(False)  # of a command that says without PATH what it could read
budget_options = _options(  # how much is read
    click.option("--budget-share", type=_SHARE, metavar="SHARE", help="Read at most this share of all messages."),
    click.option("--recall", type=_SHARE, metavar="R", help="Read as far as triage needs for this recall instead."),
)


def _terms(names: tuple[str, ...], *decorators: Callable[[F], F]) -> Callable[[F], F]:
    """Options with these names as one decorator; they become one ``terms``."""

    def decorate(function: F) -> F:
        @wraps(function)
        def with_terms(*args: Any, **chosen: Any) -> Any:
            from undersong.judges.limits import RunLimits

            terms = RunLimits(**{name: chosen.pop(name) for name in names}, notes={})
            try:
                return function(*args, terms=terms, **chosen)
            finally:
                for note in (terms.notes or {}).values():
                    click.echo(visible(f"note: judge: {note}"), err=True)

        return _options(*decorators)(with_terms)  # type: ignore[arg-type]

    return decorate


_PRICE_OPTIONS = (
    click.option("--price-in", type=_USD, metavar="USD", help="Price of a million tokens of questions."),
    click.option("--price-out", type=_USD, metavar="USD", help="Price of a million tokens of answers."),
)
price_options = _terms(("price_in", "price_out"), *_PRICE_OPTIONS)
judge_options = _terms(  # what a paid judge may spend, and how it is asked
    ("budget", "max_calls", "max_failed", "concurrency", "timeout", "batch", "price_in", "price_out"),
    click.option("--budget", type=_USD, metavar="USD", help="Stop asking a paid judge before it costs more."),
    click.option("--max-calls", type=_CALLS, metavar="N", help="Stop asking a paid judge after so many requests."),
    click.option(
        "--max-failed",
        type=_SHARE,
        default=0.1,
        show_default=True,
        help="Exit with 4 where more of the questions failed.",
    ),
    click.option("--concurrency", type=click.IntRange(1, 1024), help="At a time; default: the provider's, else 16."),
    click.option("--timeout", type=_USD, help="Seconds for one answer; default: the provider's, else 300."),
    click.option("--batch", is_flag=True, help="Hand questions to the provider's batches; run again to collect."),
    *_PRICE_OPTIONS,
)


def chance_options(function: F) -> F:
    """How much work goes into how sure a finding is; with the seed they become ``effort``, None where nothing does."""

    @wraps(function)
    def with_effort(*args: Any, with_chance: bool, draws: int, block: int, **chosen: Any) -> Any:
        from undersong.patterns.significance import ResamplingConfig

        effort = ResamplingConfig(draws=draws, block=block, seed=chosen["seed"]) if with_chance else None
        return function(*args, effort=effort, **chosen)

    options = _options(
        click.option(
            "--chance/--no-chance", "with_chance", default=True, show_default=True, help="Compute chance, q, stability."
        ),
        click.option("--draws", default=999, show_default=True, type=_DRAWS, help="Shuffles per sequence, at most."),
        click.option("--block", default=1, show_default=True, type=_BLOCK, help="Messages that are shuffled as one."),
    )
    return options(with_effort)  # type: ignore[return-value]


def seeded_chance_options(function: F) -> F:
    """The chance options of a command that draws nothing else, with their seed."""

    @wraps(function)
    def without_seed(*args: Any, seed: int, **chosen: Any) -> Any:  # noqa: ARG001 - it is in the effort
        return function(*args, **chosen)

    seed_option = click.option("--seed", default=0, show_default=True, help="Seed of the shuffles.")
    return chance_options(seed_option(without_seed))  # type: ignore[return-value]


def folder_rules(folder: str | None) -> list[str] | None:
    """The folders of ``--rules``; None for the shipped rules."""
    return [folder] if folder else None


def options_of(source_format: str | None, only: tuple[str, ...], since: str | None, seed: int, **more: Any) -> Options:
    """The pipeline's options from the flags; raises UsageError for a date that is none, or for two budgets."""
    from undersong.pipeline.options import Options

    if more.get("budget_share") is not None and more.get("recall") is not None:
        raise UsageError("--budget-share and --recall together", remedy="give one of them: each decides what is read")
    return Options(source_format=source_format, only=only, since=_date(since), seed=seed, **more)


def show_problems(problems: list[Problem] | tuple[Problem, ...]) -> None:
    """Print what could not be read on stderr: those of a kind in one line, the first lines of it."""
    groups: dict[tuple[str, str], list[Problem]] = {}
    for problem in problems:
        groups.setdefault((problem.kind, _NUMBER.sub("#", problem.what)), []).append(problem)
    for first, *others in list(groups.values())[:SHOWN_PROBLEMS]:
        line = _problem_line(first, len(others))
        click.echo(click.style(f"{first.kind}: ", fg=PROBLEM_COLOURS.get(first.kind)) + line, err=True)
    if len(groups) > SHOWN_PROBLEMS:
        rest = sum(map(len, list(groups.values())[SHOWN_PROBLEMS:]))
        click.echo(f"… and {rest:,} more", err=True)


def show_lost_records(problems: Iterable[Problem], listed: str) -> None:
    """Say on stderr how many records of files that were read are lost, which the exit code does not say."""
    lost = sum(problem.kind == "record" for problem in problems)
    if lost:
        click.echo(f"not read   {counted(lost, 'record')} of files that were otherwise read: {listed}", err=True)


def _problem_line(problem: Problem, others: int) -> str:
    """A problem on a line of at most WIDEST characters, of a long path its end; below it a remedy that has no room."""
    if problem.kind == "judge":
        return _judge_lines(problem)
    more = f" (and {counted(others, 'more like it', 'more like it')})" if others else ""
    room = WIDEST - len(problem.kind) - 2 - len(more)
    where = one_line(problem.where, 4 * WIDEST)
    where = where if len(where) <= WHERE else f"…{where[1 - WHERE :]}"
    line = one_line(f"{where}: {problem.what}", room)
    remedy = one_line(problem.remedy or "", WIDEST - 2)
    if len(line) + len(remedy) + 2 > room:
        return f"{line}{more};\n  {remedy}"
    return f"{line}{more}; {remedy}" if remedy else f"{line}{more}"


def _judge_lines(problem: Problem) -> str:
    """Why a judge failed, whole: it ended the run, and names each answer to correct on a line of its own."""
    first, *rest = (one_line(line.strip(), 4 * WIDEST) for line in problem.what.split("\n"))
    where = f"{one_line(problem.where, 4 * WIDEST)}: " if problem.where else ""
    return "\n  ".join((f"{where}{first}", *rest)) + (
        f"; {one_line(problem.remedy, 4 * WIDEST)}" if problem.remedy else ""
    )


def exit_code(problems: list[Problem] | tuple[Problem, ...]) -> int:
    """4 where the judge failed, 3 where a file could not be read, else 0."""
    kinds = {problem.kind for problem in problems}
    return 4 if "judge" in kinds else NOT_EVERYTHING_READ if "file" in kinds else 0


def finish(problems: list[Problem] | tuple[Problem, ...], code: int = 0) -> NoReturn:
    """Print what could not be read and end the command: with its exit code, else with ``code``."""
    show_problems(problems)
    raise SystemExit(exit_code(problems) or code)


def echo(lines: Iterable[str]) -> None:
    """Print lines; what a terminal would act on is made visible."""
    for line in lines:
        click.echo(visible(line))


prevalence_option = click.option(
    "--prevalence",
    type=NumberRange(0.0001, 0.9),
    metavar="SHARE",
    help="The share of speakers that show a shape; default by --profile: coding and agents .01, else .2.",
)

processes_option = click.option(
    "--processes",
    type=click.IntRange(1, 256),
    default=1,
    show_default=True,
    metavar="N",
    help="Share the work out to so many processes; the same result for any number.",
)


def failing(findings: Iterable[Finding], level: str | None, confidence: float | None = None) -> int:
    """The exit code of ``--fail-on``: 1 where a finding has the level or a higher one.

    A finding counts from ``confidence`` (None: .5) on; one whose confidence is not known always does.
    """
    if level is None:
        return 0
    bar = LEVELS.index(level)
    return int(any(LEVELS.index(each.level) >= bar and each.counts_from(confidence) for each in findings))


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
    """Raise InputError where no message was read, before an older result is written over; prints why."""
    if written == 0:
        raise nothing_read(problems)


def nothing_read(problems: list[Problem] | tuple[Problem, ...]) -> InputError:
    """The error of a command that read no message; prints why."""
    show_problems(problems)
    return InputError("no message could be read, so nothing was written", remedy="see the problems above")


def check_targets(inputs: Iterable[str], *targets: str | None) -> None:
    """Raise UsageError where an output would be written over an input or another output, or has no folder."""
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
    if "://" in store:
        return
    folder = Path(store).absolute().parent
    if not folder.is_dir():
        raise UsageError(f"no folder {folder}", where=f"--store {store}", remedy="make it, or correct the path")


def check_existing(store: str) -> None:
    """Raise UsageError where there is no such store: what only makes sense for one that holds something."""
    if "://" not in store and not Path(store).is_file():
        raise UsageError(f"no store at {store}", remedy="run `undersong audit` first, or name its store with --store")


def existing_store(address: str, *, read_only: bool = True) -> Store:
    """An open store; raises UsageError where there is none to open."""
    check_existing(address)
    return open_store(address, read_only=read_only)


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


_AGO = re.compile(r"(\d{1,5})([hdw])")
_HOURS = {"h": 1, "d": 24, "w": 24 * 7}


def _date(text: str | None) -> datetime | None:
    if text is None:
        return None
    ago = _AGO.fullmatch(text.strip())
    if ago:
        return datetime.now(UTC) - timedelta(hours=int(ago[1]) * _HOURS[ago[2]])
    try:
        date = datetime.fromisoformat(text)
    except ValueError as error:
        remedy = "write it like 2026-03-01, 2026-03-01T12:00 or 30d"
        raise UsageError(f"--since {text} is not a date", remedy=remedy) from error
    return date if date.tzinfo else date.replace(tzinfo=UTC)
