"""One finding for the person who decides: its stages, what lies between, and what else it could be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from undersong.core.text import counted
from undersong.models import Evaluation, Finding, Message, Review, ReviewStanding, TraitScores, decisions_of
from undersong.patterns.language.compile import PatternRule
from undersong.report.display_names import display_names
from undersong.report.escape import moment
from undersong.report.finding_view import RuleWords, why_words
from undersong.report.narrative import certainty_words, outcome_words
from undersong.report.opening import finding_point
from undersong.report.opening_choice import Point
from undersong.report.opening_phrases import name_of
from undersong.report.opening_sentences import sentences
from undersong.serve.library import Library
from undersong.serve.marking import MarkedRun, Span, beginning, marked
from undersong.serve.pattern_words import (
    any_order,
    asked_stages,
    enough_words,
    found_by,
    rule_of,
    rule_paragraphs,
    stage_names,
    stage_of,
    stage_words,
)
from undersong.stores.listing import FindingQuery
from undersong.stores.reviewing import evidence_places, reviews_of, standing

WHOLE = 40  # messages of a conversation that stands whole; of a longer one those around a finding's
ANSWERED = 4  # messages before one of a finding, at most, in which what it answers is looked for
BESIDE = 60  # words of a message beside those of a finding that are shown at first, in a longer conversation
LINE, LEAST = 90, 3  # characters of a line, and the lines below which nothing is hidden
FOLDED = 40  # messages before the first and after the last of a finding that can be opened in place
MOST = 400  # messages of a page; the conversation has the others
HIGH, LOW = 0.5, 0.3  # scores from and up to which a trait is named
INNOCENT = "the best innocent reading: "  # what begins it in the notes of a finding
LOOKED_AT = 60  # findings of a conversation
SHOWN = 3


@dataclass(frozen=True)
class ContextTurn:
    """A message on the page of a finding; ``stage`` is "" where it is none of its own, ``counts`` why it is one.

    ``rest`` opens in place.
    """

    message: Message
    runs: tuple[MarkedRun, ...]
    rest: tuple[MarkedRun, ...] = ()
    stage: str = ""
    counts: str = ""
    scores: TraitScores = field(default_factory=dict)
    why: tuple[str, ...] = ()


@dataclass(frozen=True)
class ContextBlock:
    """Messages in a row; ``folded`` ones open in place, ``skipped`` ones are not on the page."""

    turns: tuple[ContextTurn, ...]
    folded: bool = False
    skipped: int = 0


@dataclass(frozen=True)
class Stage:
    """A stage of the pattern with its messages, none where it is not seen; ``shows`` is what they do, or "".

    ``asked``: the rule looks for it.
    """

    name: str
    shows: str
    turns: tuple[ContextTurn, ...]
    asked: bool = True


@dataclass(frozen=True)
class Evidence:
    """Everything that the page of a finding shows."""

    finding: Finding
    point: Point
    stages: tuple[Stage, ...]
    order: str
    blocks: tuple[ContextBlock, ...]
    elsewhere: tuple[ContextTurn, ...]
    missing: int
    innocent: str
    look_alikes: tuple[str, ...]
    rule: PatternRule | None
    certainty: tuple[str, ...]
    outcome: tuple[str, ...]
    standing: ReviewStanding | None
    reviews: tuple[Review, ...]
    neighbours: tuple[DecidedNeighbour, ...]

    @property
    def home(self) -> str:
        """The conversation in which it begins."""
        return self.finding.conversations[0] if self.finding.conversations else ""

    @property
    def gist(self) -> str:
        """What the pattern is, in a few words."""
        gist = sentences().patterns.get(self.finding.pattern, "")
        return f"{gist[:1].upper()}{gist[1:]}." if gist else ""

    @property
    def two(self) -> bool:
        """Whether all messages on the page are between the same two, so that nobody has to be told whom each is to."""
        turns = [turn.message for block in self.blocks for turn in block.turns]
        people = {message.agent or message.author for message in turns}
        return not self.elsewhere and len(people | {message.target for message in turns if message.target}) <= 2

    @property
    def first(self) -> int | None:
        """The position of its first message in its conversation, None where the store does not have it."""
        own = (turn.message.position for block in self.blocks for turn in block.turns if turn.stage)
        return next(own, None)

    @property
    def hides(self) -> bool:
        """Whether something of the conversation opens in place."""
        return any(block.folded or any(turn.rest for turn in block.turns) for block in self.blocks)

    @property
    def quoted(self) -> bool:
        """Whether words in a message are marked as quoted."""
        return any(run.kinds for turn in self.own for run in turn.runs)

    @property
    def own(self) -> tuple[ContextTurn, ...]:
        """Its messages."""
        near = (turn for block in self.blocks for turn in block.turns if turn.stage)
        return (*near, *self.elsewhere)

    def _name(self, agent: str) -> str:
        """The name that people have, with the id where the input names them by one."""
        turns = (*self.elsewhere, *(turn for block in self.blocks for turn in block.turns))
        return display_names(turn.message for turn in turns).get(agent) or name_of(agent, self.home)

    @property
    def count_words(self) -> str:
        """How many messages, from whom, and to whom how many of them are."""
        who = self._name(self.finding.agent)
        to = Counter(turn.message.target for turn in self.own)
        whole = f"{counted(len(self.finding.message_ids), 'message')} from {who}"
        if len(to) == 1 and self.missing == 0:
            (target,) = to
            return f"{whole} to {name_of(target, self.home) if target else 'everybody'}"
        parts = (f"{n} to {name_of(target, self.home) if target else 'everybody'}" for target, n in to.most_common())
        return f"{whole}: {', '.join(parts)}" if to else whole

    @property
    def when(self) -> str:
        """From when to when, "" where its messages have no time; of one day the day is said once."""
        first, last = self.finding.start, self.finding.end
        if first is None or last is None or first == last:
            return moment(last) if last else ""
        until = moment(last)
        if first.date() == last.date():
            until = until.split(maxsplit=1)[1]
        return f"{moment(first, zone=first.utcoffset() != last.utcoffset())} – {until}"

    @property
    def found_by(self) -> str:
        """Which of the rules of its pattern found it, or that a reader did."""
        return found_by(self.finding)

    @property
    def enough(self) -> str:
        """What suffices to confirm it."""
        return enough_words(self.finding, self.home)

    @property
    def paragraphs(self) -> tuple[str, ...]:
        """The pattern and its rule in plain words."""
        return tuple(rule_paragraphs(self.finding))

    @property
    def rests_on(self) -> str:
        """Which of the numbers the confidence rests on."""
        if self.finding.is_read or self.finding.confidence is None:
            return ""
        return (
            "The confidence is how often findings of this kind and strength were right where the truth is known. It"
            " does not rest on shuffles and q, which ask whether the order of the messages matters."
        )

    @property
    def question(self) -> str:
        """What a person decides, in a sentence."""
        who = self._name(self.finding.agent)
        whom = f" to {self._name(self.finding.target)}" if self.finding.target else ""
        return f"Is what {who} wrote{whom} consistent with “{self.finding.title}”?"


def evidence_of(library: Library, finding: Finding) -> Evidence:
    """The page of a finding from the store."""
    rule, places = rule_of(finding), evidence_places(finding)
    texts = _texts(library, places)
    words = library.rules().get(finding.rule_hash, RuleWords())
    shows = stage_words(finding)
    turns = {
        place: _own_turn(library, finding, words, shows, name, texts[place])
        for place, name in _stage_names(finding, places)
        if place in texts
    }
    home = finding.conversations[0] if finding.conversations else ""
    here = {turn.message.id: turn for place, turn in turns.items() if place[0] == home}
    reading = library.reading(finding.reading)
    shape = next((each for each in reading.shapes if each.pattern == finding.pattern), None) if reading else None
    stages = stages_seen(finding, shows, list(turns.values()))
    return Evidence(
        finding=finding,
        point=finding_point(finding),
        stages=stages,
        order=order_words(finding, stages),
        blocks=blocks_around(library, home, here),
        elsewhere=tuple(turn for place, turn in turns.items() if place[0] != home),
        missing=len(places) - len(turns),
        innocent=shape.innocent if shape else _innocent(finding.notes),
        look_alikes=rule.file.falsepositives if rule else (),
        rule=rule,
        certainty=certainty_words(finding),
        outcome=outcome_words(finding),
        standing=standing(library.store, finding),
        reviews=tuple(decisions_of(reviews_of(library.store, finding))),
        neighbours=decided_neighbours(library, finding),
    )


def stages_seen(finding: Finding, shows: Mapping[str, str], turns: Sequence[ContextTurn]) -> tuple[Stage, ...]:
    """The stages as they come in the conversation, then those that are not seen."""
    asked = asked_stages(finding)
    made = [
        Stage(name, shows.get(name, ""), tuple(turn for turn in turns if turn.stage == name), name in asked)
        for name in stage_names(finding)
    ]
    first = {turn.stage: place for place, turn in reversed([*enumerate(turns)])}
    return tuple(sorted(made, key=lambda stage: first.get(stage.name, len(turns))))


def order_words(finding: Finding, stages: Sequence[Stage]) -> str:
    """The order of the pattern, where the conversation has another; "" where it is the same, or does not matter."""
    seen = {stage.name for stage in stages if stage.turns}
    pattern = [name for name in stage_names(finding) if name in seen]
    if any_order(finding) or pattern == [stage.name for stage in stages if stage.turns]:
        return ""
    return f"The pattern has them in another order: {', '.join(pattern).replace('_', ' ')}."


def _innocent(notes: Sequence[str]) -> str:
    """The judge's innocent reading, which a finding carries in its notes where no report has the reading itself."""
    return next((note.partition(INNOCENT)[2] for note in notes if INNOCENT in note), "")


def _texts(library: Library, places: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Message]:
    messages: dict[tuple[str, str], Message] = {}
    for name in dict.fromkeys(conversation for conversation, _ in places):
        ids = [message_id for conversation, message_id in places if conversation == name]
        messages |= {(name, message.id): message for message in library.store.messages(name, ids)}
    return messages


def _stage_names(finding: Finding, places: Sequence[tuple[str, str]]) -> list[tuple[tuple[str, str], str]]:
    """The stage of each message; the pairs of a finding are in the order of its messages."""
    if len(finding.stages) == len(places):
        return [(place, name) for place, (name, _) in zip(places, finding.stages, strict=True)]
    by_id = {message_id: name for name, message_id in finding.stages}
    return [(place, by_id.get(place[1], "")) for place in places]


def _own_turn(
    library: Library, finding: Finding, words: RuleWords, shows: Mapping[str, str], stage: str, message: Message
) -> ContextTurn:
    answers = library.store.evaluations(message.conversation, message.id)
    scores = words.scores(stage, _traits(answers, finding))
    return ContextTurn(
        message=message,
        runs=marked(message.text, _quotes(finding, message)),
        stage=stage_of(finding, stage) or "messages",
        counts=shows.get(stage_of(finding, stage), "") or _score_words(scores),
        scores=scores,
        why=why_words(finding, message.id, message.conversation),
    )


def _score_words(scores: TraitScores) -> str:
    """What of a message counts, by the traits that its stage asks for: ``high in manipulation, low in goodwill``."""
    high = [trait.replace("_", " ") for trait, score in scores.items() if score is not None and score >= HIGH]
    low = [trait.replace("_", " ") for trait, score in scores.items() if score is not None and score <= LOW]
    parts = [f"{word} in {' and '.join(names)}" for word, names in (("high", high), ("low", low)) if names]
    return ", ".join(parts)


def _traits(answers: Sequence[Evaluation], finding: Finding) -> Mapping[str, float | None] | None:
    """The scores of the judge that the finding rests on."""
    scored = [each for each in answers if each.traits is not None]
    chosen = [each for each in scored if each.judge in finding.judges] or scored
    return chosen[0].traits if chosen else None


def _quotes(finding: Finding, message: Message) -> list[Span]:
    """What is quoted, where that is less than the whole message."""
    return [
        Span(quote.start, quote.end, "quote", "quoted as evidence")
        for quote in finding.quotes
        if quote.message_id == message.id
        and message.text[quote.start : quote.end] == quote.text
        and len(quote.text.strip()) < len(message.text.strip())
    ]


def _answered(messages: Sequence[Message], own: Mapping[str, ContextTurn]) -> Iterator[int]:
    """The positions of what each own message answers: those before it, back to the first by somebody else."""
    for place, message in enumerate(messages):
        if message.id in own:
            before = messages[max(0, place - ANSWERED) : place][::-1]
            same = next((n for n, each in enumerate(before) if each.agent != message.agent), 0)
            yield from (each.position for each in before[: same + 1])


def message_beside(message: Message, *, whole: bool) -> ContextTurn:
    """A message that is none of the finding's."""
    first, rest = (message.text, "") if whole else beginning(message.text, BESIDE)
    if rest and _lines(rest) < LEAST:
        first, rest = message.text, ""
    return ContextTurn(message, marked(first, ()), marked(rest, ()))


def _lines(text: str) -> int:
    return sum(1 + len(line) // LINE for line in text.strip().splitlines())


def blocks_around(library: Library, home: str, own: Mapping[str, ContextTurn]) -> tuple[ContextBlock, ...]:
    """The conversation: whole where it is short, else what lies around its own messages, the rest folded."""
    positions = [turn.message.position for turn in own.values()]
    if not positions:
        return ()
    length = library.store.length(home) or 0
    first, last = (0, length - 1) if length <= WHOLE else (min(positions) - FOLDED, max(positions) + FOLDED)
    if last - first > MOST:
        last = first + MOST
    messages = library.store.transcript(home, max(0, first), last)
    near = {*(place + 1 for place in positions), *positions, *_answered(messages, own)}
    blocks = [ContextBlock((), skipped=messages[0].position)] if messages and messages[0].position > 0 else []
    for away, group in groupby(messages, key=lambda one: length > WHOLE and one.position not in near):
        row = list(group)
        folded = away and sum(_lines(one.text) for one in row) >= LEAST
        turns = tuple(own.get(one.id) or message_beside(one, whole=away or length <= WHOLE) for one in row)
        blocks.append(ContextBlock(turns, folded=folded))
    after = length - 1 - messages[-1].position if messages else 0
    return (*blocks, ContextBlock((), skipped=after)) if after > 0 else tuple(blocks)


class DecidedNeighbour(NamedTuple):
    """A finding of the same speaker in the same conversation, and the decision on it."""

    finding: Finding
    review: Review
    same: bool  # of the same pattern
    common: int  # messages that both rest on


def decided_neighbours(library: Library, finding: Finding) -> tuple[DecidedNeighbour, ...]:
    """The decided ones, those of the same pattern and target first."""
    home = finding.conversations[0] if finding.conversations else ""
    if not home:
        return ()
    listed = library.store.list_findings(FindingQuery(conversation=home, agent=finding.agent), None, LOOKED_AT).items
    others = [each for each in listed if each.finding_id != finding.finding_id]
    others.sort(key=lambda one: (one.pattern != finding.pattern, one.target != finding.target, one.finding_id))
    standings = ((each, standing(library.store, each)) for each in others)
    own = frozenset(finding.message_ids)
    decided = [
        DecidedNeighbour(each, now.review, each.pattern == finding.pattern, len(own.intersection(each.message_ids)))
        for each, now in standings
        if now
    ]
    return tuple(decided[:SHOWN])
