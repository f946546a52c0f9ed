"""A row pattern → a short program for the backtracking matcher."""

from __future__ import annotations

from typing import NamedTuple

from undersong.patterns.expressions import ExpressionError
from undersong.patterns.sequences import ANY, Bind, Or, Part, Passed, Repeat, Start, Then, can_be_empty

ROW, SPLIT, JUMP, AT_START, AT_END, MARK, STOP_IF_EMPTY, ACCEPT = range(8)
_LONGEST = 20_000  # instructions; a pattern of nested counts beyond it would only be slow

Instruction = tuple[int, int, int]


class Program(NamedTuple):
    """Instructions as (operation, first, second).

    ROW mask variable: take a row whose mask has a common bit (mask 0: any row); variable -1 passes over it. SPLIT
    preferred other: try one place, on failure the other. MARK slot and STOP_IF_EMPTY slot exit: leave a repetition
    whose last round took no row.
    """

    instructions: tuple[Instruction, ...]
    slots: int


def compile_program(part: Part, names: tuple[str, ...]) -> Program:
    """The program of a pattern; variable i of ``names`` has mask bit i."""
    writer = _ProgramWriter(names)
    writer.write(part)
    writer.add(ACCEPT)
    return Program(tuple(writer.instructions), writer.slots)


class _ProgramWriter:
    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = {name: index for index, name in enumerate(names)}
        self.instructions: list[Instruction] = []
        self.slots = 0
        self.passing = False

    def add(self, operation: int, first: int = 0, second: int = 0) -> int:
        if len(self.instructions) >= _LONGEST:
            raise ExpressionError("is too large when its counts are written out; use smaller counts")
        self.instructions.append((operation, first, second))
        return len(self.instructions) - 1

    def write(self, part: Part) -> None:
        if isinstance(part, Bind):
            mask = 0 if part.variable == ANY else 1 << self.names[part.variable]
            self.add(ROW, mask, -1 if self.passing or not mask else self.names[part.variable])
        elif isinstance(part, Passed):
            self._passed(part)
        elif isinstance(part, Then):
            for child in part.parts:
                self.write(child)
        elif isinstance(part, Or):
            self._alternatives(part)
        elif isinstance(part, Repeat):
            self._repeat(part)
        else:
            self.add(AT_START if isinstance(part, Start) else AT_END)

    def _passed(self, part: Passed) -> None:
        outer, self.passing = self.passing, True
        self.write(part.part)
        self.passing = outer

    def _alternatives(self, part: Or) -> None:
        jumps = []
        for branch in part.parts[:-1]:
            split = self.add(SPLIT)
            self.write(branch)
            jumps.append(self.add(JUMP))
            self.instructions[split] = (SPLIT, split + 1, len(self.instructions))
        self.write(part.parts[-1])
        for jump in jumps:
            self.instructions[jump] = (JUMP, len(self.instructions), 0)

    def _repeat(self, part: Repeat) -> None:
        for _ in range(part.least):
            self.write(part.part)
        if part.most is None:
            self._loop(part)
            return
        splits = []
        for _ in range(part.most - part.least):
            splits.append(self.add(SPLIT))
            self.write(part.part)
        for split in splits:
            self.instructions[split] = self._split(split, len(self.instructions), part.greedy)

    def _loop(self, part: Repeat) -> None:
        empty, slot = can_be_empty(part.part), self.slots
        split = self.add(SPLIT)
        if empty:
            self.slots += 1
            self.add(MARK, slot)
        self.write(part.part)
        stop = self.add(STOP_IF_EMPTY, slot) if empty else None
        self.add(JUMP, split)
        self.instructions[split] = self._split(split, len(self.instructions), part.greedy)
        if stop is not None:
            self.instructions[stop] = (STOP_IF_EMPTY, slot, len(self.instructions))

    @staticmethod
    def _split(split: int, out: int, greedy: bool) -> Instruction:
        return (SPLIT, split + 1, out) if greedy else (SPLIT, out, split + 1)
