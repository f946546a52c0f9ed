"""What was counted of an agent, in words that can be checked by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from undersong.core.sanitize import one_line
from undersong.core.text import counted
from undersong.models import NEGATIVE_TRAITS, SignalBand
from undersong.patterns.lead_sums import MeasuredMessage, SourceSums
from undersong.patterns.lead_talk import TalkPart
from undersong.patterns.lead_weights import lead_weights

SHOWN_NAME = 60  # characters of a name in a reason
PARTS = frozenset({"user", "assistant", "human", "model", "bot"})  # names that are none of a person


def own_reason(part: TalkPart, others: SourceSums, bands: Mapping[str, SignalBand]) -> str:
    """What can be counted by hand, behind how the wording reads; an agent is it, people are they. "" of nothing."""
    counts = part.target is not None or part.home is not None
    aim = f"{_aim(part)} in {counted(len(part.messages), 'message')}" if counts else ""
    name = _last_name(part.messages[0].row.agent)
    return " ".join(filter(None, (_wording_reason(part.sums, name, aim), _counts(part, others, bands))))


def _counts(part: TalkPart, others: SourceSums, bands: Mapping[str, SignalBand]) -> str:
    own, whose = part.sums, _whose(part)
    messages = f"{whose} {counted(len(part.messages), 'message')}{_aim(part)}"
    (over, _), (phrases, _) = own.count("over"), own.count("phrases")
    if over and _more(own, others, "over"):
        return f"{over} of {messages} {_signals(over)} {_kinds(part.messages, bands)}{_beside(part, others, 'over')}."
    harm, other = own.mean("harm"), others.mean("harm")
    if harm is not None and harm > (0.5 if other is None else other):
        theirs = (
            f"those of {_last_name(part.target)}" if part.target else "those of the others in the same conversations"
        )
        beside = "" if other is None else f"; {theirs} than {other:.0%}"
        ranked = f"{messages[0].upper()}{messages[1:]} rank higher in negative traits"
        return f"{ranked} than {harm:.0%} of all messages{beside}."
    if phrases and _more(own, others, "phrases"):
        verb = "hold" if phrases > 1 else "holds"
        return f"{phrases} of {messages} {verb} phrases of harmful kinds{_beside(part, others, 'phrases')}."
    return ""


def _whose(part: TalkPart) -> str:
    return "its" if part.messages[0].row.role == "agent" else "their"


def _aim(part: TalkPart) -> str:
    """`` to mira_t``; ``""`` of all that somebody writes."""
    if part.target is not None:
        return f" to {_last_name(part.target)}"
    return f" to nobody by name in {one_line(part.home, SHOWN_NAME)}" if part.home is not None else ""


def _last_name(agent: str) -> str:
    return _with_article(one_line(agent.rpartition("/")[2], SHOWN_NAME))


def _with_article(name: str) -> str:
    """``the user`` of an export that names the sides of a conversation by their part in it, any other name as it is."""
    return f"the {name}" if name in PARTS else name


def side_of(messages: Sequence[MeasuredMessage], agent: str) -> str | None:
    """This agent's name if its messages weigh more in wording (without levels of it: rank higher in negative traits)
    than those of the other side; else None, since counting cannot tell."""
    sides = ([each for each in messages if (each.row.agent == agent) is is_own] for is_own in (True, False))
    own, other = map(SourceSums.of, sides)
    source = "harm" if own.mean("wording") is None or other.mean("wording") is None else "wording"
    levels = own.mean(source), other.mean(source)
    if levels[0] is None or levels[1] is None or levels[0] <= levels[1]:
        return None
    return _with_article(one_line(agent.removeprefix(f"{messages[0].row.conversation}/"), SHOWN_NAME))


def _wording_reason(own: SourceSums, name: str, aim: str = "") -> str:
    """How much of ordinary talk reads less manipulative, in words; "" under half of it."""
    weights, level = lead_weights(), own.mean("wording")
    below = [share for share, limit in weights.levels.items() if level is not None and level > limit]
    return weights.reads.format(name=name, aim=aim, share=100 * max(below)) if below else ""


def level_reason(messages: Sequence[MeasuredMessage], own: SourceSums, run: SourceSums) -> str:
    """Where scores are levels: the two negative traits that are highest, beside all others of the run; else ""."""
    level, other = own.mean("level"), run.mean("level")
    if level is None or other is None or level <= other:
        return ""
    scores = [message.row.absolute_scores or {} for message in messages]
    means = {
        trait: fmean(values)
        for trait in sorted(NEGATIVE_TRAITS)
        if (values := [one[trait] for one in scores if one.get(trait) is not None])
    }
    worst = sorted(means, key=lambda trait: (-means[trait], trait))[:2]
    names = " and ".join(f"{trait.replace('_', ' ')} ({means[trait]:.2f})" for trait in worst)
    beside = f"{level:.2f} on average in negative traits, the others of this run {other:.2f}"
    return f"{counted(len(messages), 'message')} score {beside}; most in {names}."


def pair_reason(
    messages: Sequence[MeasuredMessage], bands: Mapping[str, SignalBand], side: str | None, own: SourceSums
) -> str:
    """The same of a conversation of two, which is named in place of either side, and the side that more speaks for; ""
    of nothing."""
    if side and (reads := _wording_reason(own, side)):
        return reads
    counts = _pair_counts(messages, bands)
    return f"{counts} {_which(side)}" if counts else ""


def _which(side: str | None) -> str:
    weights = lead_weights()
    return weights.side.format(name=side) if side else weights.which


def _pair_counts(messages: Sequence[MeasuredMessage], bands: Mapping[str, SignalBand]) -> str:
    both = SourceSums.of(messages)
    (over, _), (phrases, _) = both.count("over"), both.count("phrases")
    size = counted(len(messages), "message")
    if over:
        return f"{over} of the {size} {_signals(over)} {_kinds(messages, bands)}."
    if phrases:
        return f"{phrases} of the {size} {'hold' if phrases > 1 else 'holds'} phrases of harmful kinds."
    harm = both.mean("harm")
    if harm is not None and harm > 0.5:
        return f"The {size} rank higher in negative traits than {harm:.0%} of all messages."
    return ""


def _signals(over: int) -> str:
    """What messages are counted by that are over the band of any signal, of which the most usual are named."""
    return f"{'show' if over > 1 else 'shows'} a signal of harm, most of all"


def _more(own: SourceSums, others: SourceSums, source: str) -> bool:
    return (own.mean(source) or 0.0) > (others.mean(source) or 0.0)


def _beside(part: TalkPart, others: SourceSums, source: str) -> str:
    count, of = others.count(source)
    if not of:
        return ""
    elsewhere = f"others in {_whose(part)} conversations" if part.home is None else "others in it"
    by = _last_name(part.target) if part.target else elsewhere
    return f"; of the {of:,} by {by}, {count:,} {'does' if count == 1 else 'do'}"


def _kinds(messages: Sequence[MeasuredMessage], bands: Mapping[str, SignalBand]) -> str:
    """``pressure``, or the two kinds that are above their band in more messages than is usual in this run."""
    excess: dict[str, float] = {}
    for message in messages:
        for name in message.over:
            usual = bands[name].over / max(bands[name].messages, 1) * len(messages)
            excess[name] = excess.get(name, -usual) + 1
    names = sorted(sorted(excess, key=lambda name: (-excess[name], name))[:2])
    return " or ".join(lead_weights().signals[name] for name in names)
