"""Row patterns, from text to a tree: concatenation, alternation, groups, quantifiers, anchors."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import msgspec

from undersong.patterns.language.expressions import ExpressionError, parse_with

ANY = "ANY"
_LONGEST_COUNT = 1000  # a quantifier {n,m} is written out n to m times


class _Part(msgspec.Struct, frozen=True, tag=True):
    """A part of a row pattern; stored with its class name."""


class Bind(_Part, frozen=True):
    """One row for which the variable's condition holds; ``ANY`` is any read row."""

    variable: str


class Start(_Part, frozen=True):
    """``^``: before the first read row of the sequence."""


class End(_Part, frozen=True):
    """``$``: after its last read row."""


class Then(_Part, frozen=True):
    """One part after the other."""

    parts: tuple[Part, ...]


class Or(_Part, frozen=True):
    """The first part that leads to a match, in the order written."""

    parts: tuple[Part, ...]


class Passed(_Part, frozen=True):
    """``{- part -}``: its rows must be there and are passed over, as ``ANY`` is; no variable binds them."""

    part: Part


class Repeat(_Part, frozen=True):
    """``part`` between ``least`` and ``most`` times (None: no bound); greedy prefers more, reluctant fewer."""

    part: Part
    least: int
    most: int | None
    greedy: bool = True


Part: TypeAlias = Bind | Start | End | Then | Or | Passed | Repeat


def parse(text: str) -> Part:
    """The tree of a row pattern; raises ExpressionError for one that cannot be read."""
    return _build(parse_with("sequence.lark", text))


def variables(part: Part) -> tuple[str, ...]:
    """The named variables in the order of their first appearance, without ANY."""
    names: dict[str, None] = {}
    open_parts = [part]
    while open_parts:
        part = open_parts.pop()
        if isinstance(part, Bind) and part.variable != ANY:
            names[part.variable] = None
        open_parts.extend(reversed(below(part)))
    return tuple(names)


def required(part: Part) -> frozenset[str]:
    """The named variables that every match binds."""
    if isinstance(part, Bind | Passed):
        return frozenset({part.variable} - {ANY}) if isinstance(part, Bind) else frozenset()
    parts = [required(each) for each in below(part)]
    if isinstance(part, Then):
        return frozenset().union(*parts)
    if isinstance(part, Or):
        return frozenset.intersection(*parts)
    return parts[0] if isinstance(part, Repeat) and part.least > 0 else frozenset()


def can_be_empty(part: Part, *, named_only: bool = False) -> bool:
    """Whether a part matches without a row; with ``named_only``, without a row bound to a named variable."""
    if isinstance(part, Bind):
        return named_only and part.variable == ANY
    if isinstance(part, Passed):
        return named_only or can_be_empty(part.part)
    parts = [can_be_empty(each, named_only=named_only) for each in below(part)]
    if isinstance(part, Or):
        return any(parts)
    return all(parts) or (isinstance(part, Repeat) and part.least == 0)


def open_end(part: Part) -> bool:
    """Whether the end of a match can stay undecided: it closes with an unbounded greedy repetition, or ``$``."""
    if isinstance(part, Repeat | Passed):
        return (isinstance(part, Repeat) and part.greedy and part.most is None) or open_end(part.part)
    if isinstance(part, Or):
        return any(open_end(each) for each in part.parts)
    return open_end(part.parts[-1]) if isinstance(part, Then) else isinstance(part, End)


def longest(part: Part) -> int | None:
    """The most rows that a match takes; None without bound."""
    if isinstance(part, Bind):
        return 1
    if isinstance(part, Passed):
        return longest(part.part)
    if isinstance(part, Repeat):
        inner = longest(part.part)
        return 0 if inner == 0 else None if inner is None or part.most is None else inner * part.most
    if isinstance(part, Then | Or):
        sizes = [longest(each) for each in part.parts]
        bounded = [size for size in sizes if size is not None]
        return None if len(bounded) < len(sizes) else sum(bounded) if isinstance(part, Then) else max(bounded)
    return 0


def at_end(part: Part) -> bool:
    """Whether a match may ask to be at the end of its sequence (``$``)."""
    return isinstance(part, End) or any(map(at_end, below(part)))


def tolerant(part: Part) -> bool:
    """Whether other rows may lie between the stages, or a stage may go on without end."""
    if isinstance(part, Bind):
        return part.variable == ANY
    if isinstance(part, Passed):
        return True
    unbounded = isinstance(part, Repeat) and part.most is None
    return unbounded or any(tolerant(each) for each in below(part))


def below(part: Part) -> tuple[Part, ...]:
    """The parts of a part."""
    if isinstance(part, Then | Or):
        return part.parts
    return (part.part,) if isinstance(part, Repeat | Passed) else ()


def _build(tree: Any) -> Part:
    parts = [_build(child) if hasattr(child, "children") else child for child in tree.children]
    rule = str(tree.data)
    if rule == "start":
        built: Part = parts[0]
        return built
    if rule == "variable":
        return Bind(str(parts[0]))
    if rule in ("start_anchor", "end_anchor"):
        return Start() if rule == "start_anchor" else End()
    if rule == "passed":
        return Passed(parts[0])
    if rule == "concatenation":
        return Then(tuple(parts))
    return Or(tuple(parts)) if rule == "alternation" else _repeat(rule, parts)


def _repeat(rule: str, parts: list[Any]) -> Repeat:
    *head, reluctant = parts
    part, counts = head[0], [str(count) for count in head[1:]]
    if rule == "repeat":
        least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}[counts[0]]
    else:
        least = int(counts[0])
        most = None if rule == "at_least" else int(counts[-1])
    if max(least, most or 0) > _LONGEST_COUNT:
        raise ExpressionError(f"a quantifier counts at most to {_LONGEST_COUNT}")
    if most is not None and (most < least or most == 0):
        raise ExpressionError(f"quantifier {{{least},{most}}} allows nothing")
    return Repeat(part, least, most, greedy=reluctant is None)


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


def successors(program: Program, place: int) -> tuple[int, ...]:
    """Where an instruction that takes no row leads, whatever the rows are; anchors are taken to hold."""
    operation, first, second = program.instructions[place]
    if operation == SPLIT:
        return first, second
    if operation == JUMP:
        return (first,)
    if operation == STOP_IF_EMPTY:
        return place + 1, second
    return () if operation in (ROW, ACCEPT) else (place + 1,)


class Skip(NamedTuple):
    """Where the search goes on after a match: ``past`` its last row, at the ``next`` row, or at a variable's row."""

    to: str
    variable: int = -1


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
