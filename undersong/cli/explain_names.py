"""What ``undersong explain`` is asked about: an id or the beginning of one, a turn, a lead, a speaker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from undersong.core.sanitize import one_line
from undersong.core.text import counted, turn_at
from undersong.errors import UsageError

if TYPE_CHECKING:
    from undersong.models import Finding, Lead, Message
    from undersong.stores.protocol import Store

LISTED = 5  # things that one name may mean, and leads of one speaker, that are shown
SHORTEST = 2  # characters of an id that is not whole
LEAST = 3  # messages of somebody who can be a lead; see leads.yaml
WORDING = "how close the wording is to manipulation, the mean of all messages"
SIGNALS = "how much sentences read like pressure, flattery, isolation and the like, the mean of all messages"
ORDER = "how far up the messages are, all ordered by how negative a judge found them"
EVIDENCE = {  # source of a lead's evidence → what was measured, and beside whom; those that weigh nothing are not shown
    "wording": (WORDING, "people in ordinary talk"),
    "wording_in_conversation": (WORDING, "the others in the conversation"),
    "signals_in_run": (SIGNALS, "all others in these files"),
    "signals_in_conversation": (SIGNALS, "the others in the conversation"),
    "traits_in_conversation": (ORDER, "the others in the conversation"),
}


class Speaker(NamedTuple):
    """Somebody under one name as rows have it, and where they wrote how much."""

    agent: str
    conversation: str
    messages: int


class Meanings(NamedTuple):
    """What a name that is no whole id may mean."""

    messages: tuple[Message, ...] = ()
    speakers: tuple[Speaker, ...] = ()


def whole_id(store: Store, name: str, home: str | None) -> tuple[str, str | None] | None:
    """The id and conversation of the one message or finding that is meant, None where ``name`` is no id.

    Raises UsageError where several are meant, and lists them.
    """
    findings = [finding for finding in store.findings() if finding.finding_id.startswith(name)]
    if store.find_message(name) or len(findings) == 1:
        return name, home
    if findings:
        _refuse(name, "findings begin with", [_of_finding(finding) for finding in findings])
    return None


def meanings(store: Store, name: str, home: str | None) -> Meanings:
    """Messages and speakers that a part of an id, a turn's number, or a name may mean."""
    from undersong.report.escape import own_name

    wanted = name.casefold()
    turn = wanted.removeprefix("turn").strip()
    messages: list[Message] = []
    speakers: dict[tuple[str, str], int] = {}
    for home_id in store.conversations():
        if home not in (None, home_id):
            continue
        for message in store.conversation(home_id)[0].messages:
            if turn.isdigit():
                if message.position + 1 == int(turn):
                    messages.append(message)
            elif len(wanted) >= SHORTEST and message.id.casefold().startswith(wanted):
                messages.append(message)
            if wanted in (message.agent.casefold(), own_name(message.agent, home_id).casefold()):
                key = (message.agent, home_id)
                speakers[key] = speakers.get(key, 0) + 1
    return Meanings(tuple(messages), tuple(Speaker(*key, count) for key, count in speakers.items()))


def leads_of_id(leads: Sequence[Lead], name: str) -> list[Lead]:
    """The lead whose id begins with ``name``; raises UsageError where several do, and lists them."""
    fitting = [lead for lead in leads if len(name) >= SHORTEST and lead.id.startswith(name)]
    if len(fitting) > 1:
        _refuse(name, "leads begin with", [f"{lead.id[:16]} ({_whose(lead)})" for lead in fitting])
    return fitting


def leads_about(leads: Sequence[Lead], name: str) -> list[Lead]:
    """The leads of the speaker or the conversation of this name."""
    from undersong.report.escape import own_name

    wanted = name.casefold()
    names = ((lead, (lead.agent, own_name(lead.agent, lead.conversation or ""), lead.conversation)) for lead in leads)
    return [lead for lead, forms in names if wanted in ((form or "").casefold() for form in forms)]


def the_message(name: str, messages: Sequence[Message]) -> tuple[str, str]:
    """The id and conversation of the only message; raises UsageError where there are several, and lists them."""
    if len(messages) > 1:
        _refuse(name, "messages fit", [_of_message(message) for message in messages])
    return messages[0].id, messages[0].conversation


def lead_lines(lead: Lead, leads: Sequence[Lead] = ()) -> Iterator[str]:
    """What a lead rests on: what was counted beside what is usual, and the words, with where they are.

    ``leads`` are the others of the run.
    """
    from undersong.report.escape import first_upper
    from undersong.report.headline import words
    from undersong.report.sureness import lead_words

    named = (
        "lead from exact words"
        if lead.kind == "message"
        else "lead"
        if lead.above_cut
        else "no lead, too little was counted"
    )
    yield f"{_whose(lead)}: {named}; place {lead.rank} in the order in which to look ({lead.id[:16]})"
    yield f"  {lead.reason}"
    for row in lead.evidence:
        what, beside = EVIDENCE.get(row.source, ("", ""))
        if what and row.compared_with is not None:
            yield f"  {what}: {row.value:.2f} of 1; {beside}: {row.compared_with:.2f} of 1"
    if lead.quotes:
        yield "  the messages that show most of it:"
    for quote in lead.quotes:
        yield f"    “{one_line(quote.text, 200)}” ({one_line(quote.message_id, 80)})"
    yield f"  {first_upper(lead_words(lead, leads))}."
    yield f"  {words().look_guide}"


def _whose(lead: Lead) -> str:
    from undersong.report.escape import own_name

    home = lead.conversation or ""
    return f"{one_line(own_name(lead.agent, home), 80)}{f' in {one_line(home, 80)}' if home else ''}"


def speaker_lines(store: Store, speakers: Sequence[Speaker], leads: Sequence[Lead]) -> Iterator[str]:
    """How much somebody wrote, the findings about them, and the leads or why there is none."""
    from undersong.report.escape import own_name

    first = speakers[0]
    name = one_line(own_name(first.agent, first.conversation), 80)
    total = sum(speaker.messages for speaker in speakers)
    yield f"{name} wrote {counted(total, 'message')} in {counted(len(speakers), 'conversation')}."
    findings = [one for agent in dict.fromkeys(each.agent for each in speakers) for one in store.findings(agent)]
    yield from (f"finding {_of_finding(finding)}" for finding in findings[:LISTED])
    if not findings:
        yield f"No finding is about {name}."
    for lead in leads[:LISTED]:
        yield ""
        yield from lead_lines(lead, leads)
    if len(leads) > LISTED:
        yield f"… and {len(leads) - LISTED:,} more leads; undersong leads lists them"
    if not leads and max(speaker.messages for speaker in speakers) < LEAST:
        yield f"{name} is no lead, for want of messages: leads are of those who wrote {LEAST} or more."
    elif not leads:
        yield f"There is no lead about {name} beside this store; leads are in the folder of the report."


def _of_finding(finding: Finding) -> str:
    return f"{finding.finding_id[:16]} ({finding.title}, {one_line(finding.agent, 60)})"


def _of_message(message: Message) -> str:
    return f"{one_line(message.id, 60)} ({turn_at(message.position)} in {one_line(message.conversation, 60)})"


def _refuse(name: str, fit: str, choices: Sequence[str]) -> None:
    more = f"; and {len(choices) - LISTED:,} more" if len(choices) > LISTED else ""
    raise UsageError(
        f"{len(choices):,} {fit} '{one_line(name, 60)}': {'; '.join(choices[:LISTED])}{more}",
        remedy="give more of the id, or the conversation with --in",
    )
