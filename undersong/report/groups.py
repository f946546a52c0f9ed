"""Shares by group: how much of what stands out in a run comes from which author, model, or other value of a key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from undersong.core.sanitize import one_line
from undersong.core.text import counted
from undersong.models import Case, Conversation, Message, Row
from undersong.models.verdict import AGAINST
from undersong.patterns.lead_weights import lead_weights
from undersong.patterns.leads import shown_leads
from undersong.patterns.nomination import SILENT_ROLES
from undersong.routing.budget import clopper_pearson

SHOWN = 12  # groups on the screen; --json has all
NAME = 40  # characters of a group's name there
Key = Callable[[Message], str | None]
Place = tuple[str, str]  # conversation, message id


class GroupShare(msgspec.Struct, frozen=True):
    """One value of the key: its messages, how many of them have a mark or a signal above its band, its leads.

    ``marked_range`` and ``high_range`` are the exact 95 % intervals of their shares of ``messages``.
    """

    value: str
    messages: int
    marked: int
    marked_range: tuple[float, float]
    high: int
    high_range: tuple[float, float]
    leads: int


def groups_of(
    case: Case, rows: Iterable[Row], conversations: Iterable[Conversation | None], key: Key
) -> list[GroupShare]:
    """The groups, most marked messages first; messages of tools and of nobody's group are left out."""
    marked, high = marked_places(case), _high_places(case, rows)
    messages, marks, highs, leads = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    groups_of_agents: dict[str, set[str]] = {}
    for conversation in filter(None, conversations):
        for message in conversation.messages:
            value = key(message) if message.role not in SILENT_ROLES else None
            if value is None:
                continue
            place = conversation.id, message.id
            messages[value] += 1
            marks[value] += place in marked
            highs[value] += place in high
            groups_of_agents.setdefault(message.agent, set()).add(value)
    for agent in {lead.agent for lead in shown_leads(case.leads)}:
        leads.update(groups_of_agents.get(agent, ()))
    shares = [
        GroupShare(value, count, marks[value], _range(marks[value], count), highs[value], _range(highs[value], count),
                   leads[value])
        for value, count in messages.items()
    ]  # fmt: skip
    return sorted(shares, key=lambda share: (-share.marked, -share.leads, -share.high, share.value))


def marked_places(case: Case) -> set[Place]:
    """The messages of findings, and those with points, claims that are contradicted, or noted turns."""
    places = {
        place
        for finding in case.findings
        for place in zip(finding.message_conversations, finding.message_ids, strict=True)
    }
    for session in case.sessions:
        ids = [charge.message_id for charge in session.deductions]
        ids += [label.message_id for label in session.moments if label.kind != "protective"]
        ids += [claim.message_id for claim in session.claims if claim.state in AGAINST]
        places |= {(session.conversation, name) for name in ids}
    return places


def _high_places(case: Case, rows: Iterable[Row]) -> set[Place]:
    names = [name for name in lead_weights().signals if name in case.signals]
    return {
        (row.conversation, row.id)
        for row in rows
        if any(row.signals.get(name, 0.0) > case.signals[name].high for name in names)
    }


def _range(part: int, whole: int) -> tuple[float, float]:
    low, high = clopper_pearson(part, whole)
    return round(low, 4), round(high, 4)


def group_lines(groups: Sequence[GroupShare], name: str) -> Iterator[str]:
    """The table for a person, with one sentence on the group that has most of the marks."""
    if not groups:
        yield f"by {name}: no message has one"
        return
    marked, first = sum(group.marked for group in groups), groups[0]
    share = f"{first.messages / sum(group.messages for group in groups):.0%} of the messages are theirs"
    if marked and len(groups) > 1:
        yield f"by {name}: {first.marked} of {counted(marked, 'marked message')} are of {_name(first)}; {share}"
    else:
        yield f"by {name}: {counted(marked, 'marked message')} in {counted(len(groups), 'group')}"
    yield f"  {'':<{NAME}}  messages  marked [95 %]           signal above its band    leads"
    for group in groups[:SHOWN]:
        marks = _cell(group.marked, group.messages, group.marked_range)
        highs = _cell(group.high, group.messages, group.high_range)
        yield f"  {_name(group):<{NAME}}{group.messages:>10}  {marks:<24}{highs:<24}{group.leads:>6}"
    if len(groups) > SHOWN:
        yield f"  and {len(groups) - SHOWN} more groups: --json has them"


def _name(group: GroupShare) -> str:
    return one_line(group.value, NAME)


def _cell(part: int, whole: int, interval: tuple[float, float]) -> str:
    low, high = interval
    return f"{part} {part / whole:.1%} [{low * 100:.1f}, {high * 100:.1f}]"
