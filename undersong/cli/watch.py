"""``undersong watch``: findings while conversations, or rows of them, are still being written."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import click
import msgspec

from undersong.cli.help import SectionedCommand, examples
from undersong.cli.options import (
    DEFAULT_STORE,
    NumberRange,
    check_store,
    check_targets,
    exit_code,
    folder_rules,
    judge_options,
    map_option,
    options_again,
    show_lost_records,
    show_problems,
)
from undersong.core.sanitize import visible
from undersong.core.text import counted
from undersong.errors import UsageError
from undersong.models import Problem, encode
from undersong.stores.addresses import without_password

if TYPE_CHECKING:
    from undersong.formats import Format
    from undersong.models import Confirmed, Finding, Message, RetractedFinding
    from undersong.patterns.language.compile import PatternRule

JUDGE_FAILED = 4  # exit code
LEADS_LIVE = (
    "leads from exact words (orders, requests) are told as they come; those that compare everybody need all of it"
)
_OF_MESSAGES = ("store", "judge", "recall", "read_all", "warn", "fields")  # options that make sense for messages alone
Lines: TypeAlias = Iterable[list[bytes]]  # in the pieces in which they come


class PrintableUpdate(Protocol):
    """The findings of an update of an engine or a monitor."""

    @property
    def findings(self) -> Sequence[Finding]: ...
    @property
    def retracted(self) -> Sequence[RetractedFinding]: ...


@click.command(
    "watch",
    cls=SectionedCommand,
    **examples(
        ("undersong watch chat.jsonl --store live.db", "findings while it is being written"),
        ("undersong watch chat.jsonl --no-follow", "to the end of the file"),
    ),
)
@click.argument("path", metavar="FILE.jsonl")
@click.option("--store", metavar="FILE|URL", help=f"Where messages are kept; default: {DEFAULT_STORE} here.")
@click.option("--judge", metavar="NAME", help="Who scores messages; default: offline.")
@click.option("--from", "source_format", metavar="FORMAT", help="Input format of messages; see `undersong formats`.")
@map_option
@click.option("--recall", type=NumberRange(0, 1), metavar="R", help="Read as far as triage needs for this recall.")
@click.option("--all", "read_all", is_flag=True, help="Read every message, whatever the router says.")
@click.option("--seed", default=0, show_default=True, help="Seed of the audit sample.")
@click.option("--emerging", "warn", is_flag=True, help="Also warn of sequences past the middle of a pattern.")
@click.option(
    "--sequences/--no-sequences",
    default=True,
    show_default=True,
    help="Have an LLM judge read the whole sequence of each new or grown finding.",
)
@judge_options
@click.option("--rules", "folder", metavar="DIR", help="Pattern files to use instead of the shipped ones.")
@click.option("--rule", "names", multiple=True, metavar="ID", help="Only these rules; also one that is off by default.")
@click.option("--follow/--no-follow", default=True, show_default=True, help="Wait for more at the end of the file.")
@click.option("--poll", default=1.0, show_default=True, type=NumberRange(0.01), help="Seconds between two looks.")
def command(
    path: str,
    source_format: str | None,
    folder: str | None,
    names: tuple[str, ...],
    follow: bool,
    poll: float,
    **chosen: Any,
) -> None:
    """Print findings of a file that somebody is still writing (-: standard input, to its end), each once it is sure.

    FILE holds messages, in any input format that is written line by line: they are scanned, routed, scored, searched
    and kept in the store, and after a restart it goes on where it was. Or it holds rows of `undersong evaluate`, known
    by `traits` or `state` in the first one: these are only searched, and nothing is kept.

    A finding is a line as of `undersong detect`; one that no longer stands is a line {"retracted": ID}, and one with an
    id that was printed before takes its place. A line {"lead": …} is a lead from exact words, and {"lead_gone": ID} one
    that no longer holds. Exit code 4: the judge did not come to everything.
    """
    from undersong.formats import format_by_name
    from undersong.formats.field_map import renamed_line
    from undersong.monitor.watch import detect_input, follow_lines
    from undersong.patterns.catalog import load_rules

    if chosen["terms"].batch:
        raise UsageError("--batch: a watch waits for each answer", remedy="leave it out, or use `undersong audit`")
    fields = chosen["fields"]
    for_messages = any(chosen[name] not in (None, False) for name in _OF_MESSAGES) or source_format is not None
    rules = load_rules(folder_rules(folder), names)
    form = format_by_name(source_format) if source_format else None
    lines = follow_lines(path, (lambda: time.sleep(poll)) if follow else None)
    if fields:
        lines = ([renamed_line(line, fields) for line in piece] for piece in lines)
    code = 0
    with suppress(KeyboardInterrupt):
        unclear = partial(_waits, path) if follow else bool
        if form is None:
            form, lines = detect_input(lines, path, messages=for_messages, unclear=unclear)
        if form is None and for_messages:
            raise _not_messages(path)
        code = _rows(lines, path, rules) if form is None else _messages(lines, form, path, rules, **chosen)
    raise SystemExit(code)


def _not_messages(path: str) -> UsageError:
    option_names = "--store, --judge, --from, --map, --recall, --all and --emerging"
    what = f"{option_names} are for messages; {path} holds rows without texts, or nothing in a known format"
    rows = "leave them out, or `undersong store import` rows and `undersong sweep`"
    return UsageError(what, remedy=f"{rows}; of plain text, `undersong audit`")


def _waits(path: str, lines: int) -> None:
    """Say that more is waited for, since what is there could be anything."""
    what = f"{path}: {counted(lines, 'line')} of no known format so far; waits for more"
    click.echo(f"{what} (plain text: `undersong audit` when it is whole)", err=True)


def _rows(lines: Lines, path: str, rules: Sequence[PatternRule]) -> int:
    """Watch rows to their end, or until interrupted; the exit code."""
    from undersong.cli.summary import outcome_lines
    from undersong.monitor.watch import watch_rows
    from undersong.patterns.live import LiveDetector

    live = LiveDetector(rules)
    with suppress(KeyboardInterrupt):
        _show(watch_rows(lines, path, live))
    for line in outcome_lines(live.outcomes()):
        click.echo(line, err=True)
    return 0


def _messages(
    lines: Lines,
    form: Format,
    path: str,
    rules: Sequence[PatternRule],
    *,
    store: str | None,
    judge: str | None,
    warn: bool,
    fields: dict[str, str] | None,  # noqa: ARG001 - the lines have our keys by now
    **chosen: Any,
) -> int:
    """Watch messages to their end, or until interrupted; the exit code."""
    from undersong.cli.summary import not_run_lines
    from undersong.formats.sources import public_name
    from undersong.monitor import SyncMonitor
    from undersong.monitor.watch import watch_messages

    store = store or DEFAULT_STORE
    check_targets([path], store)
    check_store(store)
    with SyncMonitor(store, judge or "offline", rules=rules, **chosen) as monitor:
        seen: list[Problem] = []
        with suppress(KeyboardInterrupt):
            name = public_name(Path(path), Path(path))
            seen = _show(watch_messages(lines, form, path, name, monitor, warn=warn))
        show_lost_records(seen, "each is named above")
        outcomes = monitor.outcomes()
        ran = counted(sum(each.status == "ran" for each in outcomes), "rule")
        click.echo(f"{ran} ran; messages, scores and findings are kept in {without_password(store)}", err=True)
        for line in not_run_lines(outcomes):
            click.echo(line, err=True)
        own = options_again(click.get_current_context(), ("source_format", "fields"))
        click.echo(f"{LEADS_LIVE}: `undersong leads {'FILE' if path == '-' else shlex.quote(path)}{own}`", err=True)
        for line in monitor.sequences_read():
            click.echo(visible(line), err=True)
        failed = monitor.failed_questions()
        show_problems([failed] if failed else [])
        loud = monitor.failure is not None or (failed is not None and failed.kind == "judge")
        return max(exit_code(seen), JUDGE_FAILED if loud else 0)


def _show(items: Iterable[Problem | PrintableUpdate]) -> list[Problem]:
    """Print findings and problems; returns those of files and records that could not be read.

    Findings of a confidence under .1 are counted at the end, unless they take the place of one that was printed.
    """
    from undersong.report.order import is_faint

    unread, printed, faint = [], set[str](), set[str]()
    for item in items:
        if isinstance(item, Problem):
            show_problems([item])
            unread += [item] * (item.kind in ("file", "record"))
            continue
        for gone in item.retracted:
            click.echo(json.dumps({"retracted": gone.finding_id, "reason": gone.reason}))
        for finding in item.findings:
            if is_faint(finding) and finding.finding_id not in printed:
                faint.add(finding.finding_id)
                continue
            printed.add(finding.finding_id)
            click.echo(encode(finding))
        for line in _beside(item):
            click.echo(json.dumps(line, ensure_ascii=False))
    if faint - printed:
        click.echo(f"{counted(len(faint - printed), 'finding')} of a confidence under .1 not printed", err=True)
    return unread


def _beside(item: PrintableUpdate) -> Iterator[dict[str, object]]:
    """What an update of messages has beside findings: leads, warnings of sequences, and hard constraints."""
    yield from ({"lead": msgspec.to_builtins(lead)} for lead in getattr(item, "leads", ()))
    yield from ({"lead_gone": name} for name in getattr(item, "leads_gone", ()))
    yield from ({"emerging": msgspec.to_builtins(sequence)} for sequence in getattr(item, "emerging", ()))
    for message, answer in getattr(item, "constraints", ()):
        if answer.yes is not False:
            yield _constraint(message, answer)


def _constraint(message: Message, answer: Confirmed) -> dict[str, object]:
    """A hard constraint that a judge confirmed of a message (``yes``), or why it was not asked (None)."""
    place = {"agent": message.agent, "conversation": message.conversation, "message": message.id}
    quotes = [quote.text for quote in answer.quotes]
    return {"constraint": answer.mechanism, **place, "yes": answer.yes, "quotes": quotes, "reason": answer.reason}
