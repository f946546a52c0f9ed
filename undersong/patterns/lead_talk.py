"""The talk of a run by who says it, where, and to whom."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import chain

import msgspec

from undersong.patterns.lead_sums import MeasuredMessage, SourceSums, joined_sums

Cells = dict[tuple[str, str | None], "_Cell"]  # by conversation and addressee


class _Cell(msgspec.Struct, gc=False):
    """What one agent writes in one conversation to one other, or to nobody by name."""

    messages: list[MeasuredMessage]
    sums: SourceSums


class TalkPart(msgspec.Struct, frozen=True, gc=False):
    """Messages of one agent with their sums, and what stands beside them.

    ``target`` is whom all of them are addressed to; then ``answers`` are the messages of that one to the agent and
    ``others`` their sums. ``home`` is the one conversation in which all of them are addressed to nobody; then
    ``others`` is what all others write there. With neither it is all that the agent writes.
    """

    messages: Sequence[MeasuredMessage]
    sums: SourceSums
    target: str | None = None
    home: str | None = None
    answers: Sequence[MeasuredMessage] = ()
    others: SourceSums = SourceSums()


class Talk:
    """Messages by agent, conversation and addressee, each counted once."""

    def __init__(self, messages: Sequence[MeasuredMessage]) -> None:
        self.agents: dict[str, Cells] = {}
        self.conversations: dict[str, SourceSums] = {}
        self._by_target: dict[tuple[str, str | None], list[_Cell]] = {}  # by agent and addressee
        self._by_home: dict[tuple[str, str], list[_Cell]] = {}  # by agent and conversation
        places: dict[tuple[str, str, str | None], int] = {}
        groups, cells = list[int](), list[_Cell]()
        for message in messages:
            agent, home, target = key = message.row.agent, message.row.conversation, message.row.target
            if key not in places:
                places[key] = len(cells)
                cells.append(_Cell([], SourceSums()))
                self.agents.setdefault(agent, {})[home, target] = cells[-1]
                self._by_target.setdefault((agent, target), []).append(cells[-1])
                self._by_home.setdefault((agent, home), []).append(cells[-1])
            groups.append(places[key])
            cells[groups[-1]].messages.append(message)
        for (_, home, _), cell, sums in zip(
            places, cells, SourceSums.of_groups(messages, groups, len(cells)), strict=True
        ):
            cell.sums = sums
            self.conversations.setdefault(home, SourceSums()).join(sums)

    def whole(self, agent: str, *, without: Collection[str] = ()) -> TalkPart:
        """All that an agent writes, but what it writes to those ``without``."""
        return TalkPart(*_together(cell for (_, to), cell in self.agents[agent].items() if to not in without))

    def parts(self, agent: str, least: int) -> list[TalkPart]:
        """The parts of an agent's talk with ``least`` messages or more: for each addressee, and for each conversation
        in which it addresses nobody; none where a part is all that it writes."""
        groups: dict[tuple[str | None, str | None], list[_Cell]] = {}
        for (home, target), cell in self.agents[agent].items():
            groups.setdefault((target, None if target else home), []).append(cell)
        if len(groups) == 1:
            return []
        return [
            self._to(agent, target, group) if home is None else self._in(agent, home, group)
            for (target, home), group in groups.items()
            if sum(cell.sums.messages for cell in group) >= least
        ]

    def _in(self, agent: str, home: str, group: Sequence[_Cell]) -> TalkPart:
        """What an agent writes to nobody by name in a conversation."""
        messages, sums = _together(group)
        own = joined_sums(cell.sums for cell in self._by_home[agent, home])
        return TalkPart(messages, sums, None, home, (), self.conversations[home].without(own))

    def _to(self, agent: str, target: str | None, group: Sequence[_Cell]) -> TalkPart:
        """What an agent writes to one other."""
        messages, sums = _together(group)
        answers = self._answers(agent, target or "", {cell.messages[0].row.conversation for cell in group})
        return TalkPart(messages, sums, target, None, *_together(answers))

    def _answers(self, agent: str, target: str, homes: set[str]) -> list[_Cell]:
        """What ``target`` writes to the agent; where that is nothing, what it writes in these conversations."""
        to_agent = self._by_target.get((target, agent), [])
        return to_agent or [cell for home in sorted(homes) for cell in self._by_home.get((target, home), ())]


def _together(cells: Iterable[_Cell]) -> tuple[list[MeasuredMessage], SourceSums]:
    several = list(cells)
    return list(chain.from_iterable(cell.messages for cell in several)), joined_sums(cell.sums for cell in several)
