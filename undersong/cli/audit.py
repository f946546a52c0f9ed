"""``undersong audit``: from an export file to a report."""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from undersong.cli.gates import Gates, gate_options
from undersong.cli.grouping import check_key, group_option, groups
from undersong.cli.help import SectionedCommand, examples
from undersong.cli.nearby import show_readable
from undersong.cli.options import (
    DEFAULT_STORE,
    NumberRange,
    budget_options,
    chance_options,
    check_store,
    check_targets,
    echo,
    exit_code,
    folder_rules,
    judge_options,
    nothing_read,
    optional_corpus_options,
    options_again,
    options_of,
    prevalence_option,
    processes_option,
    show_problems,
)
from undersong.cli.progress import progress_bar
from undersong.core.collection import rare_collection
from undersong.core.sanitize import visible
from undersong.core.text import counted
from undersong.errors import NothingReadError, UsageError
from undersong.models import Case, Conversation
from undersong.models.verdict import PROFILES
from undersong.stores.addresses import without_password
from undersong.stores.protocol import Store, open_store

if TYPE_CHECKING:
    from undersong.cli.gate_lines import FailedResult
    from undersong.patterns.significance import ResamplingConfig
    from undersong.pipeline.options import Options
    from undersong.verify.ssh_signature import Signer

GATE_FAILED = 1  # exit code
STORE_FILES = ("", "-lock", "-turn", "-wal", "-shm")  # endings of the files of a store
PERCENT = NumberRange(0, 100)


def _otlp_address(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:  # noqa: ARG001
    """The address to send to, checked before any work; it need not be there yet."""
    if value is None:
        return None
    from undersong.bridges.otlp_sender import logs_url

    return logs_url(value)


def _signer(ctx: click.Context, param: click.Parameter, value: str | None) -> Signer | None:  # noqa: ARG001
    """The key to sign with, read before any work."""
    if value is None:
        return None
    from undersong.verify.ssh_signature import read_signer

    return read_signer(Path(value).expanduser())


KEPT_AGAIN = (  # options beside those of the case that the same audit with another judge keeps; names to mask stay out
    "out", "store", "no_store", "redact", "names_file", "rules", "names", "formats", "group_by", "processes",
    "confidence", "fail_on", "fail_confidence", "fail_under", "fail_on_unassessed", "fail_on_unread",
)  # fmt: skip


@click.command(
    "audit",
    cls=SectionedCommand,
    **examples(
        ("undersong audit conversations.zip", "an export of ChatGPT or Claude"),
        ("undersong audit ~/.claude/projects --since 7d", "a week of coding sessions"),
        ("undersong audit logs/ --judge anthropic:claude-sonnet-5-5 --budget 5", "read by an LLM, for at most $5"),
        ("undersong audit logs/ --fail-on high --format sarif", "a gate for CI"),
        ("undersong audit chat.txt --no-store --redact", "keep nothing, show no addresses"),
    ),
)
@optional_corpus_options
@budget_options
@judge_options
@click.option("--out", default="undersong-report", show_default=True, metavar="DIR", help="Where the report goes.")
@click.option("--store", metavar="FILE|URL", help="The store; default: DIR.db, beside the report.")
@click.option("--add", is_flag=True, help="Add messages to what --store has of their conversations, such as a new day.")
@click.option("--no-store", is_flag=True, help="Keep nothing but the report; answers that were paid for are lost.")
@click.option("--judge", default="offline", show_default=True, metavar="NAME", help="Who scores the messages.")
@click.option("--all", "read_all", is_flag=True, help="Read every message, whatever the router says.")
@click.option(
    "--read",
    type=click.Choice(["messages", "sequences", "both"]),
    default="messages",
    show_default=True,
    help="Score messages, read whole sequences with an LLM judge, or both.",
)
@prevalence_option
@click.option(
    "--confidence",
    type=click.Choice(["shipped", "reviews"]),
    default="shipped",
    show_default=True,
    help="By the figures that ship, or fitted to the reviews in the store; see `undersong review`.",
)
@click.option(
    "--profile",
    type=click.Choice(PROFILES),
    help="What kind of talk this is; default: by content. Decides which words a report uses.",
)
@click.option(
    "--thinking/--no-thinking",
    default=True,
    help="Read what agents wrote for themselves, where the export has it. [default: thinking]",
)
@click.option("--double-check", type=PERCENT, metavar="PERCENT", help="Read so many of the scored again, framed anew.")
@chance_options
@click.option("--rules", "rules", metavar="DIR", help="Pattern files to use instead of the shipped ones.")
@click.option("--rule", "names", multiple=True, metavar="ID", help="Only these rules; also one that is off by default.")
@click.option("--redact", is_flag=True, help="Mask e-mails, phones and keys in the report; the store keeps them.")
@click.option("--redact-name", "masked", multiple=True, metavar="NAME", help="Mask this name too; repeatable.")
@click.option("--redact-names", "names_file", metavar="FILE", help="Mask the names in this file, one a line.")
@click.option(
    "--format",
    "formats",
    multiple=True,
    metavar="FORMAT",
    help="Write csv, json, jsonl, otlp, parquet or sarif too; repeatable.",
)
@click.option(
    "--otlp",
    metavar="URL",
    callback=_otlp_address,
    help="Send findings as OpenTelemetry events to this receiver of OTLP over HTTP.",
)
@click.option("--sign", "signer", metavar="KEY", callback=_signer, help="Sign the report with this private SSH key.")
@processes_option
@group_option
@gate_options
@click.option("--json", "as_json", is_flag=True, help="Print the summary as one JSON object.")
def command(
    paths: tuple[str, ...],
    out: str,
    store: str | None,
    no_store: bool,
    judge: str,
    read_all: bool,
    double_check: float | None,
    effort: ResamplingConfig | None,
    rules: str | None,
    names: tuple[str, ...],
    redact: bool,
    masked: tuple[str, ...],
    names_file: str | None,
    formats: tuple[str, ...],
    otlp: str | None,
    signer: Signer | None,
    group_by: str | None,
    gates: Gates,
    as_json: bool,
    **chosen: Any,
) -> None:
    """Audit conversations: PATH is an export file, a folder, or - for stdin.

    Writes DIR with forensic_audit_report.md, report.html, findings.jsonl, evaluations.jsonl and manifest.json, keeps
    what it read in DIR.db, and prints a summary. Without PATH it says what could be read here. Findings are
    "consistent with" a pattern; the reader makes the call.

    --fail-on counts what SARIF reports: findings by their level; contradicted claims, points for a false promise, and
    checks that were skipped, silenced or passed by without a word of it as high; the same where the agent says so,
    other points, what was claimed beyond a check, claims that the person answers with "it still fails" or an error,
    and orders to readers as medium; smoking guns as low. --fail-on bypass counts contradicted claims and every way
    round a check, --fail-on lead leads above the cut on which nobody decided. Each result is named with its command.
    """
    from undersong.cli.gate_lines import failed_results
    from undersong.cli.summary import lost_words, print_summary, summary
    from undersong.patterns.catalog import load_rules
    from undersong.pipeline.audit import audit
    from undersong.pipeline.redaction import redacted
    from undersong.report.groups import group_lines
    from undersong.report.render import check_formats
    from undersong.report.writer import ConversationLookup, check_folder, write
    from undersong.verify.signatures import sign_report

    folder = Path(out)
    check_folder(folder)
    check_formats(formats)
    check_key(group_by, masked=redact or bool(masked) or names_file is not None)
    if not paths:
        show_readable("audit")
    check_targets(paths, store)
    if store and no_store:
        raise UsageError("--store and --no-store together", remedy="give one of them")
    if store:
        check_store(store)
    else:
        folder.absolute().parent.mkdir(parents=True, exist_ok=True)
    patterns = load_rules(folder_rules(rules), names) if rules or names else None
    listed = (*masked, *_names(names_file))
    ledger = None if no_store else str(beside(folder, ".ledger.db"))
    options = options_of(judge=judge, read_all=read_all, rules=patterns, effort=effort, ledger=ledger, **chosen)
    if double_check:
        options = _for_two_readings(options)
    began, started = time.monotonic(), datetime.now(UTC)
    own_store = beside(folder, ".db")
    new = own_store if not (store or no_store or own_store.exists()) else None
    with (
        rare_collection(),
        _gone_if_nothing_read(new),
        opened(store or str(own_store), keep=not no_store) as opened_store,
        progress_bar() as progress,
    ):
        case, rows = audit(paths, opened_store, options, progress)
        if double_check:
            case = _double_checked(case, paths, opened_store, options, double_check)
        lookup: ConversationLookup = partial(_conversation, opened_store)
        if redact or listed:
            case, rows, lookup = redacted(
                case, rows, partial(_conversation, opened_store), patterns or load_rules(), effort, listed
            )
        progress("report", 0, 0)
        times = {"started": started.isoformat(), "seconds": time.monotonic() - began}
        digest = write(case, rows, folder, run=times, rules=patterns, conversations=lookup, formats=formats)
        sign_report(folder, signer)
        shares = groups(case, rows, lookup, paths, group_by) if group_by else []
        alone = _leads_alone(case, opened_store if store else None)
    show_problems(case.problems)
    failed = gates.failures(case)
    explain = "" if no_store else f"undersong explain{_store_option(store, folder)}"
    shown_paths = ("PATH",) if redact or listed else paths  # a path may hold a name that is masked
    culprits = failed_results(gates, case, explain)
    facts: dict[str, Any] = {"failed": failed, "failed_results": culprits}
    facts |= {"groups": msgspec.to_builtins(shares)} if group_by else {}
    replayed, more = judge.startswith("replay:"), options_again(click.get_current_context(), KEPT_AGAIN)
    print_summary(
        summary(case, folder, digest, paths=shown_paths, more=more, explain=explain, replayed=replayed) | facts, as_json
    )
    if group_by and not as_json:
        echo(group_lines(shares, group_by))
    _send(case, otlp, as_json)
    if as_json and (lost := sum(problem.kind == "record" for problem in case.problems)):
        click.echo(visible(f"not read   {lost_words(lost, str(folder))}"), err=True)
    _show_gates(gates, case, alone, culprits, as_json)
    raise SystemExit(exit_code(case.problems) or (GATE_FAILED if failed else 0))


def _send(case: Case, url: str | None, as_json: bool) -> None:
    """Send the events to a receiver, where one was named; the report is written by then."""
    if url is not None:
        from undersong.bridges.otlp_sender import send

        click.echo(f"otlp       {counted(send(case, url), 'event')} sent", err=as_json)


def _show_gates(gates: Gates, case: Case, alone: str, culprits: Sequence[FailedResult], as_json: bool) -> None:
    """What holds for all leads of the run, then each gate that did not hold with its results, as the last lines."""
    from undersong.cli.gate_lines import result_lines
    from undersong.cli.summary import program

    lines = [("leads", alone)] if alone else []
    for name, line in (*lines, *(("decided", line) for line in gates.left_out(case))):
        click.echo(f"{name:<11}{visible(line)}", err=as_json)
    if warning := gates.warning(case):
        click.echo(click.style("warning    ", fg="yellow") + visible(warning), err=True)
    for line in gates.failures(case):
        click.echo(click.style("failed     ", fg="red") + visible(line), err=as_json)
        if line.startswith("--fail-on "):
            for detail in result_lines(culprits):
                click.echo(f"           {visible(detail)}".replace("  undersong ", f"  {program()} "), err=as_json)


def _leads_alone(case: Case, store: Store | None) -> str:
    """That the leads rank this input alone, where the store of several runs holds more; "" where that is all."""
    stored = store.counts()["conversations"] if store is not None else 0
    if store is None or stored <= case.conversations or not case.leads:
        return ""
    here = f"rank only the {counted(case.conversations, 'conversation')} of this run; the store holds {stored:,}"
    return f"{here}: `undersong sweep --store {shlex.quote(without_password(store.facts()['store']))}` ranks all"


def _store_option(store: str | None, folder: Path) -> str:
    """What a later command needs to find the store of this run; "" where it looks there by itself."""
    if store is None and beside(folder, ".db") == Path(DEFAULT_STORE).absolute():
        return ""
    return f" --store {shlex.quote(without_password(store) if store else str(folder.parent / f'{folder.name}.db'))}"


def beside(folder: Path, ending: str) -> Path:
    """The file beside a report that is named after it."""
    whole = folder.absolute()
    return whole.parent / f"{whole.name}{ending}"


@contextmanager
def _gone_if_nothing_read(new: Path | None) -> Iterator[None]:
    """Say which inputs could not be read; a store that was made for this run is removed then, once it is closed."""
    try:
        yield
    except NothingReadError as error:
        if new is not None:
            for ending in STORE_FILES:
                new.with_name(f"{new.name}{ending}").unlink(missing_ok=True)
        raise nothing_read(error.problems) from None


def opened(address: str, *, keep: bool) -> AbstractContextManager[Store]:
    """The store, or one that is gone afterwards."""
    from undersong.stores.sqlite import temporary_store

    return open_store(address) if keep else temporary_store(searched=False)


def _for_two_readings(options: Options) -> Options:
    """One budget for the audit and its double check; raises UsageError for a judge that is asked no question."""
    from undersong.judges.llm.at_hand import judge_option
    from undersong.judges.llm.budget import Budget
    from undersong.judges.protocol import is_paid

    if not is_paid(options.judge):
        what = f"the judge '{options.judge}' is asked no question that could be put in two ways"
        raise UsageError(
            what, where="--double-check", remedy=f"name an LLM judge, such as {judge_option()}, or leave it away"
        )
    return msgspec.structs.replace(options, terms=Budget.shared(options.terms))


def _double_checked(case: Case, paths: Any, store: Any, options: Any, percent: float) -> Case:
    """The case with how far another framing moves the scores of a sample, and the spending for it."""
    from undersong.pipeline.case_builder import with_double_check
    from undersong.pipeline.judge_validation import retest

    sample = math.ceil(percent / 100 * case.states.get("scored", 0))
    measured = retest("framing", paths, store, options, sample)
    shift_facts = [msgspec.to_builtins(each) for each in measured.shifts]
    case = msgspec.structs.replace(case, parameters=case.parameters | {"double_check": shift_facts})
    return with_double_check(case, measured.used)


def _conversation(store: Store, name: str) -> Conversation:
    return store.conversation(name)[0]


def _names(path: str | None) -> list[str]:
    """The names of a file, one a line; raises UsageError where it cannot be read."""
    if path is None:
        return []
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        what = f"cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8 text'}"
        raise UsageError(what, where=f"--redact-names {path}", remedy="name a text file, one name a line") from error
