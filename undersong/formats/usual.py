"""Lines with the usual keys alone, which are most of all lines: read as columns, without a look at each of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import count
from typing import Any, NamedTuple

import msgspec

from undersong.formats import values
from undersong.formats.plain import NOT_PLAIN, time_of_text
from undersong.formats.scope import scoped
from undersong.formats.settle import other_party
from undersong.models import Conversation, Message, Role, SourceRef


class _CommonJsonlLine(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """The keys that most lines have; a block with any other key or type is read by the wider structure."""

    id: str
    conversation: str
    author: str
    role: str
    text: str
    position: int = -1
    time: str | None = None
    ts: str | None = None


class JsonlColumns(NamedTuple):
    """What the lines of a block say, each list as long as the block has lines."""

    ids: list[str]
    conversations: list[str]
    authors: list[str]
    roles: list[Role]
    texts: list[str]
    positions: list[int]
    times: Sequence[datetime | None]

    def part(self, start: int, end: int, file: str, line: int, whole: bool) -> Conversation:
        """The messages of lines ``start:end``, all of one conversation, of which ``line`` is the number of the first.

        ``whole``: nothing else is known of it, so that its messages may have the targets that settling would give.
        """
        own = slice(start, end)
        name, authors, roles = self.conversations[start], self.authors[own], self.roles[own]
        agents = _agents(name, authors, roles)
        messages = tuple([
            Message(
                id=each, conversation=name, position=position, author=author, role=role, text=text, agent=agent,
                time=time, target=target, source_ref=SourceRef(file=file, line=number),
            )
            for each, position, author, role, text, agent, time, target, number in zip(
                self.ids[own], self.positions[own], authors, roles, self.texts[own], agents, self.times[own],
                other_party(agents, roles) if whole else [None] * len(agents), count(line), strict=False,
            )
        ])  # fmt: skip
        return Conversation(id=name, source_format="jsonl", messages=messages, source_ref=messages[0].source_ref)


def columns(block: bytes) -> JsonlColumns | None:
    """The columns of a block of lines, each one an object; None where a line has more to say or is in doubt."""
    try:
        lines = _decode_lines(block)
        roles = [values.ROLES[line.role] for line in lines]
        times = _times(lines)
    except (*NOT_PLAIN, KeyError):
        return None
    result = JsonlColumns(
        [line.id for line in lines],
        [line.conversation for line in lines],
        [line.author for line in lines],
        roles,
        [line.text for line in lines],
        _positions([line.position for line in lines]),
        times,
    )
    named = {*result.conversations, *result.authors}
    if "" in named or any(map(str.isspace, named)) or any(map(str.isspace, result.ids)):
        return None
    return result


def _times(lines: Sequence[_CommonJsonlLine]) -> Sequence[datetime | None]:
    raw_times = [line.ts if line.time is None else line.time for line in lines]
    if not any(raw_times) and "" not in raw_times:
        return [None] * len(raw_times)
    return [None if each is None else time_of_text(each) for each in raw_times]


def _positions(positions: list[int]) -> list[int]:
    if min(positions, default=0) >= 0 and max(positions, default=0) < values.INTEGERS:
        return positions
    return [each if 0 <= each < values.INTEGERS else -1 for each in positions]


def _agents(conversation: str, authors: Sequence[str], roles: Sequence[Role]) -> list[str]:
    """The identity that patterns follow, as settling has it where the source names none."""
    identities: dict[Any, str] = {
        (author, role): author if role == "agent" else scoped(conversation, author)
        for author, role in {*zip(authors, roles, strict=True)}
    }
    return [identities[each] for each in zip(authors, roles, strict=True)]


_decode_lines = msgspec.json.Decoder(_CommonJsonlLine).decode_lines
