"""What an export of paid answers holds, and what it leaves out, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from undersong.core.text import counted
from undersong.judges.limits import LedgerEntry
from undersong.judges.llm.prompt_fingerprint import questions_hash
from undersong.judges.llm.sequence_reader import DEPTH, sequence_hash
from undersong.patterns.catalog import load_rules
from undersong.pipeline.sequence_pairs import compared_shapes
from undersong.pipeline.sequence_windows import shapes_of

ABOUT = {DEPTH: "whole sequence", "confirm": "flagged place"}


class AnswerCounts:
    """Counts answers by what they are about, and whether this version asks what they answer."""

    def __init__(self, judges: Sequence[str]) -> None:
        self.judges = tuple(judges)
        self._about, self._foreign = Counter[str](), Counter[str]()

    def counting(self, answers: Iterable[LedgerEntry]) -> Iterator[LedgerEntry]:
        """The same answers, each counted as it passes."""
        shapes = shapes_of(load_rules())
        current = {DEPTH: {sequence_hash(shapes), sequence_hash(compared_shapes(shapes))}}
        for answer in answers:
            self._about[ABOUT.get(answer.depth, "message")] += 1
            if answer.prompt_hash not in current.get(answer.depth, {questions_hash()}):
                self._foreign[answer.depth if answer.depth == DEPTH else ""] += 1
            yield answer

    def sentences(self, judge: str, stored: Mapping[str, int]) -> Iterator[str]:
        """What was written, what of it this version does not ask by itself, and what was left out and why."""
        parts = ", ".join(counted(count, f"about a {what}", f"about {what}s") for what, count in self._about.items())
        total = self._about.total()
        yield f"{counted(total, 'answer')} of {judge}" + (f": {parts}" if parts else "")
        if count := self._foreign[DEPTH]:
            yield (
                f"  {count:,} about whole sequences were asked under other shapes than those that ship: replay them"
                " with the same --rules, in the version that asked"
            )
        if count := self._foreign[""]:
            yield f"  {count:,} were asked under prompts of another version: this one asks nothing that they answer"
        others = {name: count for name, count in stored.items() if name not in self.judges}
        if others:
            names = "; ".join(f"{name} ({count:,})" for name, count in others.items())
            yield f"  left out: {counted(sum(others.values()), 'answer')} of other judges: {names}"
