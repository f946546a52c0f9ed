"""A finding as its readers meet it: stage by stage, with quotes, scores and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass

from undersong.models import Finding
from undersong.report.cited import Citations, Cite, Excerpt
from undersong.report.groups import group_of
from undersong.report.rule_words import RuleWords
from undersong.report.tally import RowAggregates
from undersong.report.text import own_name
from undersong.report.why import why_words
from undersong.wording import certainty_words


@dataclass(frozen=True)
class FindingStage:
    """One message of a finding and the part that it plays."""

    name: str
    cite: Cite
    excerpt: Excerpt | None
    scores: dict[str, float]
    why: tuple[str, ...] = ()


@dataclass(frozen=True)
class FindingView:
    """One finding told stage by stage."""

    finding: Finding
    anchor: str
    stages: tuple[FindingStage, ...]
    gaps: tuple[Cite, ...]
    certainty: str
    rule: RuleWords
    group: str = ""

    @property
    def agent(self) -> str:
        """The agent by the name that it has inside its conversation."""
        return own_name(self.finding.agent, self.finding.conversations[0] if self.finding.conversations else "")


def finding_view(finding: Finding, citations: Citations, aggregates: RowAggregates, rule: RuleWords) -> FindingView:
    stages = []
    named = finding.stages or tuple(("", message_id) for message_id in finding.message_ids)
    homes = finding.message_conversations or (None,) * len(named)
    for (name, message_id), home in zip(named, homes, strict=True):
        cite = citations.cite(message_id, finding.conversations if home is None else (home,))
        places = (cite.message.conversation,) if cite.message else finding.conversations
        traits = next(
            (aggregates.scores[at, message_id] for at in places if (at, message_id) in aggregates.scores), None
        )
        why = why_words(finding, message_id, home)
        stages.append(FindingStage(name, cite, citations.excerpt(cite, finding.quotes), rule.scores(name, traits), why))
    gaps = tuple(citations.cite(message_id, finding.conversations) for message_id in finding.gap_ids)
    certainty = "; ".join(certainty_words(finding))
    return FindingView(
        finding, f"f-{finding.finding_id[:16]}", tuple(stages), gaps, certainty, rule, group_of(finding.pattern)
    )
