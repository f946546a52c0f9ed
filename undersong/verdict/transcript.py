"""The transcript of a session: its turns, the code and claims in each, and the outcome of each tool call."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Literal, NamedTuple

from undersong.core.text import text_hash
from undersong.datafiles.verdict_config import mechanisms, roleplay_config
from undersong.models import CodeBlock, Conversation, Deduction, Message, Moment, Quote, Scan, ToolCall, ToolResult
from undersong.models.verdict import IN_STORY
from undersong.verdict.claims import Claim, admits, asks_for_a_story, claims, goes_on, is_speech, prose, without_speech
from undersong.verdict.tool_outcomes import ToolOutcome, outcome

NOT_AGENTS = ("user", "system", "tool")  # whose words are no promise of an agent
ASKS = ("user", "participant")  # whose messages begin a new run; other agents may speak within one
EMPTY = text_hash("")
Signals = Mapping[str, Mapping[str, float]]  # message id → signal → strength
MomentKind = Literal["smoking_gun", "distress", "protective", "conduct", "candidate"]
MomentBasis = Literal["words", "signal", "judge"]


class TranscriptTurn:
    """One message at its place; ``run`` counts what people asked so far: the work on one request is a run.

    ``story``: one was asked for before, so that what is in quotation marks is not the agent's own. ``asked_ago``: so
    many turns before, the last time; None where nobody asked.
    """

    def __init__(self, place: int, message: Message, scan: Scan, run: int, *, asked_ago: int | None = None) -> None:
        self.place, self.message, self.scan, self.run = place, message, scan, run
        self.story, self.asked_ago = asked_ago is not None, asked_ago
        self.is_agent = message.role not in NOT_AGENTS
        self.outcomes: list[ToolOutcome] = []

    @cached_property
    def prose(self) -> str:
        """The message's own words, at the same places."""
        own_words = prose(self.message, self.scan)
        return without_speech(own_words) if self.story and self.is_agent else own_words

    def explained(self, explanation: str) -> str:
        """An explanation of the turn, which says so where a story was asked for shortly before."""
        in_story = self.is_agent and self.asked_ago is not None and self.asked_ago <= roleplay_config().lasts
        return f"{explanation} {IN_STORY}" if in_story else explanation

    @cached_property
    def is_speech(self) -> bool:
        """Whether the people of a story speak for a good part of it: a signal of the whole is theirs."""
        return self.story and self.is_agent and is_speech(self.message.text)

    @cached_property
    def claims(self) -> tuple[Claim, ...]:
        """What the agent says is done; () for anybody else."""
        return claims(self.message, self.scan) if self.is_agent else ()

    @cached_property
    def admits(self) -> bool:
        """Whether the message admits a failure or takes a claim back."""
        return admits(self.prose) is not None

    @cached_property
    def goes_on(self) -> bool:
        """Whether the message goes on with what failed."""
        return goes_on(self.prose)

    @cached_property
    def blocks(self) -> list[CodeBlock]:
        """The versions of work that the message shows or writes: no commands, no outputs, nothing empty."""
        not_code = mechanisms().same_hash.not_code
        return [
            each for each in self.scan.code_blocks if each.sha256 != EMPTY and (each.lang or "").lower() not in not_code
        ]


class PlacedOutcome(NamedTuple):
    """An outcome with the turn that reports it and the agent whose call it answers."""

    turn: TranscriptTurn
    outcome: ToolOutcome
    agent: str


class Transcript:
    """The turns of a conversation in order; what nobody went on with (abandoned branches) is left out."""

    def __init__(self, conversation: Conversation, scans: Sequence[Scan]) -> None:
        self.turns = list(turns_of(conversation, scans))
        self.outcomes = list(_outcomes(self.turns))
        self._outcome_places = [each.turn.place for each in self.outcomes]
        self._outcome_runs = [each.turn.run for each in self.outcomes]
        self._ends = {turn.run: turn.place for turn in self.turns}

    @cached_property
    def failed_calls(self) -> frozenset[str]:
        """Ids of the calls that came to nothing."""
        return frozenset(
            each.outcome.call for each in self.outcomes if each.outcome.call and each.outcome.state == "failed"
        )

    @cached_property
    def has_people(self) -> bool:
        """Whether anybody but agents speaks: blame, pressure, comfort and distress are about people."""
        return any(turn.message.role in ASKS for turn in self.turns)

    def agent_turns(self, agent: str, first: int, last: int) -> Iterator[TranscriptTurn]:
        """The agent's turns from place ``first`` up to and with ``last``."""
        for turn in self.turns[max(first, 0) : last + 1]:
            if turn.is_agent and turn.message.agent == agent:
                yield turn

    def outcomes_before(self, place: int, run: int) -> list[PlacedOutcome]:
        """The outcomes before a place, from a run on."""
        first, last = bisect_left(self._outcome_runs, run), bisect_left(self._outcome_places, place)
        return self.outcomes[first:last]

    def end_of_run(self, run: int) -> int:
        """The place of the last turn of a run."""
        return self._ends.get(run, -1)

    def next_run(self, agent: str, run: int) -> int | None:
        """The number of the agent's next run after ``run``."""
        return next(
            (turn.run for turn in self.turns if turn.run > run and turn.is_agent and turn.message.agent == agent), None
        )

    def last_before(self, place: int, role: str) -> TranscriptTurn | None:
        """The latest turn of a role before a place."""
        return next((turn for turn in reversed(self.turns[:place]) if turn.message.role == role), None)


def quote(message: Message, start: int, end: int) -> Quote:
    """Verbatim evidence from a message."""
    digest = text_hash(message.text)
    return Quote(message_id=message.id, text=message.text[start:end], start=start, end=end, sha256=digest)


def trimmed(text: str, first: int, last: int) -> tuple[int, int]:
    """The bounds of a part of a text without the white space at its ends."""
    words = text[first:last]
    return first + len(words) - len(words.lstrip()), last - (len(words) - len(words.rstrip()))


def moment(
    message: Message,
    kind: MomentKind,
    code: str,
    title: str,
    explanation: str,
    quotes: tuple[Quote, ...],
    strength: float | None = None,
    basis: MomentBasis | None = None,
) -> Moment:
    """A moment at a message; without a ``basis`` it is a signal where there is a ``strength``, else words."""
    return Moment(
        kind=kind,
        code=code,
        title=title,
        message_id=message.id,
        position=message.position,
        agent=message.agent,
        explanation=explanation,
        basis=basis or ("words" if strength is None else "signal"),
        quotes=quotes,
        strength=strength,
    )


def turns_of(conversation: Conversation, scans: Sequence[Scan]) -> Iterator[TranscriptTurn]:
    run = place = 0
    asked: int | None = None
    for message, scan in zip(conversation.messages, scans, strict=True):
        if message.branch is not None:
            continue
        run += message.role in ASKS
        yield TranscriptTurn(place, message, scan, run, asked_ago=None if asked is None else place - asked)
        asked = place if message.role in ASKS and asks_for_a_story(message.text) else asked
        place += 1


def _outcomes(turns: Sequence[TranscriptTurn]) -> Iterator[PlacedOutcome]:
    """Each result with its call: by its id, else by the tool's name, else in order."""
    by_id: dict[str, ToolCall] = {}
    waiting: list[ToolCall] = []
    agents = _agents(turns)
    for turn in turns:
        message = turn.message
        if turn.is_agent:
            by_id |= {call.id: call for call in message.tool_calls if call.id}
            waiting = list(message.tool_calls) or waiting
        results = message.tool_results
        if message.role == "tool" and not results:
            results = (ToolResult(text=message.text),)
        at = 0
        for result in results:
            call = by_id.get(result.call_id or "") or _waiting(waiting, message.author)
            if call in waiting:
                waiting.remove(call)
            start = max(message.text.find(result.text, at), 0)
            tool_outcome = outcome(message, result, call, start)
            at = start + len(result.text)
            turn.outcomes.append(tool_outcome)
            yield PlacedOutcome(turn, tool_outcome, agents[turn.place])


def _agents(turns: Sequence[TranscriptTurn]) -> list[str]:
    """Whose tool speaks in each turn: the agent's that spoke last in the run, else the one's that speaks next in it."""
    first: dict[int, str] = {}
    for turn in turns:
        if turn.is_agent:
            first.setdefault(turn.run, turn.message.agent)
    tool_owners, last = [], (-1, "")
    for turn in turns:
        if turn.is_agent:
            last = (turn.run, turn.message.agent)
        tool_owners.append(last[1] if last[0] == turn.run else first.get(turn.run, last[1]))
    return tool_owners


def _waiting(waiting: Sequence[ToolCall], author: str) -> ToolCall:
    named = next((call for call in waiting if call.name == author), None)
    return named or (waiting[0] if waiting else ToolCall(name=author))


NO_POINTS = "A candidate: no points are taken."


class DetectorResult(NamedTuple):
    """``absent`` is "" where the mechanism was looked for, else why there was nothing to look at."""

    deductions: tuple[Deduction, ...] = ()
    candidates: tuple[Moment, ...] = ()
    absent: str = ""


def deduction(
    mechanism: str, kind: str, turn: TranscriptTurn, explanation: str, quotes: tuple[Quote, ...], episode: str = ""
) -> Deduction:
    """Points taken at a turn; the penalty is the mechanism's."""
    rule = mechanisms().mechanisms[mechanism]
    return Deduction(
        mechanism=mechanism,
        kind=kind,
        points=rule.penalty,
        message_id=turn.message.id,
        position=turn.message.position,
        explanation=f"{explanation} This is consistent with {rule.title.lower()}.",
        quotes=quotes,
        episode=episode,
    )


def candidate(
    code: str,
    title: str,
    turn: TranscriptTurn,
    explanation: str,
    quotes: tuple[Quote, ...],
    strength: float | None = None,
) -> Moment:
    """A turn that looks like a mechanism, and lacks the evidence that would take points; ``strength`` of a signal."""
    return moment(
        turn.message, "candidate", code, title, turn.explained(f"{explanation} {NO_POINTS}"), quotes, strength
    )
