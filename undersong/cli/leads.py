"""``undersong leads``: where to look first, in a report or in conversations that were never audited."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
import msgspec

from undersong.cli.grouping import group_option, groups
from undersong.cli.help import examples
from undersong.cli.options import (
    echo,
    existing_store,
    exit_code,
    map_option,
    nothing_read,
    options_again,
    show_problems,
)
from undersong.core.sanitize import one_line
from undersong.core.text import counted
from undersong.errors import InputError, NothingReadError, UsageError
from undersong.stores.addresses import without_password

if TYPE_CHECKING:
    from undersong.models import Lead, Message, Quote
    from undersong.report.groups import GroupShare
    from undersong.stores.protocol import JudgeEntry, Store

SQLITE = b"SQLite format 3\x00"  # how such a file begins
QUOTED = 200  # characters of a quote
SENTENCES = 3  # of a lead: an early one, one in between, a late one
OPAQUE = re.compile(r"(?i)[0-9a-f]{4,}(?:-?[0-9a-f]+)*|\d+")  # an id that says nothing to a person
TOO_FEW = "who wrote fewer than three messages was not"  # see undersong/data/rules/leads.yaml


@click.command(
    "leads",
    **examples(
        ("undersong leads undersong-report", "where to look first in a report"),
        ("undersong leads logs/", "the same without a report"),
        ("undersong leads undersong-report.db", "over all that a store holds"),
    ),
)
@click.argument("address", metavar="REPORT|PATH|STORE")
@click.option("--from", "source_format", metavar="FORMAT", help="Input format; see `undersong formats`.")
@map_option
@group_option
@click.option("--judge", metavar="NAME", help="Of a store: whose rows count, by name or the start of a hash.")
@click.option("--json", "as_json", is_flag=True, help="Print every lead above the cut, or group, as one JSON line.")
@click.option("--all", "with_all", is_flag=True, help="With --json, the leads below the cut, too.")
def command(
    address: str,
    source_format: str | None,
    fields: dict[str, str] | None,
    group_by: str | None,
    judge: str | None,
    as_json: bool,
    with_all: bool,
) -> None:
    """Print the agents to look at first, at most ten, each with what was counted and a strong sentence early,
    in between and late.

    REPORT is the folder of a report; PATH is an export file or a folder, which is audited with the offline judge and
    leaves nothing behind; STORE is the SQLite file or the address (postgresql://...) of a store, all of whose agents
    are ranked as by `undersong sweep`, and nothing is written. A lead says where to look; it accuses nobody. --json
    prints those above the cut, best first; with --all all agents with three messages or more, of which most are below
    it and nothing is said but figures. Of coding sessions nobody is named for how they write: see `undersong claims`.

    Exit codes: 0 done, whoever is named; 2 wrong use; 3 an input could not be read; 4 the report or store failed.
    """
    from undersong.core.manifest import NAME
    from undersong.report.display_names import named_leads
    from undersong.report.groups import group_lines
    from undersong.report.writer import LEADS

    if with_all and not as_json:
        raise UsageError("it is for --json alone", where="--all", remedy="name --json, too")
    path, is_of_store = Path(address), is_store(address)
    is_report = not is_of_store and (path / NAME).is_file()
    if (is_report or is_of_store) and group_by:
        what = f"a {'report' if is_report else 'store'} has not every message of its input"
        raise UsageError(what, where="--group-by", remedy="name the export file or folder itself")
    if judge and not is_of_store:
        raise UsageError("it is for a store alone", where="--judge", remedy="leave it out, or name a store")
    if is_of_store:
        ranked = _of_store(address, judge)
    else:
        ranked = _stored(path) if is_report else _audited(path, source_format, fields, group_by)
    if as_json:
        leads = [lead for lead in ranked.leads if lead.above_cut or with_all]
        echo(msgspec.json.encode(each).decode() for each in (ranked.shares if group_by else leads))
    else:
        own = options_again(click.get_current_context(), ("source_format", "fields", "judge"))
        shown = shlex.quote(without_password(address))
        command = f"`undersong leads {shown}{own} --json --all` prints all"
        rest = f"{path / LEADS} has all" if is_report else command
        echo(
            _work_lines(ranked, path, rest, is_report)
            if ranked.is_work
            else lead_lines(named_leads(ranked.leads, ranked.names), rest, ranked.titles, ranked.days)
        )
        echo(group_lines(ranked.shares, group_by) if group_by else ())
    raise SystemExit(ranked.code)


def is_store(address: str) -> bool:
    """Whether it is the address of a store, or an SQLite file."""
    if "://" in address:
        return True
    path = Path(address)
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(SQLITE)) == SQLITE


def _of_store(address: str, judge: str | None) -> RankedAgents:
    """The leads over all that a store holds; raises UsageError where it has no scores, or those of several judges."""
    from undersong.patterns.leads import shown_leads
    from undersong.pipeline.history_sweep import chosen_judge
    from undersong.report.display_names import display_names

    with existing_store(address) as store:
        leads = leads_in_store(store, chosen_judge(store, judge))
        places = {name for lead in shown_leads(leads) for name in (lead.conversation, *lead.message_conversations[:1])}
        talks = [store.conversation(name)[0] for name in places if name and store.length(name)]
    titles, people = {talk.id: talk.title for talk in talks}, (message for talk in talks for message in talk.messages)
    return RankedAgents(leads, titles=titles, names=display_names(people))


def leads_in_store(store: Store, judge: JudgeEntry, *, and_put: bool = False) -> Sequence[Lead]:
    """The leads over all that the store has by this judge; () where it keeps none, or has too many rows.

    ``and_put``: they take the place of those in the store.
    """
    from undersong.pipeline.history_leads import MOST, history_leads, leads_of_talk, leads_over

    if not store.keeps_reviews:
        return ()
    if judge.rows > MOST:
        click.echo(f"leads not ranked: {judge.rows:,} rows are more than the {MOST:,} that are compared", err=True)
        return ()
    return leads_of_talk(store, (history_leads if and_put else leads_over)(store, judge.judge_hash))


class _SessionProfile(msgspec.Struct):
    profile: str
    conversation: str = ""
    title: str | None = None


class _Cited(msgspec.Struct):
    """Of a message who wrote it and when."""

    id: str = ""
    agent: str = ""
    author: str = ""
    conversation: str = ""
    position: int = 0
    time: datetime | None = None


class _CaseProfiles(msgspec.Struct):
    """Of the case of a report what kind of talk it is about, and who speaks."""

    sessions: list[_SessionProfile] = []
    cited: list[_Cited] = []


class MessageDay(NamedTuple):
    """The place of a message in its conversation, and its day, "" where that is not known."""

    position: int
    day: str


UNPLACED = MessageDay(0, "")


class RankedAgents(NamedTuple):
    """The leads of a run, the groups that were asked for, whether all of it is work on code, and the exit code.

    ``titles`` are the conversations as people have them, ``names`` agents by the names that people have, ``days`` when
    a message that is quoted was written.
    """

    leads: Sequence[Lead]
    shares: Sequence[GroupShare] = ()
    is_work: bool = False
    code: int = 0
    titles: Mapping[str, str | None] = {}
    names: Mapping[str, str] = {}
    days: Mapping[tuple[str, str], MessageDay] = {}


def _audited(
    path: Path, source_format: str | None, fields: dict[str, str] | None, group_by: str | None
) -> RankedAgents:
    """The leads of an audit that leaves nothing behind."""
    from undersong.pipeline.audit import audit
    from undersong.pipeline.options import Options
    from undersong.report.claims_view import is_work
    from undersong.report.display_names import display_names
    from undersong.stores.sqlite import temporary_store

    with temporary_store() as store:
        try:
            case, rows = audit(path, store, options=Options(effort=None, source_format=source_format, fields=fields))
        except NothingReadError as error:
            raise nothing_read(error.problems) from None
        shares = groups(case, rows, lambda name: store.conversation(name)[0], [path], group_by) if group_by else []
    show_problems(case.problems)
    titles = {session.conversation: session.title for session in case.sessions}
    names, days = display_names(case.cited), _days(case.cited)
    return RankedAgents(case.leads, shares, is_work(case), exit_code(case.problems), titles, names, days)


def _days(cited: Iterable[Message | _Cited]) -> dict[tuple[str, str], MessageDay]:
    return {
        (one.conversation, one.id): MessageDay(one.position, f"{one.time:%Y-%m-%d}" if one.time else "")
        for one in cited
    }


def _stored(folder: Path) -> RankedAgents:
    """The leads of a report; raises InputError where it cannot be read."""
    from undersong.models import Lead, decode
    from undersong.report.display_names import display_names
    from undersong.report.writer import CASE, LEADS

    remedy = "make the report again, or check it with `undersong verify`"
    path = folder / LEADS
    try:
        leads = [decode(line, Lead) for line in path.read_bytes().split(b"\n") if line]
        path = folder / CASE
        case = msgspec.json.decode(path.read_bytes(), type=_CaseProfiles)
        is_work = {session.profile for session in case.sessions} == {"coding"}
        titles = {session.conversation: session.title for session in case.sessions}
        names, days = display_names(case.cited), _days(case.cited)
        return RankedAgents(leads, is_work=is_work, titles=titles, names=names, days=days)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path), remedy=remedy) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"is not what a report holds: {error}", where=str(path), remedy=remedy) from error


def _work_lines(ranked: RankedAgents, path: Path, rest: str, is_report: bool) -> Iterator[str]:
    """Where to look in sessions of coding agents: at what they claim, not at how somebody writes."""
    place = f"{path / 'work.md'} has" if is_report else f"`undersong claims {shlex.quote(str(path))}` prints"
    yield "These are sessions of coding agents, in which nobody is named for how they write."
    yield f"{place} what the agents claim of their work against what the sessions show."
    yield f"{counted(len(ranked.leads), 'speaker')} counted all the same: {rest}."


def lead_lines(
    leads: Sequence[Lead],
    rest: str,
    titles: Mapping[str, str | None] | None = None,
    days: Mapping[tuple[str, str], MessageDay] | None = None,
) -> Iterator[str]:
    """Those that a person is shown, each with its reason and how it goes on in strong sentences; ``rest`` says what has
    all of them.

    ``titles`` are those of conversations, ``days`` those of messages, as far as they are known.
    """
    from undersong.patterns.leads import shown_leads
    from undersong.report.escape import first_upper, own_name
    from undersong.report.headline import words
    from undersong.report.sureness import lead_words

    shown = shown_leads(leads)
    people = counted(len(leads), "agent")
    if not shown:
        yield f"{words().look_nobody} {people} with three messages or more: {rest}."
        return
    for place, lead in enumerate(shown, 1):
        home = _home(lead.conversation or "", titles or {})
        name = one_line(own_name(lead.agent, lead.conversation or ""), 80)
        yield f"{place}. {home}" if lead.kind == "conversation" else f"{place}. {name}{f' in {home}' if home else ''}"
        yield f"   {lead.reason}"
        if lead.decided:
            yield f"   {words().decided_lead.format(verdict=lead.decided)}"
        if not lead.quotes:
            yield f"   {words().look_no_quote}"
        for day, quote in _sentences(lead, days or {}):
            yield f"   {f'{day}: ' if day else ''}“{one_line(quote.text, QUOTED)}”"
        yield f"   {first_upper(lead_words(lead, leads))}."
    exact = sum(lead.kind == "message" for lead in shown)
    every = sum(lead.kind == "message" for lead in leads)
    if exact < every:
        yield words().look_share.format(shown=exact, of=every)
    yield f"Named above: {len(shown)} of {_ranked(leads)} that were ranked ({rest}); {TOO_FEW}. {words().look_guide}"


def _sentences(lead: Lead, days: Mapping[tuple[str, str], MessageDay]) -> Iterator[tuple[str, Quote]]:
    """The strongest sentence of each stretch, early to late, with its day; where kinds of harm are named, of those."""
    from undersong.models.lead import stretches

    of_kinds = [quote for kind in lead.kinds for quote in kind.quotes] if lead.kind != "message" else []
    homes = dict(zip(lead.message_ids, lead.message_conversations, strict=True))
    quotes = list({quote.message_id: quote for quote in reversed(of_kinds or lead.quotes)}.values())[::-1]
    places = {
        quote.message_id: days.get((homes.get(quote.message_id, lead.conversation or ""), quote.message_id), UNPLACED)
        for quote in quotes
    }
    if of_kinds:  # the longest say most by themselves
        quotes.sort(key=lambda quote: -len(quote.text))
    by_strength = {quote.message_id: place for place, quote in enumerate(quotes)}
    ordered = sorted(places, key=lambda name: (places[name].day, places[name].position))
    for part in stretches(ordered, SENTENCES):
        first = min(by_strength[name] for name in part)
        yield places[quotes[first].message_id].day, quotes[first]


def _home(conversation: str, titles: Mapping[str, str | None]) -> str:
    """The name of a conversation; of one whose id is a number or a hash, its title."""
    title = titles.get(conversation) if OPAQUE.fullmatch(conversation) else None
    return f"“{one_line(title, 80)}”" if title else one_line(conversation, 80)


def _ranked(leads: Sequence[Lead]) -> int:
    """How many can be named: a conversation between two counts once."""
    return len({(lead.kind, lead.conversation if lead.kind == "conversation" else lead.agent) for lead in leads})
