"""The identity of an author within a conversation, which no other conversation and no global name can claim."""

from __future__ import annotations

from collections.abc import Callable, Iterable

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
    """The part with AMBIGUOUS_MARK before every global identity of the form of a scoped one of a known conversation.

    ``is_known`` says whether the run has a conversation, whose id it is given escaped.
    """
    if not _has_slash(part):
        return part
    messages = tuple(_with_marked_agent(message, part.id, is_known) for message in part.messages)
    return msgspec.structs.replace(part, messages=messages)


def claimed_conversations(part: Conversation) -> set[str]:
    """The conversations, escaped, whose authors the global identities of a part have the form of."""
    if not _has_slash(part):
        return set()
    claims = [_claimed_agent(message, part.id) for message in part.messages]
    return {agent.partition("/")[0] for agent in claims if agent}


def known_conversations(escaped: Iterable[str], is_known: Callable[[str], bool]) -> frozenset[str]:
    """The names ``mark_ambiguous_agents`` asks for, from those that are claimed: each that a conversation has, and with
    a mark before it as well. ``is_known`` is given an id as it is."""
    names: set[str] = set()
    for name in escaped:
        while _escaped(unescaped := name.replace("%2F", "/").replace("%25", "%")) == name and is_known(unescaped):
            names.add(name)
            name = AMBIGUOUS_MARK + name
    return frozenset(names)


def is_marked_ambiguous(agent: str) -> bool:
    """Whether an identity has the form that ``mark_ambiguous_agents`` gives."""
    return agent.startswith(AMBIGUOUS_MARK) and agent.count("/") == 1


def _has_slash(part: Conversation) -> bool:
    return any(["/" in (message.agent or message.author) for message in part.messages])  # a list: twice as fast


def _claimed_agent(message: Message, conversation: str) -> str:
    """The global identity of a message where it has the form of another conversation's author, else ""."""
    agent = message.agent or (message.author if message.role == "agent" else "")
    return "" if agent.count("/") != 1 or agent == scoped(conversation, message.author) else agent


def _with_marked_agent(message: Message, conversation: str, is_known: Callable[[str], bool]) -> Message:
    claimed = agent = _claimed_agent(message, conversation)
    while agent and is_known(agent.partition("/")[0]):
        agent = AMBIGUOUS_MARK + agent
    return message if agent == claimed else msgspec.structs.replace(message, agent=agent)


def _escaped(name: str) -> str:
    return name.replace("%", "%25").replace("/", "%2F") if "/" in name or "%" in name else name
