"""What rows changed: findings that are new or other than they were, and those that no longer hold, with the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import NamedTuple

import msgspec

from undersong.models import Finding, RetractedFinding
from undersong.patterns.findings import order

LATE = "messages that came late, or were read otherwise since, lie within its sequence"
REFUSED = "a later message belongs to its sequence, and of the whole of it the rule no longer holds"
Same = Callable[[Finding, Finding], bool]  # whether a finding says what it said before


class Changes(NamedTuple):
    """What rows did to findings.

    A finding in ``findings`` takes the place of an earlier one with its id, and of the one that it ``replaces``.
    """

    findings: tuple[Finding, ...] = ()
    retracted: tuple[RetractedFinding, ...] = ()

    @property
    def removed(self) -> frozenset[str]:
        """The ids of findings that are no longer there: those retracted, and those replaced."""
        replaced = {finding.replaces for finding in self.findings if finding.replaces is not None}
        gone = {each.finding_id for each in self.retracted} | replaced
        return frozenset(gone - {finding.finding_id for finding in self.findings})


def changes_between(
    before: Mapping[str, Finding], now: Mapping[str, Finding], same: Same, reason: Callable[[Finding], str]
) -> Changes:
    """What makes the findings ``before`` those of ``now``, both by id; ``reason`` is asked of one that is retracted.

    One that is gone is replaced by a finding of the same rule towards the same target over some of the same messages,
    where there is one that is new or changed and replaces no other.
    """
    changed = {name: _linked(before, each, now) for name, each in now.items() if not _stays(before, each, same)}
    retracted = []
    for name, gone in before.items():
        if name in now:
            continue
        heir = next((each for each in changed.values() if _takes_over(each, gone, before)), None)
        if heir is None:
            retracted.append(RetractedFinding(finding_id=name, reason=reason(gone)))
        else:
            changed[heir.finding_id] = msgspec.structs.replace(heir, replaces=name)
    return Changes(ordered(changed.values()), tuple(sorted(retracted, key=attrgetter("finding_id"))))


def ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """By agent, target, time and rule."""
    return tuple(sorted(findings, key=lambda finding: (order(finding), finding.conversations, finding.message_ids)))


def joined(parts: Iterable[Changes]) -> Changes:
    """The changes of several timelines as one; a finding may go from one to another."""
    parts = list(parts)
    findings = ordered(finding for part in parts for finding in part.findings)
    there = {finding.finding_id for finding in findings}
    retracted = (each for part in parts for each in part.retracted if each.finding_id not in there)
    return Changes(findings, tuple(sorted(retracted, key=attrgetter("finding_id"))))


def _stays(before: Mapping[str, Finding], finding: Finding, same: Same) -> bool:
    earlier = before.get(finding.finding_id)
    return earlier is not None and same(earlier, finding)


def _linked(before: Mapping[str, Finding], finding: Finding, now: Mapping[str, Finding]) -> Finding:
    """The finding with what it replaced when it was reported first, unless that is back."""
    earlier = before.get(finding.finding_id)
    replaced = earlier.replaces if earlier is not None and earlier.replaces not in now else None
    return msgspec.structs.replace(finding, replaces=replaced)


def _takes_over(heir: Finding, gone: Finding, before: Mapping[str, Finding]) -> bool:
    """Whether a finding is what one that is gone has become."""
    is_free = heir.replaces is None or heir.replaces not in before
    one_rule = (heir.rule_hash, heir.agent, heir.target) == (gone.rule_hash, gone.agent, gone.target)
    return is_free and one_rule and not _messages(heir).isdisjoint(_messages(gone))


def _messages(finding: Finding) -> set[tuple[str, str]]:
    return set(zip(finding.message_conversations, finding.message_ids, strict=True))
