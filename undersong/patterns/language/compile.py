"""Pattern files → compiled rules; every problem is named with its file and line."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

import msgspec
import yaml

from undersong.datafiles.yaml_loader import YamlDocument, convert, did_you_mean
from undersong.errors import RuleError
from undersong.patterns.language import row_pattern, rulefile, types
from undersong.patterns.language.expressions import Both, Call, ExpressionError, Field, Member, Node, Text, parse, walk
from undersong.patterns.language.fields import FIELDS, Kind, of_row_alone, row_leaf
from undersong.patterns.language.logic import Evaluate, compile_tree
from undersong.patterns.language.row_pattern import Program, Skip, compile_program
from undersong.patterns.language.values import MATCH, Column, compile_columns, compile_measure

_MOST_VARIABLES = 64
_MOST_UNREAD = 2**31
T = TypeVar("T")
Written: TypeAlias = str | float | bool  # YAML reads `true` and `1` as values of their own


class CompiledCondition(NamedTuple):
    """A DEFINE variable: it holds where ``local`` (about the row alone) and ``derived`` (with columns) are true."""

    local: Evaluate | None
    derived: Evaluate | None


class RuleTrees(NamedTuple):
    """The expressions and the row pattern that a rule was compiled from, for whoever runs them in another way."""

    columns: dict[str, Node]
    kinds: dict[str, Kind]
    define: tuple[Node, ...]
    where: Node | None
    until: Node | None
    measures: dict[str, Node]
    having: tuple[Node, ...]
    part: row_pattern.Part


class CheckedRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that was read and checked, as plain values: what can be stored, and makes a rule ready to run at once."""

    file: rulefile.RuleFile
    hash: str
    program: Program
    required: tuple[int, ...]
    within: int | None
    skip: Skip
    needs: frozenset[str]
    trees: RuleTrees

    def ready(self, source: str = "") -> PatternRule:
        """The rule ready to run; ``source`` is the hash of its file."""
        trees = self.trees
        return PatternRule(
            file=self.file,
            hash=self.hash,
            names=tuple(self.file.define),
            program=self.program,
            required=self.required,
            conditions=tuple(split_condition(tree) for tree in trees.define),
            columns=compile_columns(trees.columns),
            where=compile_tree(trees.where, row_leaf) if trees.where else None,
            until=compile_tree(trees.until, row_leaf) if trees.until else None,
            within=self.within,
            skip=self.skip,
            measures={name: compile_measure(tree) for name, tree in trees.measures.items()},
            having=tuple(compile_measure(tree) for tree in trees.having),
            needs=self.needs,
            trees=trees,
            source=source,
        )


class PatternRule(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A rule ready to run.

    ``needs`` are the inputs without which it says nothing, such as ``manipulation``. ``hash`` is over what the rule
    means, ``source`` over the bytes of its file.
    """

    file: rulefile.RuleFile
    hash: str
    names: tuple[str, ...]
    program: Program
    required: tuple[int, ...]
    conditions: tuple[CompiledCondition, ...]
    columns: tuple[Column, ...]
    where: Any
    until: Any
    within: int | None
    skip: Skip
    measures: dict[str, Any]
    having: tuple[Any, ...]
    needs: frozenset[str]
    trees: RuleTrees
    source: str = ""

    def __reduce__(self) -> tuple[Any, ...]:
        """Its file goes to another process, where it is compiled again, once."""
        return _recompiled, (msgspec.json.encode(self.file), self.hash, self.source)

    @property
    def id(self) -> str:
        """The name of the rule, its own among all rules."""
        return self.file.id

    @property
    def pattern(self) -> str:
        """The name that findings carry: that of the rule which this one is a variant of, else its own."""
        return self.file.variant_of or self.file.id


def compile_rule(document: YamlDocument) -> PatternRule:
    """The rule of one file; raises the first problem as RuleError."""
    return check_rule(document).ready()


def check_rule(document: YamlDocument) -> CheckedRule:
    """The rule of one file as plain values; raises the first problem as RuleError."""
    rule, problems = _checked(document)
    if rule is None:
        raise problems[0]
    return rule


def try_rule(document: YamlDocument) -> tuple[PatternRule | None, list[RuleError]]:
    """The rule, or None and every problem of the file."""
    rule, problems = _checked(document)
    return (None if rule is None else rule.ready()), problems


def _checked(document: YamlDocument) -> tuple[CheckedRule | None, list[RuleError]]:
    problems = rulefile.unknown_keys(document) + rulefile.wrong_keys(document)
    readable = rulefile.without_wrong_keys(document) if problems else document
    if readable is None:
        return None, problems
    compiler = _RuleCompiler(readable, convert(readable, rulefile.RuleFile))
    rule = compiler.rule()
    problems += compiler.problems
    return (None if problems else rule), problems


@lru_cache(maxsize=512)
def _recompiled(file: bytes, digest: str, source: str) -> PatternRule:
    """A rule from its file as another process had it; raises RuleError where this one compiles it differently."""
    value = msgspec.json.decode(file)
    document = YamlDocument(Path(f"{value['id']}.yaml"), value, yaml.MappingNode("map", []))
    rule = _RuleCompiler(document, msgspec.convert(value, rulefile.RuleFile)).rule()
    if rule is None or rule.hash != digest:
        remedy = "install one version of undersong on all machines"
        raise RuleError(f"rule {value['id']} is another one in this process", remedy=remedy)
    return rule.ready(source)


class _RuleCompiler:
    """Reads the clauses in their order of dependence, and keeps each problem with its place."""

    def __init__(self, document: YamlDocument, file: rulefile.RuleFile) -> None:
        self.document, self.file = document, file
        self.problems: list[RuleError] = []
        self.kinds: dict[str, Kind] = {}
        self.trees: list[Node] = []

    def rule(self) -> CheckedRule | None:
        file = self.file
        where = self._condition("$.where", file.where, types.SymbolTable(types.ROW_KINDS))
        columns = {name: tree for name, text in file.columns.items() if (tree := self._column(name, text))}
        names = types.of_row(self.kinds)
        define = {name: self._condition(f"$.define.{name}", text, names) for name, text in file.define.items()}
        until = self._condition("$.until", file.until, names)
        pattern = self._pattern(tuple(define))
        measures, having = self._measures()
        conditions = tuple(tree for tree in define.values() if tree)
        skip = self._skip(tuple(define))
        within = self._try("$.within", lambda: rulefile.span(file.within))
        self._plain_keys()
        if self.problems or pattern is None or skip is None:
            return None
        part, program = pattern
        order = tuple(define)
        return CheckedRule(
            file=file,
            hash=rulefile.rule_hash(file),
            program=program,
            required=tuple(order.index(name) for name in sorted(row_pattern.required(part))),
            within=within,
            skip=skip,
            needs=_needs(self.trees),
            trees=RuleTrees(columns, self.kinds, conditions, where, until, measures, having, part),
        )

    def _try(self, path: str, read: Callable[[], T]) -> T | None:
        try:
            return read()
        except ValueError as error:
            self._problem(path, f"{path.removeprefix('$.')}: {error}")
            return None

    def _problem(self, path: str, what: str, remedy: str = "") -> None:
        self.problems.append(self.document.error(what, path, remedy))

    def _tree(self, path: str, text: Written, kind: Kind | None, names: types.SymbolTable) -> tuple[Node, Kind] | None:
        tree = self._try(path, lambda: parse(rulefile.written(text)))
        if tree is None:
            return None
        faults = types.faults(tree, names)
        actual = "number" if faults else types.kind_of(tree, names)
        if not faults and kind is not None and actual != kind:
            faults = [f"must be a {'condition' if kind == 'boolean' else kind}, not a {actual}"]
        for fault in faults:
            self._problem(path, f"{path.removeprefix('$.')}: {fault}")
        if faults:
            return None
        self.trees.append(tree)
        return tree, actual

    def _condition(self, path: str, text: Written | None, names: types.SymbolTable) -> Node | None:
        read = None if text is None else self._tree(path, text, "boolean", names)
        return read[0] if read else None

    def _column(self, name: str, text: Written) -> Node | None:
        path = f"$.columns.{name}"
        read = self._tree(path, text, None, types.of_row(self.kinds, windows=True))
        if not name.isidentifier() or not name.islower() or name in types.of_row(self.kinds).fields:
            self._problem(path, f"'{name}' cannot name a column", "use a new lower-case word")
        self.kinds[name] = read[1] if read else "number"
        return read[0] if read else None

    def _pattern(self, names: tuple[str, ...]) -> tuple[row_pattern.Part, Program] | None:
        for name in names:
            if name in (row_pattern.ANY, MATCH) or not name.isupper() or not name.isidentifier():
                self._problem(f"$.define.{name}", f"'{name}' cannot name a variable", "use an upper-case word")
        for key, groups in (("overlaps", self.file.overlaps), ("sets", tuple(self.file.sets.values()))):
            for name in {name for group in groups for name in group} - set(names):
                self._problem(f"$.{key}", f"unknown variable '{name}'", did_you_mean(name, list(names)))
        if len(names) > _MOST_VARIABLES:
            self._problem("$.define", f"more than {_MOST_VARIABLES} variables")
        return self._try("$.pattern", lambda: _read_pattern(self.file.pattern, names))

    def _measures(self) -> tuple[dict[str, Node], tuple[Node, ...]]:
        variables = (*self.file.define, row_pattern.ANY, MATCH)
        measure_kinds: dict[str, Kind] = {}
        measures = {}
        for name, text in self.file.measures.items():
            read = self._tree(f"$.measures.{name}", text, None, types.of_match(variables, self.kinds, measure_kinds))
            measure_kinds[name] = read[1] if read else "number"
            if read:
                measures[name] = read[0]
        if measure_kinds.get("strength") != "number":
            self._problem("$.measures", "measures needs strength", "give each match a number from 0 to 1")
        having = []
        for i, text in enumerate(self.file.having):
            tree = self._condition(f"$.having[{i}]", text, types.of_match(variables, self.kinds, measure_kinds))
            having += [tree] if tree else []
        return measures, tuple(having)

    def _skip(self, names: tuple[str, ...]) -> Skip | None:
        def read() -> Skip:
            to, variable = rulefile.after_match(self.file.after_match)
            if variable and variable not in names:
                raise ValueError(f"unknown variable '{variable}'; {did_you_mean(variable, list(names))}")
            return Skip(to, names.index(variable) if variable else -1)

        return self._try("$.after_match", read)

    def _plain_keys(self) -> None:
        file, unread = self.file, self.file.max_unread or 0
        keys = file.partition_by
        checks = [
            ("falsepositives", not file.falsepositives, "falsepositives is empty", "name an innocent look-alike"),
            ("partition_by", "agent" not in keys, "partition_by lacks agent", "add agent"),
            ("partition_by", len(set(keys)) < len(keys), "partition_by names a key twice", "name each once"),
            ("max_unread", unread < 0, "max_unread is below 0", "use 0 or more"),
            ("max_unread", unread > _MOST_UNREAD, "max_unread is too large", "leave it out"),
            ("id", not file.id.isidentifier(), f"id '{file.id}' is no plain word", "use letters, digits and _"),
        ]
        for key, wrong, what, remedy in checks:
            if wrong:
                self._problem(f"$.{key}", what, remedy)


def _read_pattern(text: str, names: tuple[str, ...]) -> tuple[row_pattern.Part, Program]:
    part = row_pattern.parse(text)
    unknown = [name for name in row_pattern.variables(part) if name not in names]
    if unknown:
        listing = "', '".join(unknown)
        remedy = did_you_mean(unknown[0], [*names, row_pattern.ANY])
        raise ExpressionError(f"unknown variable{'s' if len(unknown) > 1 else ''} '{listing}'; {remedy}")
    if row_pattern.can_be_empty(part, named_only=True):
        raise ExpressionError("can match without a row of a named variable; ask for at least one")
    return part, compile_program(part, names)


def split_condition(tree: Node) -> CompiledCondition:
    """What the row alone decides is separated from what needs columns: it is computed once for all partitions."""
    parts = tree.parts if isinstance(tree, Both) else (tree,)
    local = tuple(part for part in parts if of_row_alone(part))
    derived = tuple(part for part in parts if not of_row_alone(part))
    return CompiledCondition(*(compile_tree(Both(group), row_leaf) if group else None for group in (local, derived)))


def _needs(trees: list[Node]) -> frozenset[str]:
    """The row fields, ``indicators`` and ``signals:NAME`` that any clause of a rule mentions."""
    return frozenset(need for tree in trees for part in walk(tree) if (need := _need(part)))


def _need(part: Node) -> str | None:
    if isinstance(part, Field | Member):
        return part.name if part.name in FIELDS else None
    if isinstance(part, Call) and part.name == "indicator":
        return "indicators"
    if isinstance(part, Call) and part.name == "signal" and isinstance(part.arguments[0], Text):
        return f"signals:{part.arguments[0].value}"
    return None
