"""What tells a true finding of rules from a chance one, beside its strength: numbers from the agent's own messages."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from undersong.models import NEGATIVE_TRAITS, Finding, Row

HARMFUL = 0.5  # a negative trait from here on makes a message harmful
FEATURES = ("strength", "bound", "chances", "public", "habit", "again", "rival", "echo", "passed")


class _AgentRows(NamedTuple):
    """The read rows of an agent with the highest negative trait of each."""

    rows: list[Row]
    harms: list[float]


def finding_features(findings: Sequence[Finding], rows: Iterable[Row]) -> list[dict[str, float]]:
    """The ``FEATURES`` of each finding, in order; ``findings`` and ``rows`` are all of a run, by rules of one kind.

    strength  0 to 1, of the rule
    bound     log(1 + messages of the match)
    chances   log(1 + read messages of the agent to the same target): more chances need more evidence
    public    share of the match's messages that are to nobody
    habit     share of the agent's other messages that are harmful: who is always like that shows no pattern
    again     further findings of the same rule about the same agent: repetition is no evidence
    rival     the strength of the strongest other pattern over some of the same messages, else 0
    echo      the strength of the strongest finding of the same pattern by another rule over most of the same messages
    passed    share of messages passed over within the match
    """
    by_agent: dict[str, list[Finding]] = {}
    for finding in findings:
        by_agent.setdefault(finding.agent, []).append(finding)
    own = _own_rows(by_agent, rows)
    return [_features(finding, by_agent[finding.agent], own[finding.agent]) for finding in findings]


def _own_rows(agents: Mapping[str, object], rows: Iterable[Row]) -> dict[str, _AgentRows]:
    own = {agent: _AgentRows([], []) for agent in agents}
    for row in rows:
        if row.agent not in own or row.state != "scored":
            continue
        scores = row.absolute_scores or {}
        place = own[row.agent]
        place.rows.append(row)
        place.harms.append(max((scores.get(trait) or 0.0 for trait in NEGATIVE_TRAITS), default=0.0))
    return own


def _features(finding: Finding, same_agent: Sequence[Finding], own: _AgentRows) -> dict[str, float]:
    bound = places(finding)
    inside = [(row.conversation, row.id) in bound for row in own.rows]
    rivals = [each.strength for each in same_agent if each.pattern != finding.pattern and places(each) & bound]
    same = [each for each in same_agent if each.pattern == finding.pattern]
    echoes = [each.strength for each in same if each.rule_hash != finding.rule_hash and _same(places(each), bound)]
    passed = len(finding.gap_ids)
    return {
        "strength": finding.strength,
        "bound": math.log1p(len(bound)),
        "chances": math.log1p(sum(row.target == finding.target for row in own.rows)),
        "public": _mean([row.target is None for row, within in zip(own.rows, inside, strict=True) if within]),
        "habit": _mean([harm >= HARMFUL for harm, within in zip(own.harms, inside, strict=True) if not within]),
        "again": float(sum(each.rule_hash == finding.rule_hash for each in same) - 1),
        "rival": max(rivals, default=0.0),
        "echo": max(echoes, default=0.0),
        "passed": passed / (passed + len(bound)),
    }


def _same(one: set[tuple[str, str]], other: set[tuple[str, str]]) -> bool:
    """Whether two matches share most of their messages: a Jaccard index of at least one half."""
    return 2 * len(one & other) >= len(one | other)


def places(finding: Finding) -> set[tuple[str, str]]:
    """The messages of a match, by conversation and id."""
    return set(zip(finding.message_conversations, finding.message_ids, strict=True))


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else 0.0
