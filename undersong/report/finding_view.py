"""The view of a finding: stage by stage, with quotes, scores and how certain it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from undersong.models import TRAITS, Finding, Message, TraitScores, Why
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.language.inputs import inputs_by_stage, stage_inputs
from undersong.report.aggregates import RowAggregates
from undersong.report.citations import Citations, Cite, Excerpt
from undersong.report.escape import own_name
from undersong.report.narrative import certainty_words
from undersong.report.opening import finding_point, finding_state
from undersong.report.opening_sentences import sentences
from undersong.report.order import group_of
from undersong.report.reposts import is_repost
from undersong.report.trait_chart import TraitChart, trait_chart


@dataclass(frozen=True)
class FindingStage:
    """One message of a finding and the part that it plays."""

    name: str
    cite: Cite
    excerpt: Excerpt | None
    scores: TraitScores
    why: tuple[str, ...] = ()
    again: tuple[Cite, ...] = ()  # of the same stage, nearly word for word


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
    traits: TraitChart | None = None

    @property
    def agent(self) -> str:
        """The agent by the name that it has inside its conversation."""
        return own_name(self.finding.agent, self.finding.conversations[0] if self.finding.conversations else "")

    @property
    def target(self) -> str:
        """The other side by its name inside the conversation, "" without one."""
        target = self.finding.target or ""
        return own_name(target, self.finding.conversations[0] if self.finding.conversations else "")

    @property
    def shown_stages(self) -> tuple[FindingStage, ...]:
        """The stages; messages of one stage that are nearly word for word the same as one, with links to the others."""
        shown: list[FindingStage] = []
        for stage in self.stages:
            same = next((place for place, other in enumerate(shown) if _is_repost(stage, other)), None)
            if same is None:
                shown.append(stage)
            else:
                shown[same] = replace(shown[same], again=(*shown[same].again, stage.cite))
        return tuple(shown)

    @property
    def sentence(self) -> str:
        """What the messages are consistent with."""
        return finding_point(self.finding).sentence

    @property
    def sure(self) -> str:
        """How sure it is, in words."""
        return finding_point(self.finding).sure

    @property
    def state(self) -> str:
        """``sure``, ``finding`` or ``lead``: the class of its card."""
        return finding_state(self.finding)

    @property
    def state_words(self) -> str:
        """The state in words."""
        return sentences().states[self.state]

    def stages_in(self, conversation: str) -> Iterator[tuple[FindingStage, Message]]:
        """The stages whose messages the case holds and that are of one conversation."""
        for stage in self.stages:
            if stage.cite.message and stage.cite.message.conversation == conversation:
                yield stage, stage.cite.message

    def stage_title(self, stage: FindingStage) -> str:
        """``Love bombing, PRAISE``: the title of the finding with the name of a stage."""
        return f"{self.finding.title}, {stage.name}".rstrip(", ")


def _is_repost(stage: FindingStage, other: FindingStage) -> bool:
    """Whether two messages of one stage say the same."""
    if stage.name != other.name or not stage.excerpt or not other.excerpt:
        return False
    return is_repost(stage.excerpt.text, other.excerpt.text)


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
    asked = {trait for traits in rule.asked.values() for trait in traits}
    chart = trait_chart(finding, sorted(asked), aggregates.courses.get(finding.agent, ()))
    return FindingView(
        finding, f"f-{finding.finding_id[:16]}", tuple(stages), gaps, certainty, rule, group_of(finding.pattern), chart
    )


@dataclass(frozen=True)
class RuleWords:
    """``asked`` has the traits that each DEFINE variable names, in the order of TRAITS; all "" where unknown."""

    description: str = ""
    innocent: tuple[str, ...] = ()
    asked: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def scores(self, stage: str, traits: Mapping[str, float | None] | None) -> TraitScores:
        """Of a message's scores those that its stage rests on; of a stage without conditions those of all stages."""
        if not traits:
            return {}
        named = stage_inputs(self.asked, stage)
        return {trait: traits[trait] for trait in TRAITS if trait in traits and trait in named}


def rule_words(rules: Iterable[PatternRule]) -> dict[str, RuleWords]:
    """By rule hash, so that a finding of a changed rule is never told in the words of another."""
    return {
        rule.hash: RuleWords(" ".join(rule.file.description.split()), rule.file.falsepositives, _traits(rule))
        for rule in rules
    }


def _traits(rule: PatternRule) -> dict[str, tuple[str, ...]]:
    return {stage: tuple(trait for trait in TRAITS if trait in names) for stage, names in inputs_by_stage(rule).items()}


def why_words(finding: Finding, message_id: str, conversation: str | None) -> tuple[str, ...]:
    """A line for each trait of a message that is shown, with the words that moved it, and for each signal.

    ``conversation`` None: whatever it is. Empty where the judge cannot tell.
    """
    own = (each for each in finding.why or () if each.message_id == message_id)
    return tuple(_line(each) for each in dict.fromkeys(own) if conversation in (None, each.conversation))


def _line(why: Why) -> str:
    return f"{why.name.replace('_', ' ')} {why.score:.2f}: {'; '.join(_parts(why))}"


def _parts(why: Why) -> Iterator[str]:
    if why.words:
        yield "moved most by " + ", ".join(f"“{words}” ({share:+.3f})" for words, share in why.words)
    if why.sentence is not None:
        yield f"shown most by “{' '.join(why.sentence.text.split())}”"
    if not why.words and why.sentence is None:
        yield "no word of it by itself"
