"""The identity of an author within a conversation, which no other conversation and no global name can claim."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from undersong.models import Conversation, Message

AMBIGUOUS_MARK = "~"  # stands before a global name that has the form of another conversation's author


def scoped(conversation: str, author: str) -> str:
    """``CONVERSATION/AUTHOR``; a slash or percent sign in either is written %2F or %25, so that no two are the same."""
    return f"{_escaped(conversation)}/{_escaped(author)}"


def own_author(conversation: str, agent: str) -> str:
    """The author whose scoped identity in this conversation ``agent`` is; any other name is given back as it is."""
    if "/" not in agent:
        return agent
    author = agent.rpartition("/")[2].replace("%2F", "/").replace("%25", "%")
    return author if scoped(conversation, author) == agent else agent


def mark_ambiguous_agents(part: Conversation, is_known: Callable[[str], bool]) -> Conversation:
    """The part with APART before every global identity that is of the form of a scoped one of a known conversation.

    ``is_known`` says whether the run has a conversation, whose id it is given escaped.
    """
    if not any(["/" in (message.agent or message.author) for message in part.messages]):  # a list: twice as fast
        return part
    messages = tuple(_with_marked_agent(message, part.id, is_known) for message in part.messages)
    return msgspec.structs.replace(part, messages=messages)


def may_be_ambiguous(part: Conversation) -> bool:
    """Whether it depends on the other conversations of the run what ``mark_ambiguous_agents`` makes of a part."""
    asked: list[str] = []

    def unknown(name: str) -> bool:
        asked.append(name)
        return False

    mark_ambiguous_agents(part, unknown)
    return bool(asked)


def is_marked_ambiguous(agent: str) -> bool:
    """Whether an identity has the form that ``mark_ambiguous_agents`` gives."""
    return agent.startswith(AMBIGUOUS_MARK) and agent.count("/") == 1


def _with_marked_agent(message: Message, conversation: str, is_known: Callable[[str], bool]) -> Message:
    claimed = message.agent or (message.author if message.role == "agent" else "")
    if claimed.count("/") != 1 or claimed == scoped(conversation, message.author):
        return message
    agent = claimed
    while is_known(agent.partition("/")[0]):
        agent = AMBIGUOUS_MARK + agent
    return message if agent == claimed else msgspec.structs.replace(message, agent=agent)


def _escaped(name: str) -> str:
    return name.replace("%", "%25").replace("/", "%2F") if "/" in name or "%" in name else name
