"""What a first screen says of turns: one thing to look at for each label of a conversation, and how often it stands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from undersong.core.sanitize import one_line
from undersong.core.text import turn_at
from undersong.models import Case, Moment, SessionVerdict
from undersong.models.verdict import AGENT_ORDERS, IN_STORY, ORDERS, REQUEST, SPREADS, TALK_OF_ORDERS
from undersong.report.opening_phrases import sentence_start
from undersong.report.opening_sentences import sentences

LABELS = ("candidate", "conduct", "distress")  # kinds of moments that rest on wording alone
QUIET = "Answers a question that leads"  # nobody objects: most answers agree, and few of them give anything up
OF_WORK = ("false_promise", "liability_shifting", "semantic_camouflage")  # they say nothing about talk
ELSEWHERE = (
    ORDERS,
    AGENT_ORDERS,
    SPREADS,
    TALK_OF_ORDERS,
    REQUEST,
    *OF_WORK,
)  # labels that are no turns of talk, or have a sentence of their own
MILD = {"sycophantic_praise": 0.5, "escalation": 0.5}  # labels that weigh less, as ordinary talk has them, too
CERTAIN = 1.0  # the strength of what exact words show


def labelled(session: SessionVerdict) -> Iterator[tuple[Moment, int]]:
    """The strongest turn of each label of a companion with the number of others, the heaviest label first."""
    if session.profile != "companion":
        return
    shown = set[int]()
    for group in sorted(_groups(session).values(), key=lambda group: (-_weight(group), group[0].position)):
        fresh = [item for item in group if item.position not in shown]
        if fresh:
            strongest = max(fresh, key=lambda item: (_strength(item), -item.position))
            shown.add(strongest.position)
            yield strongest, len({item.position for item in group}) - 1


def heaviest_first(case: Case) -> list[SessionVerdict]:
    """Sessions by how many turns rest on wording, points taken among them, and how strong those are."""
    return sorted(case.sessions, key=lambda session: (-session_weight(session), session.conversation))


def session_weight(session: SessionVerdict) -> float:
    """The summed strengths of the labelled turns and points of a session, 0 or more."""
    wording = sum(each.mechanism != "false_promise" for each in session.deductions)
    return round(wording * CERTAIN + sum(map(_weight, _groups(session).values())), 6)


def turn_sentence(item: Moment, who: str, others: int, where: str) -> str:
    """``The assistant seems to speak of itself as one that is conscious or feels (turn 3 and 4 more, “Night”).``"""
    more = f" and {others:,} more" if others else ""
    form = sentences().turns.get(item.code)
    sentence = form.format(who=who) if form else _explained(item, who)
    story = f", {IN_STORY[0].lower()}{IN_STORY[1:-1]}" if item.explanation.endswith(IN_STORY) else ""
    return f"{sentence_start(sentence)} ({turn_at(item.position)}{more}{where}){story}."


def _explained(item: Moment, who: str) -> str:
    """The explanation of a label as what somebody seems to do."""
    why = one_line(item.explanation.split(". ")[0].removesuffix("."), 200)
    return f"{who}: {why[:1].lower()}{why[1:]}, or so it seems"


def _groups(session: SessionVerdict) -> dict[str, list[Moment]]:
    groups: dict[str, list[Moment]] = {}
    for item in session.moments:
        if item.kind in LABELS and item.quotes and item.title != QUIET and item.code not in ELSEWHERE:
            groups.setdefault(item.code, []).append(item)
    return groups


def _weight(group: Sequence[Moment]) -> float:
    return sum(map(_strength, group))


def _strength(item: Moment) -> float:
    return (CERTAIN if item.strength is None else item.strength) * MILD.get(item.code, 1.0)
