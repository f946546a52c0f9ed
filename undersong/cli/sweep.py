"""``undersong sweep``: patterns over every agent's whole history, for a scheduler."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import click
import msgspec

from undersong.cli.gates import LEAD, confidence_option, level_or_lead_option
from undersong.cli.help import SectionedCommand, examples
from undersong.cli.options import (
    DEFAULT_STORE,
    LEDGER,
    echo,
    existing_store,
    failing,
    folder_rules,
    judge_options,
    prevalence_option,
    processes_option,
    seeded_chance_options,
)
from undersong.core.sanitize import one_line, visible
from undersong.core.text import counted
from undersong.errors import JudgeError, UsageError
from undersong.models import Emerging, Finding, Lead, encode
from undersong.stores.addresses import without_password
from undersong.stores.protocol import JudgeEntry, Store

if TYPE_CHECKING:
    from undersong.judges.limits import RunLimits
    from undersong.judges.protocol import Judge

JUDGE_FAILED = 4  # exit code

_LEAST = click.IntRange(1)


@click.command(
    "sweep",
    cls=SectionedCommand,
    **examples(
        ("undersong sweep --store agents.db --min-evaluations 20", "each night, from a scheduler"),
    ),
)
@click.option("--store", default=DEFAULT_STORE, show_default=True, metavar="FILE|URL", help="Whose histories.")
@click.option(
    "--min-evaluations", "least", default=5, show_default=True, type=_LEAST, help="Scored messages, at least."
)
@click.option("--judge", metavar="NAME|HASH", help="Whose scores; needed where the store holds those of several.")
@click.option("--rules", "folder", metavar="DIR", help="Pattern files to use instead of the shipped ones.")
@click.option("--rule", "names", multiple=True, metavar="ID", help="Only these rules; also one that is off by default.")
@click.option("--slow/--no-slow", default=True, show_default=True, help="Also the variants that take months.")
@click.option("--emerging", "warn", is_flag=True, help="Also warn of sequences past the middle of a pattern.")
@click.option("--again", is_flag=True, help="Read every agent, changed or not.")
@click.option(
    "--sequences/--no-sequences",
    "read_sequences",
    default=True,
    show_default=True,
    help="Have an LLM judge whose scores these are read the whole sequence of each new finding.",
)
@click.option("--reader", metavar="NAME", help="Who reads them, if not the judge of the scores.")
@judge_options
@seeded_chance_options
@prevalence_option
@processes_option
@click.option("--leads/--no-leads", "with_leads", default=True, show_default=True, help="Also rank leads over all.")
@click.option("--json", "as_json", is_flag=True, help="Print each new finding, and each lead shown, as one JSON line.")
@level_or_lead_option
@confidence_option
def command(
    store: str,
    judge: str | None,
    folder: str | None,
    names: tuple[str, ...],
    slow: bool,
    as_json: bool,
    fail_on: str | None,
    fail_confidence: float | None,
    read_sequences: bool,
    reader: str | None,
    terms: RunLimits,
    with_leads: bool,
    **chosen: Any,
) -> None:
    """Search the histories of all agents with enough scores, across conversations and months.

    Only agents that changed since the last sweep are read, and a rule that changed reads all of them again. New
    findings are printed; what was found before is not said twice. Where their texts are in the store, an LLM
    judge reads the whole sequence of each new or grown finding, once: that decides its confidence, and takes money.

    Without any key all agents of the store are ranked, too, by the scores that are there: those to look at first are
    printed each time, what somebody decided on last, and are what `undersong serve` and `undersong review` list.
    """
    from undersong.cli.leads import leads_in_store
    from undersong.cli.summary import outcome_lines
    from undersong.patterns.catalog import all_rules, load_rules
    from undersong.pipeline.finding_reader import FindingReader, stored_texts
    from undersong.pipeline.history_sweep import chosen_judge, sweep
    from undersong.report.gated_leads import is_open
    from undersong.report.order import is_faint

    rules = load_rules(folder_rules(folder), names)
    if slow and not names and not folder:
        rules += tuple(rule for rule in all_rules() if "slow" in rule.file.tags and rule not in rules)
    with existing_store(store, read_only=False) as opened_store:
        entry = chosen_judge(opened_store, judge)
        asked = (reader or entry.judge) if read_sequences else None
        with _reading(asked, by_name=reader is not None, store=opened_store, terms=terms) as reading_judge:
            prevalence = chosen["prevalence"]
            texts = stored_texts(opened_store)
            reads = FindingReader(reading_judge, texts, rules, prevalence) if reading_judge else None
            done = sweep(opened_store, rules, entry.judge_hash, reader=reads, **chosen)
        ranked = leads_in_store(opened_store, entry, and_put=True) if with_leads else ()
    faint = [finding for finding in done.new_findings if is_faint(finding)]
    for finding in done.new_findings:
        if as_json or finding not in faint:
            click.echo(encode(finding).decode() if as_json else _finding_line(finding))
    if faint and not as_json:
        click.echo(f"{counted(len(faint), 'new finding')} of a confidence under .1 not listed; --json prints all")
    for sequence in done.emerging:
        warning = {"emerging": msgspec.to_builtins(sequence)}
        click.echo(json.dumps(warning) if as_json else _emerging_line(sequence))
    parts = [counted(done.agents, "agent"), counted(done.rows, "row"), counted(len(done.new_findings), "new finding")]
    parts += [f"{len(done.retracted)} that no longer hold"] if done.retracted else []
    click.echo(f"swept {', '.join(parts)}", err=as_json)
    if done.agents and done.rows < entry.rows:
        why = f"of agents without {counted(chosen['least'], 'scored message')}, or unchanged since the last sweep"
        click.echo(f"{counted(entry.rows - done.rows, 'row')} in the store not read again: {why}", err=True)
    if not done.agents:
        asked = f"no agent with at least {counted(chosen['least'], 'scored message')}"
        unchanged = f"{asked} has changed since the last sweep; --again reads all"
        click.echo(asked if chosen["again"] else unchanged, err=True)
    for line in (*outcome_lines(done.outcomes), *(reads.lines() if reads else ())):
        click.echo(visible(line), err=True)
    _show_leads(ranked, entry, store, as_json=as_json)
    failed = JUDGE_FAILED if reads and reads.failure else 0
    if fail_on == LEAD:
        raise SystemExit(failed or int(any(lead.above_cut and is_open(lead) for lead in ranked)))
    raise SystemExit(failed or failing(done.new_findings, fail_on, fail_confidence))


def _show_leads(leads: Sequence[Lead], judge: JudgeEntry, store: str, *, as_json: bool) -> None:
    """Where to look first in all histories: those that a person is shown, or a JSON line for each of them."""
    from undersong.cli.leads import lead_lines
    from undersong.patterns.leads import shown_leads

    if as_json:
        for lead in shown_leads(leads):
            click.echo(json.dumps({"lead": msgspec.to_builtins(lead)}))
    elif leads:
        click.echo(f"\nLeads over all {counted(judge.rows, 'message')} of the store, no accusation and no finding:")
        echo(lead_lines(leads, f"`undersong serve {shlex.quote(without_password(store))}` lists all"))


@contextmanager
def _reading(name: str | None, *, by_name: bool, store: Store, terms: RunLimits) -> Iterator[Judge | None]:
    """The judge that reads sequences; None where there is none, said where it is one that could be asked for money."""
    from undersong.judges.protocol import is_paid
    from undersong.pipeline.judge_session import open_session

    if not name or not (by_name or is_paid(name)):
        yield None
        return
    with ExitStack() as stack:
        try:
            judge = stack.enter_context(open_session(name, terms, store, LEDGER)).judge
            if not judge.reads_sequences:
                what, remedy = f"the judge '{name}' reads no whole sequences", "name an LLM judge"
                raise UsageError(what, where="--reader", remedy=remedy)
        except (JudgeError, UsageError) as error:
            if by_name:
                raise
            click.echo(visible(f"sequences not read: {error}"), err=True)
            judge = None
        yield judge


def _finding_line(finding: Finding) -> str:
    from undersong.report.sureness import sure_words

    aim = f" towards {finding.target}" if finding.target else ""
    line = f"{finding.finding_id[:12]}  {finding.level:<8} {finding.pattern}: {finding.agent}{aim}"
    return one_line(f"{line}, strength {finding.strength:.2f}; {sure_words(finding)}", 300)


def _emerging_line(sequence: Emerging) -> str:
    aim = f" towards {sequence.target}" if sequence.target else ""
    stages = f"{', '.join(sequence.seen)} seen, {', '.join(sequence.missing)} missing"
    return one_line(f"emerging      {sequence.level:<8} {sequence.pattern}: {sequence.agent}{aim}, {stages}", 160)
