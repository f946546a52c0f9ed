"""One finding for the person who decides: its stages, what lies between, and what else it could be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from undersong.models import Evaluation, Finding, Message, ReviewStanding, TraitScores
from undersong.patterns.catalog import all_rules
from undersong.patterns.language.compile import PatternRule
from undersong.report.escape import own_name
from undersong.report.finding_view import RuleWords, why_words
from undersong.report.narrative import certainty_words, outcome_words
from undersong.report.opening import finding_point
from undersong.report.opening_choice import Point
from undersong.serve.library import Library
from undersong.serve.marking import MarkedRun, Span, marked
from undersong.stores.reviewing import evidence_places, standing

AROUND = 3  # messages before the first and after the last of a finding
CONTEXT = 60  # messages that are shown with a finding; the conversation has the others
INNOCENT = "the best innocent reading: "  # what begins it in the notes of a finding


@dataclass(frozen=True)
class StageTurn:
    """A message of a finding; ``message`` None where the store has no text of it."""

    message_id: str
    conversation: str
    message: Message | None
    runs: tuple[MarkedRun, ...]
    scores: TraitScores
    why: tuple[str, ...]


@dataclass(frozen=True)
class Stage:
    """A stage with its messages; ``shows`` is what messages of it do, in the words of the rule, or ""."""

    name: str
    shows: str
    turns: tuple[StageTurn, ...]


@dataclass(frozen=True)
class ContextTurn:
    """A message around a finding; ``stage`` is "" where it is none of its own, ``skipped`` how many are left out."""

    message: Message
    runs: tuple[MarkedRun, ...]
    stage: str
    skipped: int = 0


@dataclass(frozen=True)
class Evidence:
    """Everything that the page of a finding shows."""

    finding: Finding
    point: Point
    stages: tuple[Stage, ...]
    context: tuple[ContextTurn, ...]
    innocent: str
    look_alikes: tuple[str, ...]
    rule: PatternRule | None
    certainty: tuple[str, ...]
    outcome: tuple[str, ...]
    standing: ReviewStanding | None

    @property
    def home(self) -> str:
        """The conversation in which it begins."""
        return self.finding.conversations[0] if self.finding.conversations else ""

    @property
    def question(self) -> str:
        """What a person decides, in a sentence."""
        who = own_name(self.finding.agent, self.home)
        whom = f" to {own_name(self.finding.target, self.home)}" if self.finding.target else ""
        return f"Is what {who} wrote{whom} consistent with “{self.finding.title}”?"

    @property
    def missing(self) -> int:
        """How many of its messages the store has no text of."""
        return sum(turn.message is None for stage in self.stages for turn in stage.turns)


def rule_of(finding: Finding) -> PatternRule | None:
    """The rule that found it, None where today's rules are others."""
    return next((rule for rule in all_rules() if rule.hash == finding.rule_hash), None)


def evidence_of(library: Library, finding: Finding) -> Evidence:
    """The page of a finding from the store."""
    store, rule = library.store, rule_of(finding)
    places = evidence_places(finding)
    texts = _texts(library, places)
    words = library.rules().get(finding.rule_hash, RuleWords())
    names = dict(_stage_names(finding, places))
    turns = [_turn(library, finding, words, names.get(place, ""), place, texts.get(place)) for place in places]
    shows = (
        {stage.name.lower(): stage.shows for stage in rule.file.reading.stages} if rule and rule.file.reading else {}
    )
    groups = groupby(zip(places, turns, strict=True), key=lambda pair: names.get(pair[0], ""))
    reading = library.reading(finding.reading)
    shape = next((each for each in reading.shapes if each.pattern == finding.pattern), None) if reading else None
    return Evidence(
        finding=finding,
        point=finding_point(finding),
        stages=tuple(
            Stage(name, " ".join(shows.get(name.lower(), "").split()), tuple(turn for _, turn in group))
            for name, group in groups
        ),
        context=_context(library, finding, names),
        innocent=shape.innocent if shape else _innocent(finding.notes),
        look_alikes=rule.file.falsepositives if rule else (),
        rule=rule,
        certainty=certainty_words(finding),
        outcome=outcome_words(finding),
        standing=standing(store, finding),
    )


def _stage_words(finding: Finding, rule: PatternRule | None) -> dict[str, str]:
    """Stage in lower case → what messages of it do, by the rule itself or by the one that the pattern is named by."""
    rules = (rule, *(each for each in all_rules() if each.id == finding.pattern))
    reading = next((each.file.reading for each in rules if each and each.file.reading), None)
    return {stage.name.lower(): stage.shows for stage in reading.stages} if reading else {}


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


def _turn(
    library: Library, finding: Finding, words: RuleWords, stage: str, place: tuple[str, str], message: Message | None
) -> StageTurn:
    answers = library.store.evaluations(*place)
    return StageTurn(
        message_id=place[1],
        conversation=place[0],
        message=message,
        runs=marked(message.text, _quotes(finding, message)) if message else (),
        scores=words.scores(stage, _traits(answers, finding)),
        why=why_words(finding, place[1], place[0]),
    )


def _traits(answers: Sequence[Evaluation], finding: Finding) -> Mapping[str, float | None] | None:
    """The scores of the judge that the finding rests on."""
    scored = [each for each in answers if each.traits is not None]
    chosen = [each for each in scored if each.judge in finding.judges] or scored
    return chosen[0].traits if chosen else None


def _quotes(finding: Finding, message: Message) -> list[Span]:
    return [
        Span(quote.start, quote.end, "quote", "quoted as evidence")
        for quote in finding.quotes
        if quote.message_id == message.id and message.text[quote.start : quote.end] == quote.text
    ]


def _context(library: Library, finding: Finding, names: Mapping[tuple[str, str], str]) -> tuple[ContextTurn, ...]:
    """The messages of its first conversation around and between its own, at most CONTEXT of them."""
    home = finding.conversations[0] if finding.conversations else ""
    own = [message.position for place, message in _texts(library, list(names)).items() if place[0] == home]
    if not own:
        return ()
    messages = library.store.transcript(home, max(0, min(own) - AROUND), max(own) + AROUND)
    if len(messages) > CONTEXT:
        near = {at for position in own for at in range(position - AROUND, position + AROUND + 1)}
        messages = tuple(message for message in messages if message.position in near)[:CONTEXT]
    turns, before = [], None
    for message in messages:
        skipped = 0 if before is None else max(0, message.position - before - 1)
        runs = marked(message.text, _quotes(finding, message), 4000)
        turns.append(ContextTurn(message, runs, names.get((home, message.id), ""), skipped))
        before = message.position
    return tuple(turns)
