"""What tells a true finding of rules from a chance one, beside its strength: numbers from the agent's own messages."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from undersong.models import NEGATIVE_TRAITS, Finding, Row

HARMFUL = 0.5  # a negative trait from here on makes a message harmful
FEATURES = ("strength", "bound", "chances", "public", "habit", "again", "matches", "rival", "echo", "passed")


Message = tuple[str, str]  # its conversation and id


def finding_features(findings: Sequence[Finding], rows: Iterable[Row]) -> list[dict[str, float]]:
    """The ``FEATURES`` of each finding, in order; ``findings`` and ``rows`` are all of a run, by rules of one kind.

    strength  0 to 1, of the rule
    bound     log(1 + messages of the match)
    chances   log(1 + read messages of the agent to the same target): more chances need more evidence
    public    share of the match's messages that are to nobody
    habit     share of the agent's other messages that are harmful: who is always like that shows no pattern
    again     further findings of the same rule about the same agent: repetition is no evidence
    matches   log(findings of all rules about the agent): who often matches by chance matches once more by chance
    rival     the strength of the strongest other pattern over some of the same messages, else 0
    echo      the strength of the strongest finding of the same pattern by another rule over most of the same messages
    passed    share of messages passed over within the match
    """
    own = _own_rows({finding.agent for finding in findings}, rows)
    bounds = [places(finding) for finding in findings]
    rivals, echoes = _Rivals(findings, bounds), _Echoes(findings, bounds)
    again = Counter((finding.agent, finding.pattern, finding.rule_hash) for finding in findings)
    matches = Counter(finding.agent for finding in findings)
    return [
        own[finding.agent].features(finding, bound)
        | {
            "again": float(again[finding.agent, finding.pattern, finding.rule_hash] - 1),
            "matches": math.log(matches[finding.agent]),
            "rival": rivals.strongest(finding, bound),
            "echo": echoes.strongest(finding, bound),
        }
        for finding, bound in zip(findings, bounds, strict=True)
    ]


class _AgentRows:
    """The read rows of an agent, counted so that a finding needs to look at its own messages alone."""

    def __init__(self) -> None:
        self.size, self.harmful = 0, 0
        self.by_target: Counter[str | None] = Counter()
        self.by_message: dict[Message, list[tuple[bool, bool]]] = {}  # whether it is to nobody, and harmful

    def add(self, row: Row) -> None:
        """Count a row."""
        scores = row.absolute_scores or {}
        harmful = max((scores.get(trait) or 0.0 for trait in NEGATIVE_TRAITS), default=0.0) >= HARMFUL
        self.size += 1
        self.harmful += harmful
        self.by_target[row.target] += 1
        self.by_message.setdefault((row.conversation, row.id), []).append((row.target is None, harmful))

    def features(self, finding: Finding, bound: set[Message]) -> dict[str, float]:
        """What the finding is by itself and beside the other messages of the agent."""
        inside = [flags for message in bound for flags in self.by_message.get(message, ())]
        passed = len(finding.gap_ids)
        return {
            "strength": finding.strength,
            "bound": math.log1p(len(bound)),
            "chances": math.log1p(self.by_target[finding.target]),
            "public": _share(sum(public for public, _ in inside), len(inside)),
            "habit": _share(self.harmful - sum(harmful for _, harmful in inside), self.size - len(inside)),
            "passed": passed / (passed + len(bound)),
        }


def _own_rows(agents: set[str], rows: Iterable[Row]) -> dict[str, _AgentRows]:
    own = {agent: _AgentRows() for agent in agents}
    for row in rows:
        if row.agent in own and row.state == "scored":
            own[row.agent].add(row)
    return own


class _Rivals:
    """Of each message the strongest findings of the two patterns that are strongest there: one of them is another's."""

    def __init__(self, findings: Sequence[Finding], bounds: Sequence[set[Message]]) -> None:
        self._two: dict[tuple[str, Message], list[tuple[float, str]]] = {}
        for finding, bound in zip(findings, bounds, strict=True):
            for message in bound:
                two = self._two.setdefault((finding.agent, message), [])
                two.append((finding.strength, finding.pattern))
                if len(two) > 1:
                    best = max(two)
                    second = max((each for each in two if each[1] != best[1]), default=None)
                    two[:] = [best] if second is None else [best, second]

    def strongest(self, finding: Finding, bound: set[Message]) -> float:
        """The strength of the strongest other pattern over some of the messages; 0 without one."""
        there = (each for message in bound for each in self._two[finding.agent, message])
        return max((strength for strength, pattern in there if pattern != finding.pattern), default=0.0)


class _Echoes:
    """Findings of each pattern by their messages."""

    def __init__(self, findings: Sequence[Finding], bounds: Sequence[set[Message]]) -> None:
        self._findings, self._bounds = findings, bounds
        self._at: dict[tuple[str, str, Message], list[int]] = {}
        for number, (finding, bound) in enumerate(zip(findings, bounds, strict=True)):
            for message in bound:
                self._at.setdefault((finding.agent, finding.pattern, message), []).append(number)

    def strongest(self, finding: Finding, bound: set[Message]) -> float:
        """The strength of the strongest finding by another rule over most of the messages; 0 without one."""
        near = {number for message in bound for number in self._at[finding.agent, finding.pattern, message]}
        others = [number for number in near if self._findings[number].rule_hash != finding.rule_hash]
        return max((self._findings[each].strength for each in others if _same(self._bounds[each], bound)), default=0.0)


def _same(one: set[Message], other: set[Message]) -> bool:
    """Whether two matches share most of their messages: a Jaccard index of at least one half."""
    return 2 * len(one & other) >= len(one | other)


def places(finding: Finding) -> set[Message]:
    """The messages of a match, by conversation and id."""
    return set(zip(finding.message_conversations, finding.message_ids, strict=True))


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
