"""What moved the scores behind a finding: words of a trait, the sentence of a signal; pure, and only of evidence."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from undersong.core.hashing import text_hash
from undersong.judges.attribution import TraitContributions, top_words
from undersong.ml.trait_heads import Heads
from undersong.models import LEVELS, TRAITS, Finding, Message, Quote, Row, Why
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.language.inputs import inputs_by_stage, stage_inputs

WORDS = 3  # told per trait
MOST = 200  # findings whose scores are told, the gravest first: those that a report tells in full
MessageKey = tuple[str, str]


def with_attribution(
    findings: Sequence[Finding],
    rows: Iterable[Row],
    messages: Mapping[MessageKey, Message],
    rules: Iterable[PatternRule],
    heads: Heads,
) -> tuple[Finding, ...]:
    """The findings, the gravest of them with what moved the scores that each stage of their rule asks for.

    ``rows`` and ``messages`` are those of the findings, others are passed over; ``heads`` gave the traits. A row of
    ranks has signals alone: its trait scores counted for nothing.
    """
    names = {rule.hash: inputs_by_stage(rule) for rule in rules}
    chosen = {each.finding_id for each in _most_severe(findings)}
    places = {place for each in findings if each.finding_id in chosen for place in _places(each)}
    rows_by_key = {(row.conversation, row.id): row for row in rows if (row.conversation, row.id) in places}
    attribution = _Attribution(rows_by_key, messages, heads)
    return tuple(
        msgspec.structs.replace(each, why=tuple(attribution.of(each, names.get(each.rule_hash, {}))))
        if each.finding_id in chosen
        else each
        for each in findings
    )


class _Attribution:
    """Tells the scores of messages; what is known of a text is kept, since findings share messages."""

    def __init__(self, rows: Mapping[MessageKey, Row], messages: Mapping[MessageKey, Message], heads: Heads) -> None:
        self._rows, self._messages, self._heads = rows, messages, heads
        self._movers: dict[MessageKey, TraitContributions] = {}

    def of(self, finding: Finding, names: Mapping[str, Collection[str]]) -> Iterator[Why]:
        stages = finding.stages or tuple(("", message_id) for message_id in finding.message_ids)
        for (stage, _), place in zip(stages, _places(finding), strict=False):
            row, message = self._rows.get(place), self._messages.get(place)
            if row is not None and message is not None and row.state == "scored":
                wanted = stage_inputs(names, stage)
                yield from self._traits(row, message, wanted)
                yield from _signals(row, message, wanted)

    def _traits(self, row: Row, message: Message, wanted: Collection[str]) -> Iterator[Why]:
        levels, place = row.absolute_scores or {}, (row.conversation, row.id)
        for trait in (trait for trait in TRAITS if trait in wanted and trait in levels):
            if place not in self._movers:
                self._movers[place] = TraitContributions(self._heads, message.text)
            words = top_words(self._movers[place], trait, WORDS)
            yield Why(conversation=place[0], message_id=place[1], name=trait, score=levels[trait], words=words)


def _signals(row: Row, message: Message, wanted: Collection[str]) -> Iterator[Why]:
    for name, (start, end) in sorted(row.spans.items()):
        if name in wanted and start >= 0 and message.text[start:end].strip():
            digest = text_hash(message.text)
            sentence = Quote(message_id=row.id, text=message.text[start:end], start=start, end=end, sha256=digest)
            score = row.signals.get(name, 0.0)
            yield Why(conversation=row.conversation, message_id=row.id, name=name, score=score, sentence=sentence)


def _places(finding: Finding) -> Iterator[MessageKey]:
    return zip(finding.message_conversations, finding.message_ids, strict=False)  # a forged report may differ


def _most_severe(findings: Sequence[Finding]) -> list[Finding]:
    ranked = sorted(findings, key=lambda finding: (-LEVELS.index(finding.level), -finding.strength, finding.finding_id))
    return ranked[:MOST]
