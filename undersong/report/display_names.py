"""Names that people have beside the ids by which an input names them: ``Mira (U02ABCDE)``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import msgspec

from undersong.core.sanitize import one_line
from undersong.core.text import escaped_name
from undersong.models import Lead
from undersong.report.escape import own_name

NAME, WHOLE = 40, 14  # characters of a name that are shown; an id that is longer is cut
_NAMED = ("agent", "target")  # fields that hold the identity of somebody


class Signed(Protocol):
    """Something that somebody wrote: the agent as patterns follow it, and the author as the input names it."""

    @property
    def agent(self) -> str: ...
    @property
    def author(self) -> str: ...
    @property
    def conversation(self) -> str: ...


def display_names(messages: Iterable[Signed]) -> dict[str, str]:
    """Agent → how a person reads it, of those whose messages have another name than the agent is followed by.

    An agent that is named differently over time has its latest name here.
    """
    return {
        message.agent: shown_name(message.agent, message.author)
        for message in messages
        if message.agent and message.author and _is_other(message.agent, message.author, message.conversation)
    }


def shown_name(agent: str, author: str) -> str:
    """``Mira (U02ABCDE)``.

    >>> shown_name("9f86d081884c7d659a2f", "Mira")
    'Mira (9f86d081884c…)'
    """
    short = agent if len(agent) <= WHOLE else f"{agent[: WHOLE - 2]}…"
    return f"{one_line(author, NAME)} ({short})"


def person_name(agent: str, conversation: str, author: str = "") -> str:
    """The name that people have in a conversation, with the id by which the input names them, if it does.

    >>> person_name("chat/Mark", "chat", "Mark"), person_name("U02", "chat", "Mira")
    ('Mark', 'Mira (U02)')
    """
    named = author and _is_other(agent, author, conversation)
    return shown_name(agent, author) if named else own_name(agent, conversation)


def named_leads(leads: Iterable[Lead], names: Mapping[str, str]) -> tuple[Lead, ...]:
    """The leads with the names that people have, in their reasons, too."""
    return renamed(with_reasons(leads, names), names) if names else tuple(leads)


def with_reasons(leads: Iterable[Lead], names: Mapping[str, str]) -> tuple[Lead, ...]:
    """The leads with the names that people have in their reasons alone, the first time with the id."""
    return tuple(
        msgspec.structs.replace(lead, reason=_named_in(lead.reason, lead.agent, names[lead.agent]))
        if lead.agent in names and not lead.agent.isdecimal()  # a number may be a count
        else lead
        for lead in leads
    )


def _named_in(reason: str, agent: str, shown: str) -> str:
    own = re.compile(rf"(?<!\w){re.escape(agent)}(?!\w)")
    first = own.search(reason)
    if first is None:
        return reason
    return reason[: first.start()] + shown + own.sub(lambda _: shown.rpartition(" (")[0], reason[first.end() :])


def _is_other(agent: str, author: str, conversation: str) -> bool:
    """Whether the agent goes by something else than the name of the author, alone or within its conversation, and by
    no name that is made here already."""
    if agent.startswith(f"{one_line(author, NAME)} (") and agent.endswith(")"):
        return False
    return agent not in (author, escaped_name(author)) and not agent.startswith(f"{escaped_name(conversation)}/")


def renamed(item: Any, names: Mapping[str, str]) -> Any:
    """A record, or a tuple of such, with the names in place of the identities, at any depth."""
    if isinstance(item, tuple):
        parts = tuple(renamed(part, names) for part in item)
        return item if all(new is old for new, old in zip(parts, item, strict=True)) else parts
    if not isinstance(item, msgspec.Struct):
        return item
    changes = {}
    for field in item.__struct_fields__:
        value = getattr(item, field)
        other = names.get(value, value) if field in _NAMED and isinstance(value, str) else renamed(value, names)
        if other is not value:
            changes[field] = other
    return msgspec.structs.replace(item, **changes) if changes else item
