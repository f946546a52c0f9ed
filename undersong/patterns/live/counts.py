"""What the numbers of rows alone say of a match: most matches that ``having`` refuses fail there, at no cost."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from undersong.models import Row
from undersong.patterns.expressions import Call, Field, Member, Node, Variable, parse, walk
from undersong.patterns.fields import Context
from undersong.patterns.logic import Evaluate
from undersong.patterns.measures import MATCH, MatchRows, compile_measure, measure
from undersong.patterns.rulefile import RuleFile, written
from undersong.patterns.sequences import ANY

_SOME_ROW = Context(Row(id=""), {})


class CountConditions:
    """The conditions of ``having`` (with the measures that they name) that ask for numbers of rows and nothing else."""

    def __init__(self, file: RuleFile, names: Sequence[str]) -> None:
        self.names = names
        self.measures: dict[str, Evaluate] = {}
        for name, text in file.measures.items():
            tree = parse(written(text))
            if _only_counts(tree, self.measures):
                self.measures[name] = compile_measure(tree)
        trees = [parse(written(text)) for text in file.having]
        self.having = [compile_measure(tree) for tree in trees if _only_counts(tree, self.measures)]

    def refuse(self, bindings: Sequence[int]) -> bool:
        """Whether a match that binds its rows so (-1: passed over) surely fails ``having``."""
        if not self.having:
            return False
        passed = bindings.count(-1)
        sizes = {name: bindings.count(index) for index, name in enumerate(self.names)}
        sizes |= {ANY: passed, MATCH: len(bindings) - passed}
        rows = {name: [_SOME_ROW] * size for name, size in sizes.items()}
        measures = measure(rows, self.measures)
        return not all(holds(MatchRows(rows, measures)) is True for holds in self.having)


def _only_counts(tree: Node, measures: Collection[str]) -> bool:
    for part in walk(tree):
        if isinstance(part, Member) or (isinstance(part, Field) and part.name not in measures):
            return False
        if (
            isinstance(part, Call)
            and any(isinstance(each, Variable) for each in part.arguments)
            and part.name != "count"
        ):
            return False
    return True
