"""``undersong leads``: where to look first, in a report or in conversations that were never audited."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from undersong.cli.help import examples
from undersong.cli.options import echo, exit_code, nothing_read, show_problems
from undersong.core.sanitize import one_line
from undersong.core.text import counted
from undersong.errors import InputError, NothingReadError

if TYPE_CHECKING:
    from undersong.models import Lead

QUOTED = 200  # characters of a quote


@click.command(
    "leads",
    **examples(
        ("undersong leads undersong-report", "where to look first in a report"),
        ("undersong leads logs/", "the same without a report"),
    ),
)
@click.argument("path", metavar="REPORT|PATH", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print every lead as one JSON line.")
def command(path: Path, as_json: bool) -> None:
    """Print the agents to look at first, at most ten, each with what was counted and its strongest sentence.

    REPORT is the folder of a report; PATH is an export file or a folder, which is audited with the offline judge and
    leaves nothing behind. A lead says where to look; it accuses nobody. --json prints all agents with three messages
    or more, best first.
    """
    from undersong.models import encode

    leads, code = _leads(path)
    echo(encode(lead).decode() for lead in leads) if as_json else echo(_lines(leads))
    raise SystemExit(code)


def _leads(path: Path) -> tuple[Sequence[Lead], int]:
    """The leads of a report folder, else those of an audit without a store, and the exit code that follows."""
    from undersong.core.manifest import NAME
    from undersong.pipeline.audit import audit
    from undersong.pipeline.options import Options
    from undersong.report.writer import LEADS

    if not (path / NAME).is_file():
        try:
            case, _ = audit(path, options=Options(effort=None))
        except NothingReadError as error:
            raise nothing_read(error.problems) from None
        show_problems(case.problems)
        return case.leads, exit_code(case.problems)
    return _stored(path / LEADS), 0


def _stored(path: Path) -> Sequence[Lead]:
    """The leads in a file; raises InputError where it cannot be read."""
    import msgspec

    from undersong.models import Lead, decode

    remedy = "make the report again, or check it with `undersong verify`"
    try:
        return [decode(line, Lead) for line in path.read_bytes().split(b"\n") if line]
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path), remedy=remedy) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"holds no leads: {error}", where=str(path), remedy=remedy) from error


def _lines(leads: Sequence[Lead]) -> Iterator[str]:
    from undersong.patterns.leads import shown_leads
    from undersong.report.escape import own_name
    from undersong.report.headline import words

    shown = shown_leads(leads)
    people = counted(len(leads), "agent")
    if not shown:
        yield f"{words().look_nobody} {people} with three messages or more."
        return
    for lead in shown:
        where = f" in {one_line(lead.conversation, 80)}" if lead.conversation else ""
        yield f"{lead.rank}. {one_line(own_name(lead.agent, lead.conversation or ''), 80)}{where}"
        yield f"   {lead.reason}"
        for quote in lead.quotes[:1]:
            yield f"   “{one_line(quote.text, QUOTED)}” ({one_line(quote.message_id, 80)})"
    yield f"{len(shown)} of {people}. {words().look_guide}"
