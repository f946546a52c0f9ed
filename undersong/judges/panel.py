"""A panel: two judges read every question, and their answers are put together; ``--judge a,b``."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from operator import add
from typing import Any, TypeVar

import msgspec

from undersong.errors import JudgeError, UsageError
from undersong.judges.limits import RunLimits
from undersong.judges.llm.budget import Budget
from undersong.judges.measurement import scores_for
from undersong.judges.protocol import (
    Judge,
    JudgeAbortedError,
    PatternShape,
    Question,
    Segment,
    SequenceWindow,
    asked,
    open_judge,
)
from undersong.models import (
    TRAITS,
    Confirmed,
    Evaluation,
    Indicator,
    PanelAnswer,
    Reading,
    SequenceReading,
    ShapeReading,
    State,
    TraitScores,
    Usage,
)
from undersong.models.sequence import shape_outcome

TOGETHER = 64  # questions that one judge is asked before the other, so that a budget ends for both at the same place
WORST: tuple[State, ...] = ("failed", "refused", "unread", "scored")  # the first of the judges' states stands
T = TypeVar("T")
R = TypeVar("R")


def open_panel(names: Sequence[str], limits: RunLimits) -> Panel:
    """The panel of two judges with one budget; raises UsageError for others than two different paid ones."""
    where = f"--judge {','.join(names)}"
    if len(names) != 2 or names[0] == names[1]:
        raise UsageError("a panel has two different judges", where=where, remedy="name two, with a comma between")
    limits = Budget.shared(limits)
    judges = [open_judge(name, limits) for name in names]
    free = next((each for each in judges if each.reads_everything), None)
    if free is not None:
        raise UsageError(f"'{free.name}' reads for free and sits in no panel", where=where, remedy="name two models")
    return Panel(judges, limits)


class Panel(Judge):
    """Two judges that are asked the same. A score is the mean of those that apply.

    ``gives`` is what either gives. The confidence of an indicator or mechanism is the mean over the judges that scored
    the message, 0 for one that did not see it: what only one saw has half its confidence. A message is scored where at
    least one judge scored it; ``reason`` then names the other.
    """

    reads_everything, calibrated = False, False

    def __init__(self, judges: Sequence[Judge], limits: RunLimits) -> None:
        self.judges = tuple(judges)
        self.name = ",".join(each.name for each in judges)
        self.hash = hashlib.sha256(msgspec.json.encode(["panel", [each.hash for each in judges]])).hexdigest()
        self.gives = frozenset[str]().union(*(each.gives for each in judges))
        self.hashes = {name: digest for each in judges for name, digest in each.hashes.items()}
        self.sequence_hashes = {name: digest for each in judges for name, digest in each.sequence_hashes.items()}
        self.confirms = all(each.confirms for each in judges)
        self.reads_sequences = all(each.reads_sequences for each in judges)
        self._batch = limits.batch

    @property
    def learnt_from(self) -> frozenset[str] | None:
        """See Judge; None where nobody knows it of one of them."""
        hashes = [each.learnt_from for each in self.judges]
        return None if None in hashes else frozenset[str]().union(*(each or () for each in hashes))

    def evaluate(self, questions: Sequence[Question]) -> list[Evaluation]:
        """See Judge. Raises JudgeAbortedError where one of them fails as a whole."""
        return self._ask_both(questions, lambda judge, part: judge.evaluate(part), self._evaluation)

    def confirm(self, segments: Sequence[Segment]) -> list[Confirmed]:
        """See Judge: a yes where both say yes."""
        return self._ask_both(segments, lambda judge, part: judge.confirm(part), self._confirmation)

    def read_sequences(
        self, windows: Sequence[SequenceWindow], shapes: Sequence[PatternShape]
    ) -> list[SequenceReading]:
        """See Judge: the shapes that both name."""
        return self._ask_both(windows, lambda judge, part: judge.read_sequences(part, shapes), self._sequence)

    def _ask_both(
        self,
        items: Sequence[T],
        ask: Callable[[Judge, Sequence[T]], Sequence[R | None]],
        combined: Callable[[Sequence[R]], R],
    ) -> list[R]:
        """One answer per item of what both said; where one fails as a whole, JudgeAbortedError has those before."""
        together = len(items) if self._batch else TOGETHER
        answers: list[R | None] = []
        for start in range(0, len(items), max(together, 1)):
            part = items[start : start + together]
            both: list[list[R]] = [[] for _ in part]
            failure: JudgeError | None = None
            for number, judge in enumerate(self.judges):
                places = [place for place, before in enumerate(both) if len(before) == number]
                new, error = asked(judge, [part[place] for place in places], ask)
                failure = failure or error
                for place, answer in zip(places, new, strict=True):
                    both[place] += [] if answer is None else [answer]
            answers += [combined(each) if len(each) == len(self.judges) else None for each in both]
            if failure is not None:
                raise JudgeAbortedError(failure, [*answers, *[None] * (len(items) - len(answers))])
        return [each for each in answers if each is not None]

    def _evaluation(self, both: Sequence[Evaluation]) -> Evaluation:
        scored = [each for each in both if each.state == "scored"]
        reasons = [f"{each.judge}: {each.reason or each.state}" for each in both if each.state != "scored"]
        costs = [each.tokens for each in both if each.tokens is not None]
        return msgspec.structs.replace(
            (scored or both)[0],
            judge=",".join(each.judge for each in both),
            judge_hash=self.hash,
            state="scored" if scored else _worst(both),
            reason="; ".join(reasons) or None,
            traits=_mean_traits([each.traits or {} for each in scored]) if scored else None,
            indicators=_either([each.indicators for each in scored if each.indicators is not None]),
            signals=_signals(both, scored),
            mechanisms=_mechanism_scores(scored),
            tokens=sum(costs) if costs else None,
            cost=sum(each.cost for each in both),
            reading=_reading(both, scored),
        )

    def _confirmation(self, both: Sequence[Confirmed]) -> Confirmed:
        yes = [each.yes is True for each in both]
        open_ones = [each for each in both if each.state != "scored"]
        why = "; ".join(f"{each.judge}: {each.reason or each.state}" for each in open_ones)
        if not open_ones and any(yes) and not all(yes):
            why = f"the two judges disagree: {_named(both, yes)} said yes"
        agreed = not open_ones and (all(yes) or not any(yes))
        return msgspec.structs.replace(
            both[0],
            judge=",".join(each.judge for each in both),
            judge_hash=self.hash,
            state=_worst(both),
            yes=None if open_ones else all(yes),
            quotes=both[0].quotes if all(yes) and not open_ones else (),
            confidence=min((each.confidence or 0.0 for each in both), default=None) if agreed else None,
            rejected=_summed(each.rejected for each in both),
            reason=why or None,
            usage=_total(each.usage for each in both),
            raw="\n".join(each.raw for each in both if each.raw is not None) or None,
        )

    def _sequence(self, both: Sequence[SequenceReading]) -> SequenceReading:
        reasons = [f"{each.judge}: {each.reason or each.state}" for each in both if each.state != "scored"]
        shapes: tuple[ShapeReading, ...] = tuple(shape for each in both for shape in each.shapes)
        if not reasons:
            shapes, reasons = _common_shapes(*both)
        return msgspec.structs.replace(
            both[0],
            id=hashlib.sha256("\0".join(each.id for each in both).encode()).hexdigest(),
            judge=",".join(each.judge for each in both),
            state="scored" if any(each.state == "scored" for each in both) else _worst(both),
            shapes=shapes,
            reason="; ".join(reasons) or None,
            rejected=_summed(each.rejected for each in both),
            usage=_total(each.usage for each in both),
            raw="\n".join(each.raw for each in both if each.raw is not None) or None,
        ).with_outcome()


def _worst(both: Iterable[Any]) -> State:
    return min((each.state for each in both), key=WORST.index)


def _mean_traits(scored: Sequence[TraitScores]) -> TraitScores:
    """Per trait the mean of those that apply, None where none does."""
    names = [trait for trait in TRAITS if any(trait in traits for traits in scored)]
    values = {trait: scores_for(scored, trait) for trait in names}
    return {trait: round(sum(each) / len(each), 4) if each else None for trait, each in values.items()}


def _either(scored: Sequence[Sequence[Indicator]]) -> tuple[Indicator, ...] | None:
    """What either saw, each id once with the first quote; None where nobody looked."""
    if not scored:
        return None
    seen: dict[str, list[Indicator]] = {}
    for indicator in (indicator for each in scored for indicator in each):
        seen.setdefault(indicator.id, []).append(indicator)
    return tuple(_seen(each, len(scored)) for each in seen.values())


def _seen(indicators: Sequence[Indicator], judges: int) -> Indicator:
    confidences = [each.confidence for each in indicators if each.confidence is not None]
    confidence = min(round(sum(confidences) / judges, 4), 1.0) if confidences else None
    return msgspec.structs.replace(indicators[0], confidence=confidence)


def _mechanism_scores(scored: Sequence[Evaluation]) -> dict[str, float] | None:
    listed = [each.mechanisms for each in scored if each.mechanisms is not None]
    names = dict.fromkeys(name for each in listed for name in each)
    return {name: round(sum(each.get(name, 0.0) for each in listed) / len(listed), 4) for name in names} or (
        {} if listed else None
    )


def _signals(both: Sequence[Evaluation], scored: Sequence[Evaluation]) -> dict[str, float]:
    """The mean over the judges that scored, 0 for one without the signal; of the others what none of these has."""
    names = dict.fromkeys(name for each in scored for name in each.signals)
    means = {name: round(sum(each.signals.get(name, 0.0) for each in scored) / len(scored), 4) for name in names}
    others = [each.signals for each in both if each.state != "scored"]
    return reduce(lambda first, second: second | first, others, means)


def _reading(both: Sequence[Evaluation], scored: Sequence[Evaluation]) -> Reading:
    """What the readings of those that scored hold, and what all of them took; ``raw`` stands with each answer."""
    readings = [each.reading or Reading() for each in both]
    own = [each.reading or Reading() for each in scored]
    stances = [each.stance for each in own]
    agreed = bool(stances) and len({each.position if each else None for each in stances}) == 1
    reasons: dict[str, list[str]] = {}
    for trait, words in (item for each in own for item in each.reasons.items()):
        reasons.setdefault(trait, []).append(words)
    return Reading(
        mechanisms=_either([each.mechanisms for each in own]) or (),
        acts=_either([each.acts for each in own]) or (),
        stance=stances[0] if agreed else None,
        rejected=_summed(each.rejected for each in readings),
        cut=max(each.cut for each in readings),
        usage=_total(each.usage for each in readings),
        shortened=max(each.shortened for each in readings),
        depth=next((each.depth for each in readings if each.depth is not None), None),
        reasons={trait: " / ".join(dict.fromkeys(words)) for trait, words in reasons.items()},
        panel=tuple(map(_answer, both)),
    )


def _answer(evaluation: Evaluation) -> PanelAnswer:
    reading = evaluation.reading or Reading()
    return PanelAnswer(
        judge=evaluation.judge,
        state=evaluation.state,
        traits=evaluation.traits,
        reason=evaluation.reason,
        raw=reading.raw,
        model=reading.model,
    )


def _common_shapes(one: SequenceReading, other: SequenceReading) -> tuple[tuple[ShapeReading, ...], list[str]]:
    """The shapes that both name with the lower certainty, and a note of those that one names alone."""
    theirs = {shape.pattern: shape for shape in other.shapes}
    own = {shape.pattern for shape in one.shapes}
    shapes = tuple(_agreed(shape, theirs[shape.pattern]) for shape in one.shapes if shape.pattern in theirs)
    alone = [(one.judge, name) for name in sorted(own - theirs.keys())]
    alone += [(other.judge, name) for name in sorted(theirs.keys() - own)]
    return shapes, [f"the two judges disagree: {judge} alone named {name}" for judge, name in alone]


def _agreed(one: ShapeReading, other: ShapeReading) -> ShapeReading:
    """One shape that both name; it failed where the answer of either did."""
    certainty, in_order = min(one.certainty, other.certainty), one.in_order and other.in_order
    reason = one.reason or other.reason
    return msgspec.structs.replace(
        one,
        certainty=certainty,
        in_order=in_order,
        outcome=shape_outcome(certainty, in_order=in_order, reason=reason),
        reason=reason,
    )


def _named(both: Sequence[Confirmed], yes: Sequence[bool]) -> str:
    return " and ".join(each.judge for each, said_yes in zip(both, yes, strict=True) if said_yes)


def _summed(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    return dict(sum((Counter(each) for each in counts), Counter[str]()))


def _total(usages: Iterable[Usage]) -> Usage:
    return reduce(add, usages, Usage())
