"""``undersong schemas``: the JSON Schemas of the files of a report and of what commands print with --json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from undersong.cli.help import examples
from undersong.cli.options import echo
from undersong.errors import UsageError

if TYPE_CHECKING:
    from undersong.report.schemas import OutputSchema


@click.command(
    "schemas",
    **examples(
        ("undersong schemas", "the names, and what each is of"),
        ("undersong schemas findings.jsonl", "one of them"),
        ("undersong schemas --out schemas", "all of them, a file each"),
    ),
)
@click.argument("name", required=False, metavar="[NAME]")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="Write all into a folder.")
def command(name: str | None, out: Path | None) -> None:
    """Print the JSON Schema (2020-12) of a file that undersong writes, or list what there is a schema of.

    A schema of a .jsonl file is one of each of its lines. Later versions may add keys.
    """
    from undersong.datafiles.yaml_loader import did_you_mean

    outputs = {each.name: each for each in output_schemas()}
    if out is not None:
        write_schemas(out)
    elif name is None:
        width = max(map(len, outputs))
        echo(f"{each.name:<{width}}  {each.what}{', a line' if each.lines else ''}" for each in outputs.values())
    elif name in outputs:
        click.echo(_text(outputs[name]), nl=False)
    else:
        raise UsageError(f"no schema '{name}'", remedy=did_you_mean(name, list(outputs)))


def output_schemas() -> tuple[OutputSchema, ...]:
    """The files of a report, then what commands print."""
    from undersong.cli import output_types as printed
    from undersong.judges.limits import LedgerEntry
    from undersong.judges.llm.judge_check import ModelCheck
    from undersong.judges.llm.providers.replay import ReplayHeader
    from undersong.judges.measurement import Calibration, Shift
    from undersong.models import Finding, Lead, Review, Row
    from undersong.pipeline.cost_table import CostTable
    from undersong.pipeline.planning import AuditPlan
    from undersong.report.groups import GroupShare
    from undersong.report.review_figures import ReviewFigures
    from undersong.report.schemas import FILES, OutputSchema
    from undersong.stores.transfer import ExportRecord

    beside = (printed.EmergingLine, printed.LeadLine)
    others = (*beside, printed.RetractedLine, printed.ConstraintLine)
    answer = (LedgerEntry,)
    live = "a finding, an early warning, a lead, a hard constraint, or what no longer holds"
    commands = (
        OutputSchema("scan", Row, lines=True, what="a message with free signals and its route"),
        OutputSchema("evaluate", Row, lines=True, what="the same with scores"),
        OutputSchema("detect", Finding, lines=True, what="a finding"),
        OutputSchema("watch", Finding, lines=True, what=live, others=others),
        OutputSchema("store export", ExportRecord, lines=True, what="a record of a store"),
        OutputSchema("audit --json", printed.AuditSummary, lines=False, what="the summary of an audit"),
        OutputSchema("claims --json", printed.ClaimsCheck, lines=False, what="claims held against their session"),
        OutputSchema("claims --hook", printed.HookAnswer, lines=False, what="the answer to a hook of Claude Code"),
        OutputSchema("leads --json", Lead, lines=True, what="a lead"),
        OutputSchema("leads --group-by --json", GroupShare, lines=True, what="a value of the key"),
        OutputSchema("sweep --json", Finding, lines=True, what="a finding, an early warning or a lead", others=beside),
        OutputSchema("agents --json", printed.AgentLine, lines=True, what="an agent of a store"),
        OutputSchema("agent --json", printed.AgentPage, lines=False, what="an agent over its whole history"),
        OutputSchema("plan --json", AuditPlan, lines=False, what="tokens and cost before anything is spent"),
        OutputSchema("plan --messages --json", CostTable, lines=False, what="a table of costs by layer"),
        OutputSchema("judges --json", printed.JudgeLine, lines=True, what="a judge at hand"),
        OutputSchema("judge check --json", ModelCheck, lines=True, what="how a model took one question"),
        OutputSchema("judge validate --json", Calibration, lines=False, what="a judge against labels"),
        OutputSchema("judge repeat --json", Shift, lines=True, what="two readings compared"),
        OutputSchema("judge context --json", Shift, lines=True, what="readings with and without context compared"),
        OutputSchema("judge framing --json", Shift, lines=True, what="readings in two framings compared"),
        OutputSchema("judge export", ReplayHeader, lines=True, what="whose answers, then an answer", others=answer),
        OutputSchema("prices --json", printed.PriceList, lines=False, what="prices and their lists"),
        OutputSchema("review next --json", printed.DrawnLine, lines=True, what="what to review next"),
        OutputSchema("review set --json", Review, lines=True, what="a review that was kept"),
        OutputSchema("review withdraw --json", Review, lines=True, what="a withdrawal that was kept"),
        OutputSchema("review stats --json", ReviewFigures, lines=False, what="how many are right"),
        OutputSchema("review export", Review, lines=True, what="a review"),
        OutputSchema("review export --labels", printed.MessageLabel, lines=True, what="what reviews say of a message"),
        OutputSchema("formats --json", printed.FormatLine, lines=True, what="an input format"),
        OutputSchema("version --json", printed.Installation, lines=False, what="versions, for a report of a defect"),
        OutputSchema("doctor --json", printed.DoctorLine, lines=True, what="a thing that was tried"),
        OutputSchema("config --json", dict[str, printed.SettingValue], lines=False, what="settings and their files"),
    )
    return (*FILES, *commands)


def write_schemas(folder: Path) -> None:
    """Write every schema into a folder, which is made; raises UsageError where it cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for output in output_schemas():
            (folder / output.file).write_text(_text(output), encoding="utf-8")
    except OSError as error:
        what = f"cannot be written: {error.strerror}"
        raise UsageError(what, where=str(folder), remedy="choose another folder") from error


def _text(output: OutputSchema) -> str:
    from undersong.report.schemas import json_schema

    return json.dumps(json_schema(output), indent=2, ensure_ascii=False) + "\n"
