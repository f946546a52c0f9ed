"""One agent's timeline as the rules with one ``where`` see it: its windows, and its sequences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import deepcopy
from typing import NamedTuple

from undersong.models import Row
from undersong.patterns.incremental.lazy_columns import Seen
from undersong.patterns.incremental.reader import LiveRow
from undersong.patterns.incremental.row_plan import RowPlan, WindowSlots
from undersong.patterns.incremental.sequence_state import EmittedMatch, LiveSequenceKey, SequenceState, TargetWindows
from undersong.patterns.incremental.windows import LiveWindow, live_window, moments
from undersong.patterns.language.fields import Context
from undersong.patterns.language.logic import Evaluate, Value
from undersong.patterns.language.windows import EMPTY, RunningMoments
from undersong.patterns.reference.columns import gathered


class PartitionScheme(NamedTuple):
    """The rules that part a timeline in the same way; ``eager`` those that must see every row.

    ``first`` names for each the variables with which a match may begin (0: any row will do).
    """

    by_target: bool
    by_conversation: bool
    plans: list[RowPlan]
    eager: list[RowPlan]
    first: list[tuple[int, int, RowPlan]]

    def opening(self, masks: list[int]) -> dict[int, RowPlan]:
        """The rules of which a row with these masks may begin a match."""
        return {index: plan for index, bits, plan in self.first if not bits or masks[index] & bits}


class Scope:
    """The rules with one ``where``, the same for every agent: their shapes, and the windows that they share."""

    def __init__(self, where: Evaluate | None) -> None:
        self.where = where
        self.slots = WindowSlots()
        self.schemes: list[PartitionScheme] = []

    def add(self, plan: RowPlan) -> None:
        """One more rule."""
        keys = plan.rule.file.partition_by
        by_target, by_conversation = "target" in keys, "conversation" in keys
        shape = next((each for each in self.schemes if each[:2] == (by_target, by_conversation)), None)
        if shape is None:
            shape = PartitionScheme(by_target, by_conversation, [], [], [])
            self.schemes.append(shape)
        shape.plans.append(plan)
        if plan.opening or plan.always_opens:
            shape.first.append((plan.index, 0 if plan.always_opens else plan.opening, plan))
        if plan.eager:
            shape.eager.append(plan)

    def takes(self, row: Row) -> bool:
        """Whether a row is in the sequences; an unread one is unless it surely fails ``where``."""
        if self.where is None:
            return True
        holds = self.where(Context(row, {}))
        return holds is True or (holds is None and row.state != "scored")


class Family:
    """The sequences that share public rows.

    ``alone`` has nothing but these (or, where a rule does not part by target, all rows); ``stem`` has the same and
    waits for a target that nobody has addressed yet, so that it finds nothing by itself. ``waiting`` are stems of
    targets that were addressed in other conversations: what goes to others is not the same for them.
    """

    __slots__ = ("alone", "place", "stem", "targets", "waiting")

    def __init__(self, place: LiveSequenceKey) -> None:
        self.place = place
        self.alone: SequenceState | None = None
        self.stem: SequenceState | None = None
        self.targets: dict[str, SequenceState] = {}
        self.waiting: dict[str, SequenceState] = {}

    def tracks(self, target: str | None, elsewhere: Iterable[str], *, by_target: bool) -> Iterator[SequenceState]:
        """The sequences that a row belongs to; new ones begin where it is the first of them.

        ``elsewhere`` are the targets that were addressed in any conversation, where that makes a difference.
        """
        if by_target and target is not None:
            track = self.targets.get(target)
            if track is None:
                place, stem = self.place._replace(target=target), self.waiting.pop(target, self.stem)
                track = self.targets[target] = stem.copy(place) if stem else SequenceState(place)
            yield track
            return
        self.alone = self.alone or SequenceState(self.place)
        yield self.alone
        if by_target:
            self.stem = self.stem or SequenceState(self.place._replace(stem=True))
            for other in elsewhere:
                if other not in self.targets and other not in self.waiting:
                    self.waiting[other] = self.stem.copy(self.place._replace(target=other, stem=True))
            yield self.stem
            yield from self.waiting.values()
            yield from self.targets.values()

    def copy(self) -> Family:
        """The same state, to go on by itself."""
        other = Family(self.place)
        other.alone, other.stem = self.alone and self.alone.copy(), self.stem and self.stem.copy()
        other.targets = {target: track.copy() for target, track in self.targets.items()}
        other.waiting = {target: track.copy() for target, track in self.waiting.items()}
        return other

    def sequences(self) -> Iterator[SequenceState]:
        """Every sequence but the stems, which are nobody's."""
        if self.alone:
            yield self.alone
        yield from self.targets.values()


class TimelineState:
    """The live state of one timeline under one ``where``."""

    def __init__(self, scope: Scope, agent: str, untimed: str | None) -> None:
        self.scope, self.agent, self.untimed = scope, agent, untimed
        self.windows: list[LiveWindow] = [live_window(window) for window in scope.slots.agent]
        self.others = (EMPTY,) * len(scope.slots.others)
        self.aims: dict[str | None, TargetWindows] = {
            None: TargetWindows((), [live_window(window) for window in scope.slots.apart])
        }
        self.families: dict[tuple[int, str | None], Family] = {}

    def take(self, row: Row, time: int | None, masks: list[int], steps: int) -> list[EmittedMatch]:
        """The next row of the timeline that ``where`` lets through."""
        if row.target is not None and row.target not in self.aims:
            self.aims[row.target] = TargetWindows(self._no_tallies(), deepcopy(self.aims[None].windows))
        if row.state != "scored":
            return [each for _, track in self._tracks(row) for each in track.hole(row.id)]
        agent = tuple([window.at(time) for window in self.windows])
        reading = LiveRow(Seen(row, time, agent, self.others), masks, steps)
        emitted: list[EmittedMatch] = []
        opening: dict[int, dict[int, RowPlan]] = {}
        for number, track in self._tracks(row):
            shape = self.scope.schemes[number]
            if number not in opening:
                opening[number] = shape.opening(masks)
            emitted += track.take(reading, opening[number], shape.eager, self.aims[track.place.target])
        self._gather(row, time)
        return emitted

    def copy(self) -> TimelineState:
        """The same state, to go on by itself."""
        other = TimelineState(self.scope, self.agent, self.untimed)
        other.windows, other.others = deepcopy(self.windows), self.others
        other.aims = {target: aim._replace(windows=deepcopy(aim.windows)) for target, aim in self.aims.items()}
        other.families = {key: family.copy() for key, family in self.families.items()}
        return other

    def end(self) -> list[EmittedMatch]:
        """No row follows."""
        return [each for family in self.families.values() for track in family.sequences() for each in track.end()]

    def sequences(self, plan: RowPlan) -> Iterator[SequenceState]:
        """The sequences of a rule that have a read row; none where the rule is not of this view."""
        for (number, _), family in self.families.items():
            if plan in self.scope.schemes[number].plans:
                yield from (track for track in family.sequences() if track.count)

    def _no_tallies(self) -> tuple[RunningMoments, ...]:
        return (EMPTY,) * len(self.scope.slots.others)

    def _tracks(self, row: Row) -> Iterator[tuple[int, SequenceState]]:
        slots = self.scope.slots
        for number, shape in enumerate(self.scope.schemes):
            parted = shape.by_conversation and self.untimed is None
            conversation = row.conversation if parted else self.untimed
            apart = self.aims if parted and (slots.others or slots.apart) else ()
            elsewhere = (target for target in apart if target is not None)
            family = self.families.get((number, conversation))
            if family is None:
                family = Family(LiveSequenceKey(self.agent, self.untimed, conversation, None))
                self.families[number, conversation] = family
            for track in family.tracks(row.target, elsewhere, by_target=shape.by_target):
                yield number, track

    def _gather(self, row: Row, time: int | None) -> None:
        """The row becomes a past row of the windows over the agent and over others."""
        context = Context(row, {})
        slots = self.scope.slots
        for read, window in zip(slots.reads, self.windows, strict=True):
            value = read(context)
            if value is not None:
                window.take(time, value)
        if row.target is not None and (slots.others or slots.apart):
            self._aim(row.target, time, context)

    def _aim(self, target: str, time: int | None, context: Context) -> None:
        aim, slots = self.aims[target], self.scope.slots
        values = [(gathered(column, context), moments(window)) for window, column in slots.others.items()]
        self.others = _added(self.others, values)
        self.aims[target] = aim._replace(tallies=_added(aim.tallies, values))
        for place, column in enumerate(slots.apart.values()):
            value = gathered(column, context)
            for other in (known for name, known in self.aims.items() if name != target):
                if value is not None:
                    other.windows[place].take(time, value)


def _added(tallies: tuple[RunningMoments, ...], values: Iterable[tuple[Value, bool]]) -> tuple[RunningMoments, ...]:
    return tuple(
        tally if value is None else tally.plus(float(value), moments=keep)
        for tally, (value, keep) in zip(tallies, values, strict=True)
    )
