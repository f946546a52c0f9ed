"""``undersong watch``: findings while conversations, or rows of them, are still being written."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import click

from undersong.cli.options import NumberRange, check_store, check_targets, exit_code, judge_options, show_problems
from undersong.core.text import counted
from undersong.errors import UsageError

if TYPE_CHECKING:
    from undersong.judges.limits import RunLimits
    from undersong.models import Finding, Problem
    from undersong.monitor.tail.watch import DetectedInput
    from undersong.patterns.language.compile import PatternRule

JUDGE_FAILED = 4  # exit code
STORE = "undersong.db"  # in this folder, as for an audit that writes its report here


class PrintableUpdate(Protocol):
    """What an engine or a monitor tells."""

    @property
    def findings(self) -> Sequence[Finding]: ...
    @property
    def retracted(self) -> Sequence[str]: ...


class WatchSettings(NamedTuple):
    """How messages are to be watched; None: not said."""

    store: str | None
    judge: str | None
    source_format: str | None
    recall: float | None
    read_all: bool
    seed: int
    warn: bool
    terms: RunLimits

    @property
    def of_messages(self) -> bool:
        """Whether something was said that makes sense for messages alone."""
        return any(each is not None for each in self[:4]) or self.read_all or self.warn


@click.command("watch", short_help="Findings while messages or rows are written, as JSON lines.")
@click.argument("path", metavar="FILE.jsonl")
@click.option("--store", metavar="FILE|URL", help=f"Where messages are kept; default: {STORE} here.")
@click.option("--judge", metavar="NAME", help="Who scores messages; default: offline.")
@click.option("--from", "source_format", metavar="FORMAT", help="Input format of messages; see `undersong formats`.")
@click.option("--recall", type=NumberRange(0, 1), metavar="R", help="Read as far as triage needs for this recall.")
@click.option("--all", "read_all", is_flag=True, help="Read every message, whatever the router says.")
@click.option("--seed", default=0, show_default=True, help="Seed of the audit sample.")
@click.option("--emerging", "warn", is_flag=True, help="Also warn of sequences past the middle of a pattern.")
@judge_options
@click.option("--rules", "folder", metavar="DIR", help="Pattern files to use instead of the shipped ones.")
@click.option("--rule", "names", multiple=True, metavar="ID", help="Only these rules; also one that is off by default.")
@click.option("--follow/--no-follow", default=True, show_default=True, help="Wait for more at the end of the file.")
@click.option("--poll", default=1.0, show_default=True, type=NumberRange(0.01), help="Seconds between two looks.")
def command(
    path: str,
    store: str | None,
    judge: str | None,
    source_format: str | None,
    recall: float | None,
    read_all: bool,
    seed: int,
    warn: bool,
    terms: RunLimits,
    folder: str | None,
    names: tuple[str, ...],
    follow: bool,
    poll: float,
) -> None:
    """Print findings of a file that somebody is still writing (-: standard input, to its end), each once it is sure.

    FILE holds messages, in any input format that is written line by line: they are scanned, routed, scored, searched
    and kept in the store, and after a restart it goes on where it was. Or it holds rows of `undersong evaluate`, known
    by `traits` or `state` in the first one: these are only searched, and nothing is kept.

    A finding is a line as of `undersong detect`; one that no longer stands is a line {"retracted": ID}, and one with an
    id that was printed before takes its place. Exit code 4: the judge did not come to everything.
    """
    from undersong.formats import format_by_name
    from undersong.monitor.tail.watch import DetectedInput, detect_input, follow_lines
    from undersong.patterns.catalog import load_rules

    settings = WatchSettings(store, judge, source_format, recall, read_all, seed, warn, terms)
    if terms.batch:
        raise UsageError("--batch: a watch waits for each answer", remedy="leave it out, or use `undersong audit`")
    rules = load_rules([folder] if folder else None, names)
    form = format_by_name(source_format) if source_format else None
    lines = follow_lines(path, (lambda: time.sleep(poll)) if follow else None)
    code = 0
    with suppress(KeyboardInterrupt):
        unclear = partial(_waits, path) if follow else bool
        source = (
            DetectedInput(form, lines)
            if form
            else detect_input(lines, path, messages=settings.of_messages, unclear=unclear)
        )
        if source.form is None and settings.of_messages:
            raise _not_messages(path)
        code = _rows(source, path, rules) if source.form is None else _messages(source, path, rules, settings)
    raise SystemExit(code)


def _not_messages(path: str) -> UsageError:
    option_names = "--store, --judge, --from, --recall, --all and --emerging"
    what = f"{option_names} are for messages; {path} holds rows without texts, or nothing in a known format"
    rows = "leave them out, or `undersong store import` rows and `undersong sweep`"
    return UsageError(what, remedy=f"{rows}; of plain text, `undersong audit`")


def _waits(path: str, lines: int) -> None:
    """Say that more is waited for, since what is there could be anything."""
    what = f"{path}: {counted(lines, 'line')} of no known format so far; waits for more"
    click.echo(f"{what} (plain text: `undersong audit` when it is whole)", err=True)


def _rows(source: DetectedInput, path: str, rules: Sequence[PatternRule]) -> int:
    """Watch rows to their end, or until interrupted; the exit code."""
    from undersong.cli.summary import outcome_lines
    from undersong.monitor.tail.watch import watch_rows
    from undersong.patterns.incremental.live import LiveDetector

    live = LiveDetector(rules)
    with suppress(KeyboardInterrupt):
        _show(watch_rows(source.lines, path, live))
    for line in outcome_lines(live.outcomes()):
        click.echo(line, err=True)
    return 0


def _messages(source: DetectedInput, path: str, rules: Sequence[PatternRule], settings: WatchSettings) -> int:
    """Watch messages to their end, or until interrupted; the exit code."""
    from undersong.cli.summary import not_run_lines
    from undersong.formats.sources import public_name
    from undersong.monitor import SyncMonitor
    from undersong.monitor.tail.watch import watch_messages

    assert source.form is not None
    store = settings.store or STORE
    check_targets([path], store)
    check_store(store)
    with SyncMonitor(
        store, settings.judge or "offline", rules=rules, recall=settings.recall, read_all=settings.read_all,
        seed=settings.seed, terms=settings.terms,
    ) as monitor:  # fmt: skip
        seen: list[Problem] = []
        with suppress(KeyboardInterrupt):
            name = public_name(Path(path), Path(path))
            seen = _show(watch_messages(source.lines, source.form, path, name, monitor, warn=settings.warn))
        outcomes = monitor.outcomes()
        ran = counted(sum(each.status == "ran" for each in outcomes), "rule")
        click.echo(f"{ran} ran; messages, scores and findings are kept in {store}", err=True)
        for line in not_run_lines(outcomes):
            click.echo(line, err=True)
        return max(exit_code(seen), JUDGE_FAILED if monitor.failure else 0)


def _show(items: Iterable[Problem | PrintableUpdate]) -> list[Problem]:
    """Print what is told; the files that could not be read."""
    import msgspec

    from undersong.models import Problem, encode

    unread = []
    for item in items:
        if isinstance(item, Problem):
            show_problems([item])
            unread += [item] * (item.kind == "file")
            continue
        for name in item.retracted:
            click.echo(json.dumps({"retracted": name}))
        for finding in item.findings:
            click.echo(encode(finding))
        for sequence in getattr(item, "emerging", ()):  # of messages alone
            click.echo(json.dumps({"emerging": msgspec.to_builtins(sequence)}))
    return unread
