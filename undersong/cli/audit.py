"""``undersong audit``: from an export file to a report."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from undersong.cli.options import (
    NumberRange,
    budget_options,
    chance_options,
    check_store,
    check_targets,
    corpus_options,
    exit_code,
    judge_options,
    nothing_read,
    options_of,
    prevalence_option,
    progress_bar,
    show_problems,
)
from undersong.core.sanitize import one_line
from undersong.core.text import counted, mechanism_name
from undersong.errors import NothingReadError, UsageError
from undersong.models import LEVELS, Case, Conversation, Deduction
from undersong.models.verdict import PROFILES
from undersong.report.order import FindingResult, Result
from undersong.stores.protocol import Store, open_store

if TYPE_CHECKING:
    from undersong.patterns.significance import ResamplingConfig
    from undersong.pipeline.options import Options

LEDGER = "undersong-ledger.db"  # beside the report: paid answers, where the store is on a server
BELOW, AT_OR_ABOVE = 0, 1
PERCENT = NumberRange(0, 100)


@click.command("audit", short_help="Read, scan, evaluate, detect, and write a report.")
@corpus_options
@budget_options
@judge_options
@click.option("--out", default="undersong-report", show_default=True, metavar="DIR", help="Where the report goes.")
@click.option("--store", metavar="FILE|URL", help="The store; default: undersong.db beside the report.")
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
    "--profile",
    type=click.Choice(PROFILES),
    help="What kind of talk this is; default: by content. Decides which words a report uses.",
)
@click.option("--double-check", type=PERCENT, metavar="PERCENT", help="Read so many of the scored again, framed anew.")
@chance_options
@click.option("--rules", "rules", metavar="DIR", help="Pattern files to use instead of the shipped ones.")
@click.option("--redact", is_flag=True, help="Mask e-mails, phones and keys in the report; the store keeps them.")
@click.option("--redact-name", "names", multiple=True, metavar="NAME", help="Mask this name too; repeatable.")
@click.option("--redact-names", "names_file", metavar="FILE", help="Mask the names in this file, one a line.")
@click.option(
    "--format", "formats", multiple=True, metavar="FORMAT", help="Write json, jsonl, sarif or parquet too; repeatable."
)
@click.option("--fail-on", type=click.Choice(LEVELS), help="Exit with 1 at a result of this level or above.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as one JSON object.")
def command(
    paths: tuple[str, ...],
    out: str,
    store: str | None,
    judge: str,
    read_all: bool,
    double_check: float | None,
    effort: ResamplingConfig | None,
    rules: str | None,
    redact: bool,
    names: tuple[str, ...],
    names_file: str | None,
    formats: tuple[str, ...],
    fail_on: str | None,
    as_json: bool,
    **chosen: Any,
) -> None:
    """Audit conversations: PATH is an export file, a folder, or - for stdin.

    Writes DIR with forensic_audit_report.md, report.html, findings.jsonl, evaluations.jsonl and manifest.json, and
    prints a summary. Findings are "consistent with" a pattern; the reader makes the call.

    --fail-on counts what SARIF reports: findings by their level, points deducted as medium, smoking guns as low.
    """
    from undersong.cli.summary import print_summary, summary
    from undersong.patterns.catalog import load_rules
    from undersong.pipeline.audit import audit
    from undersong.pipeline.redaction import redacted
    from undersong.report.render import check_formats
    from undersong.report.writer import ConversationLookup, check_folder, write

    folder = Path(out)
    check_folder(folder)
    check_formats(formats)
    check_targets(paths, store)
    if store:
        check_store(store)
    else:
        folder.absolute().parent.mkdir(parents=True, exist_ok=True)
    patterns = load_rules([rules]) if rules else None
    listed = (*names, *_names(names_file))
    ledger = str(folder.absolute().parent / LEDGER)
    options = options_of(judge=judge, read_all=read_all, rules=patterns, effort=effort, ledger=ledger, **chosen)
    if double_check:
        options = _for_two_readings(options)
    began, started = time.monotonic(), datetime.now(UTC)
    with open_store(store or folder.absolute().parent / "undersong.db") as opened_store:
        try:
            with progress_bar() as progress:
                case, rows = audit(paths, opened_store, options, progress)
        except NothingReadError as error:
            raise nothing_read(error.problems) from None
        if double_check:
            case = _double_checked(case, paths, opened_store, options, double_check)
        lookup: ConversationLookup = partial(_conversation, opened_store)
        if redact or listed:
            case, rows, lookup = redacted(
                case, rows, partial(_conversation, opened_store), patterns or load_rules(), effort, listed
            )
        times = {"started": started.isoformat(), "seconds": time.monotonic() - began}
        digest = write(case, rows, folder, run=times, rules=patterns, conversations=lookup, formats=formats)
    show_problems(case.problems)
    print_summary(summary(case, folder, digest), as_json)
    failed = _failing(case, fail_on)
    raise SystemExit(exit_code(case.problems) or failed)


def _for_two_readings(options: Options) -> Options:
    """One budget for the audit and its double check; raises UsageError for a judge that is asked no question."""
    from undersong.judges.llm.budget import Budget
    from undersong.judges.protocol import is_paid

    if not is_paid(options.judge):
        what = f"the judge '{options.judge}' is asked no question that could be put in two ways"
        raise UsageError(what, where="--double-check", remedy="name an LLM judge, or leave the option away")
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


def _failing(case: Case, fail_on: str | None) -> int:
    """The exit code by ``--fail-on``; says on stderr what reaches the level."""
    from undersong.report.order import at_or_above

    reaching = at_or_above(case, fail_on) if fail_on else []
    if fail_on and reaching:
        click.echo(failing_line(reaching, fail_on), err=True)
    return AT_OR_ABOVE if reaching else BELOW


def failing_line(results: Iterable[Result], level: str) -> str:
    """``--fail-on medium: 2 deductions (false promise ×2)``."""
    kinds: dict[str, Counter[str]] = {}
    for result in results:
        noun, name = _kind(result)
        kinds.setdefault(noun, Counter())[name] += 1
    parts = (f"{counted(names.total(), noun)} ({_times(names)})" for noun, names in kinds.items())
    return f"--fail-on {level}: {', '.join(parts)}"


def _kind(result: Result) -> tuple[str, str]:
    if isinstance(result, FindingResult):
        return "finding", result.finding.pattern
    if isinstance(result.claim, Deduction):
        return "deduction", mechanism_name(result.claim.mechanism)
    return "smoking gun", mechanism_name(result.claim.code)


def _times(names: Counter[str]) -> str:
    return ", ".join(one_line(name, 40) + (f" ×{count}" if count > 1 else "") for name, count in names.items())
