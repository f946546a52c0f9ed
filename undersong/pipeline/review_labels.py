"""Reviews as partial labels of messages, for ``undersong judge validate``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from undersong.models import NEGATIVE_TRAITS, Finding, Review
from undersong.patterns.catalog import all_rules
from undersong.patterns.language.inputs import inputs_by_stage, stage_inputs
from undersong.stores.protocol import Store
from undersong.stores.reviewing import evidence_places, standing

HIGH = 0.5  # from which on a negative trait counts


def labels_of(store: Store, reviews: Iterable[Review]) -> Iterator[bytes]:
    """A JSON line for each message of a finding that was decided on as it is now: ``author``, ``text``, ``traits``.

    ``traits`` are the harmful ones that the rule asks of the stage and some judge scored HIGH or more: 1 in a finding
    that was confirmed, 0 in one that was rejected. Of a message in several findings a confirmed one counts. They say
    nothing of other messages, nor how strongly a trait shows, so they measure the order of a judge's scores among
    messages that rules were struck by.
    """
    asked = {rule.hash: inputs_by_stage(rule) for rule in all_rules()}
    labels: dict[tuple[str, str], dict[str, float]] = {}
    for name in dict.fromkeys(review.id for review in reviews if review.kind == "finding"):
        finding = store.finding(name)
        decided = standing(store, finding) if finding else None
        if finding is None or decided is None or decided.stale or decided.review.verdict == "unsure":
            continue
        value = float(decided.review.verdict == "confirmed")
        for place, traits in _stages(finding, asked.get(finding.rule_hash, {})):
            own, high = labels.setdefault(place, {}), _scored_high(store, *place)
            own.update({trait: max(value, own.get(trait, 0.0)) for trait in traits if trait in high})
    for (conversation, message_id), label in sorted(labels.items()):
        for message in store.messages(conversation, [message_id]):
            if label and message.text:
                line = {"author": message.agent, "text": message.text, "traits": dict(sorted(label.items()))}
                yield msgspec.json.encode(line)


def _scored_high(store: Store, conversation: str, message_id: str) -> set[str]:
    """The traits that a judge gave the message, as a level or a rank."""
    rows = (row for judge in store.judges() for row in store.thread(conversation, judge.judge_hash))
    scores = [row.traits for row in rows if row.id == message_id]
    scores += [answer.traits for answer in store.evaluations(conversation, message_id)]
    return {name for traits in scores for name, score in (traits or {}).items() if (score or 0.0) >= HIGH}


def _stages(finding: Finding, asked: dict[str, frozenset[str]]) -> Iterator[tuple[tuple[str, str], list[str]]]:
    """Each message of a finding with the harmful traits that the rule asks of it."""
    stages = dict((message_id, stage) for stage, message_id in finding.stages)
    for place in evidence_places(finding):
        yield place, sorted(NEGATIVE_TRAITS.intersection(stage_inputs(asked, stages.get(place[1], ""))))
