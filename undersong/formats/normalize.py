"""Parts of one conversation → the conversation as all steps see it: order, ids, identities, targets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from undersong.core.text import counted, escaped_name, plain_name
from undersong.formats.scratchpads import with_thinking
from undersong.models import Conversation, Message, Problem, Role

_SILENT = frozenset(("system", "tool"))  # roles that are no party and aim at nobody
_NOTHING_SAID = (None, None, None, None, (), ())
_EPOCH = datetime(1900, 1, 1, tzinfo=UTC)


def normalize_conversation(parts: Sequence[Conversation]) -> tuple[Conversation, tuple[Problem, ...]]:
    """One conversation with positions 0..n-1, unique ids, agents and targets, and notes on what was repeated."""
    parted = [with_thinking(part) for part in parts]
    parts, thoughts = [part for part, _ in parted], sum(count for _, count in parted)
    conversation, notes = _normalized_parts(parts)
    return conversation, (*notes, *_thinking_notes(conversation, thoughts))


def _thinking_notes(conversation: Conversation, thoughts: int) -> Iterator[Problem]:
    if thoughts:
        where = str(conversation.source_ref) if conversation.source_ref else conversation.id
        count = counted(thoughts, "message holds", "messages hold")
        read = f"{count} thinking between tags, read as thinking and not as speech"
        what = f"conversation {conversation.id[:80]!r}: {read}"
        yield Problem(what=what, where=where, kind="note")


def _normalized_parts(parts: Sequence[Conversation]) -> tuple[Conversation, tuple[Problem, ...]]:
    first = parts[0]
    if len(parts) == 1 and _is_normalized_part(first):
        return first, ()
    counts = {"repeated": 0, "renamed": 0}
    files = len({_file(part) for part in parts})
    messages = _ordered(_all_if_distinct(parts, files) or list(_distinct(parts, counts)), files)
    timezone = _first(part.timezone for part in parts) or common_offset(messages)
    normalized = tuple(_normalized(messages, first.id, range(len(messages))))
    counts["apart"] = sum(
        is_marked_ambiguous(agent) for agent in [each.agent for each in normalized] if agent[:1] == AMBIGUOUS_MARK
    )
    conversation = msgspec.structs.replace(
        first,
        messages=normalized,
        title=_first(part.title for part in parts),
        started_at=min((_utc(part.started_at) for part in parts if part.started_at), default=None),
        ended_at=max((_utc(part.ended_at) for part in parts if part.ended_at), default=None),
        timezone=timezone,
        breaks=tuple(
            sorted(
                {each for part in parts for each in part.breaks}, key=lambda interval: (interval.start, interval.end)
            )
        ),
        context=tuple(dict.fromkeys(each for part in parts for each in part.context)),
    )
    return conversation, tuple(_notes(first, counts))


def _is_normalized_part(part: Conversation) -> bool:
    """Whether it is plain to see that settling leaves a part as it is; lists are quicker than a look at each."""
    if (part.title, part.started_at, part.ended_at, part.timezone, part.breaks, part.context) != _NOTHING_SAID:
        return False
    messages = part.messages
    names, agents = {message.id for message in messages}, [message.agent for message in messages]
    distinct_agents = set(agents)
    return (
        len(names) == len(messages)
        and "" not in names
        and "" not in distinct_agents
        and not any(agent[0] == AMBIGUOUS_MARK for agent in distinct_agents)
        and [message.position for message in messages] == [*range(len(messages))]
        and {message.conversation for message in messages} == {part.id}
        and all([message.time is None or message.time.tzinfo is UTC for message in messages])
        and all([message.reply_to is None for message in messages])
        and [message.target for message in messages] == other_party(agents, [message.role for message in messages])
    )


def other_party(agents: Sequence[str], roles: Sequence[Role]) -> list[str | None]:
    """The targets of messages that name nobody and reply to none: the other party of two, else nobody."""
    parties = set(agents)
    if len(parties) >= 2 and not _SILENT.isdisjoint(roles):
        parties = {agent for agent, role in zip(agents, roles, strict=True) if role not in _SILENT}
    if len(parties) != 2:
        return [None] * len(agents)
    one, other = parties
    others = {one: other, other: one}
    return [None if role in _SILENT else others.get(agent) for agent, role in zip(agents, roles, strict=True)]


def _all_if_distinct(parts: Sequence[Conversation], files: int) -> list[Message] | None:
    """All messages, where it is plain to see that each is there once; None where it must be looked at closely."""
    messages = [message for part in parts for message in part.messages]
    return messages if files == 1 and len({message.id for message in messages}) == len(messages) else None


def _distinct(parts: Sequence[Conversation], counts: dict[str, int]) -> Iterator[Message]:
    """Messages without repetitions: the same id with other content gets a suffix, so that nothing is lost."""
    variants: dict[str, set[tuple[Any, ...]]] = {}
    for message in _without_copies(parts, counts):
        if not message.id:
            yield message
            continue
        contents = variants.setdefault(message.id, set())
        content = _content(message)
        if content in contents:
            counts["repeated"] += 1
            continue
        contents.add(content)
        if len(contents) == 1:
            yield message
            continue
        counts["renamed"] += 1
        name = _free(f"{message.id}~{len(contents)}", variants)
        variants[name] = {content}
        yield msgspec.structs.replace(message, id=name)


def _without_copies(parts: Sequence[Conversation], counts: dict[str, int]) -> Iterator[Message]:
    """Messages without ids cannot be told apart one by one; a later file that repeats the earlier one is left out."""
    by_file: dict[str, list[Message]] = {}
    for part in parts:
        by_file.setdefault(_file(part), []).extend(part.messages)
    seen: list[tuple[Any, ...]] = []
    for messages in by_file.values():
        nameless = [_content(message) for message in messages if not message.id] if len(by_file) > 1 else []
        shared = min(len(seen), len(nameless))
        skip = shared if shared and seen[:shared] == nameless[:shared] else 0
        seen += nameless[skip:]
        counts["repeated"] += skip
        for message in messages:
            if not message.id and skip:
                skip -= 1
            else:
                yield message


def _ordered(messages: list[Message], files: int) -> list[Message]:
    """By given position; where there is none, or several files each have their own, by time, or file after file."""
    positions = [message.position for message in messages]
    placed = min(positions, default=0) >= 0
    if placed and files == 1 and positions == sorted(positions):
        return messages
    timed = all(message.time for message in messages)
    if placed and not (timed and files > 1):
        in_file = _arrivals(messages) if files > 1 else {}
        return sorted(messages, key=lambda message: (in_file.get(_file(message), 0), message.position))
    return in_order_of_time(messages)


def in_order_of_time(messages: Sequence[Message]) -> list[Message]:
    """By time, one without a time behind the one before it; those of one moment stay as they are."""
    times, time = [], next((message.time for message in messages if message.time), _EPOCH)
    for message in messages:
        time = message.time or time
        times.append(time)
    order = sorted(range(len(messages)), key=times.__getitem__)
    return [messages[index] for index in order]


def _arrivals(messages: list[Message]) -> dict[str, int]:
    """The order of the files, where each has positions of its own; empty where all positions differ."""
    if len({message.position for message in messages}) == len(messages):
        return {}
    return {file: number for number, file in enumerate(dict.fromkeys(map(_file, messages)))}


def normalize_messages(messages: Sequence[Message], conversation: str) -> tuple[Message, ...]:
    """Messages with ids and places of their own, in order; the rest as ``normalize_conversation`` has it."""
    return tuple(_normalized(list(messages), conversation, [message.position for message in messages]))


def _normalized(messages: list[Message], conversation: str, positions: Iterable[int]) -> Iterator[Message]:
    """Positions, ids where the source has none, times in UTC, the identity that patterns follow, and the target."""
    agents = [
        each.agent or (each.author if each.role == "agent" else scoped(conversation, each.author)) for each in messages
    ]
    names = [message.id for message in messages]
    if not all(names):
        taken = set(names)
        names = [name or _free(f"{conversation}:{place}", taken) for place, name in enumerate(names)]
    targets = _targets(messages, names, agents)
    own_ids = [message.id for message in messages]
    if names == own_ids and _are_normalized(messages, conversation, positions, agents, targets):
        yield from messages
        return
    for position, message, name, agent, target in zip(positions, messages, names, agents, targets, strict=True):
        moment = message.time
        time = moment if moment is None or moment.tzinfo is UTC else moment.astimezone(UTC)
        if (
            time is moment
            and message.position == position
            and message.id == name
            and message.agent == agent
            and message.target == target
            and message.conversation == conversation
        ):
            yield message
        else:
            yield msgspec.structs.replace(
                message, position=position, conversation=conversation, id=name, agent=agent, time=time, target=target
            )


def _are_normalized(
    messages: list[Message],
    conversation: str,
    positions: Iterable[int],
    agents: list[str],
    targets: list[str | None],
) -> bool:
    """Whether all messages are as settling leaves them, their ids aside; lists are quicker than a look at each."""
    return (
        [message.position for message in messages] == list(positions)
        and [message.agent for message in messages] == agents
        and [message.target for message in messages] == targets
        and all([message.time is None or message.time.tzinfo is UTC for message in messages])
        and all([message.conversation == conversation for message in messages])
    )


def _targets(messages: list[Message], ids: list[str], agents: list[str]) -> list[str | None]:
    """The target: the one named, else whom it replies to, else the other party of two, else nobody."""
    speaking = [message.role not in _SILENT for message in messages]
    agent_set = set(agents)
    parties = list(dict.fromkeys(agent for agent, speaks in zip(agents, speaking, strict=True) if speaks))
    others = dict(zip(parties, reversed(parties), strict=True)) if len(parties) == 2 else {}
    if not others and all([each.target is None and each.reply_to is None for each in messages]):
        return [None] * len(messages)
    names, spoken = _addresses(messages, ids, agents, speaking)
    targets: list[str | None] = []
    for message, agent, speaks in zip(messages, agents, speaking, strict=True):
        target, reply = message.target, message.reply_to
        if not speaks or (target is None and reply is None and not others):
            targets.append(None)
            continue
        named = target if target in agent_set else names.get(target or "", target)
        candidates = (named, spoken.get(reply or ""), others.get(agent))
        targets.append(next((each for each in candidates if each and each != agent), None))
    return targets


def _addresses(
    messages: list[Message], ids: list[str], agents: list[str], speaking: list[bool]
) -> tuple[dict[str, str], dict[str, str | None]]:
    """Author to agent (the first of that name), and message id to the agent who may be replied to."""
    names: dict[str, str] = {}
    spoken: dict[str, str | None] = {}
    if any(message.target is not None or message.reply_to is not None for message in messages):
        for message, name, agent, speaks in zip(messages, ids, agents, speaking, strict=True):
            names.setdefault(message.author, agent)
            spoken[name] = agent if speaks else None
    return names, spoken


def _notes(first: Conversation, counts: dict[str, int]) -> Iterable[Problem]:
    where = str(first.source_ref) if first.source_ref else first.id
    shortened = first.id[:80]
    if counts["repeated"]:
        what = f"conversation {shortened!r}: {counts['repeated']} messages repeat earlier ones and are read once"
        yield Problem(what=what, where=where, kind="note")
    if counts["renamed"]:
        renamed = f"{counts['renamed']} messages have the id of another one; kept as ID~2, ID~3, …"
        what = f"conversation {shortened!r}: {renamed}"
        yield Problem(what=what, where=where, kind="note")
    if counts["apart"]:
        apart = f"agents of {counts['apart']} messages look like authors elsewhere; kept as ~AGENT"
        what = f"conversation {shortened!r}: {apart}"
        yield Problem(what=what, where=where, kind="note")


def _content(message: Message) -> tuple[Any, ...]:
    calls = msgspec.json.encode(message.tool_calls) if message.tool_calls else b""
    return (message.author, message.role, message.text, _utc(message.time), message.reply_to, calls)


def _file(part: Conversation | Message) -> str:
    return part.source_ref.file if part.source_ref else ""


def _free(name: str, taken: Iterable[str]) -> str:
    while name in taken:
        name += "~2"
    return name


def _first(texts: Iterable[str | None]) -> str | None:
    return next((each for each in texts if each), None)


def _utc(time: datetime | None) -> Any:
    return time.astimezone(UTC) if time else None


def common_offset(messages: Iterable[Message]) -> str | None:
    """The UTC offset that every time of the source carries; UTC itself says nothing of where somebody is."""
    times = [message.time for message in messages if message.time]
    if all(time.tzinfo is UTC for time in times):
        return None
    offsets = {time.utcoffset() for time in times}
    offset = offsets.pop() if len(offsets) == 1 else None
    if not offset:
        return None
    minutes = round(offset / timedelta(minutes=1))
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


AMBIGUOUS_MARK = "~"  # stands before a global name that has the form of another conversation's author


def scoped(conversation: str, author: str) -> str:
    """``CONVERSATION/AUTHOR``; a slash or percent sign in either is written %2F or %25, so that no two are the same."""
    return f"{escaped_name(conversation)}/{escaped_name(author)}"


def own_author(conversation: str, agent: str) -> str:
    """The author whose scoped identity in this conversation ``agent`` is; any other name is given back as it is."""
    if "/" not in agent:
        return agent
    author = plain_name(agent.rpartition("/")[2])
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
        while escaped_name(unescaped := plain_name(name)) == name and is_known(unescaped):
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
