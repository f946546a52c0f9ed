"""Type checking of expressions: known names, and numbers, texts and conditions where each belongs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from undersong.datafiles.yaml_loader import did_you_mean
from undersong.patterns.language.expressions import (  # fmt: skip
    Arithmetic,
    Both,
    Call,
    Compare,
    Either,
    ExpressionError,
    Field,
    IsNull,
    Member,
    Node,
    Not,
    Number,
    OneOf,
    Text,
    Truth,
    Variable,
    Window,
    walk,
)
from undersong.patterns.language.fields import FIELDS, PLACE_FIELDS, ROW_FUNCTIONS, Kind
from undersong.patterns.language.logic import FUNCTIONS

WINDOWED = ("mean", "std", "min", "max", "sum", "count", "count_distinct", "slope", "ewma", "delta", "rank")
AGGREGATES = ("mean", "std", "min", "max", "sum", "count", "count_distinct", "slope", "first", "last")
ROW_KINDS: dict[str, Kind] = {name: field.kind for name, field in FIELDS.items()}
_OVER_OTHERS = ROW_KINDS  # a window over other sequences knows no columns: those belong to this one
_MANY = frozenset({"least", "greatest", "coalesce"})


class SymbolTable(NamedTuple):
    """What an expression may name: ``fields`` by kind; with ``variables`` it is a measure."""

    fields: Mapping[str, Kind]
    windows: bool = False
    variables: tuple[str, ...] = ()
    members: Mapping[str, Kind] = {}
    within_aggregate: bool = False

    @property
    def of_rows(self) -> bool:
        """Whether the expression is about one row (and not about a match)."""
        return not self.variables


def of_row(columns: Mapping[str, Kind], *, windows: bool = False) -> SymbolTable:
    """The names that a condition or a column may use."""
    return SymbolTable({**ROW_KINDS, **PLACE_FIELDS, **columns}, windows=windows)


def of_match(variables: tuple[str, ...], columns: Mapping[str, Kind], measures: Mapping[str, Kind]) -> SymbolTable:
    """The names that a measure or ``having`` may use."""
    return SymbolTable(measures, variables=variables, members={**ROW_KINDS, **PLACE_FIELDS, **columns})


def require(node: Node, kind: Kind, names: SymbolTable, what: str) -> None:
    """Raise ExpressionError unless ``node`` is of ``kind``."""
    actual = kind_of(node, names)
    if actual != kind:
        raise ExpressionError(f"{what} must be a {kind}, not a {actual}")


def faults(node: Node, names: SymbolTable) -> list[str]:
    """What ``kind_of`` would raise for each wrong part of an expression, in the order of the text; [] if none is."""
    parts: tuple[Node, ...] = ()
    if isinstance(node, Both | Either):
        parts = node.parts
    elif isinstance(node, Compare | Arithmetic):
        parts = node.left, node.right
    elif isinstance(node, Not | OneOf | IsNull):
        parts = (node.part,)
    problems = [fault for part in parts for fault in faults(part, names)]
    if not problems:
        try:
            kind_of(node, names)
        except ExpressionError as error:
            return [str(error)]
    return list(dict.fromkeys(problems))


def kind_of(node: Node, names: SymbolTable) -> Kind:
    """Number, text or boolean; raises ExpressionError for unknown names and mixed kinds."""
    if isinstance(node, Number | Text | Truth):
        return "number" if isinstance(node, Number) else "text" if isinstance(node, Text) else "boolean"
    if isinstance(node, Field):
        return _kind_of_name(node.name, names.fields, "field")
    if isinstance(node, Window):
        return _window(node, names)
    if isinstance(node, Call):
        return _call(node, names)
    if isinstance(node, Arithmetic):
        require(node.left, "number", names, f"what stands before '{node.operator}'")
        require(node.right, "number", names, f"what stands after '{node.operator}'")
        return "number"
    if isinstance(node, Member) and names.within_aggregate:
        return _kind_of_name(node.name, names.members, "field")
    if isinstance(node, Member | Variable):
        raise ExpressionError(_misplaced(node, names))
    return _condition(node, names)


def _condition(node: Not | Both | Either | Compare | OneOf | IsNull, names: SymbolTable) -> Kind:
    if isinstance(node, Compare):
        left, right = kind_of(node.left, names), kind_of(node.right, names)
        if left != right:
            raise ExpressionError(f"'{node.operator}' compares a {left} with a {right}")
        if left != "number" and node.operator not in ("=", "!="):
            raise ExpressionError(f"'{node.operator}' needs numbers; a {left} is only = or !=")
    elif isinstance(node, OneOf):
        wanted = {type(option) for option in node.options}
        if wanted != {{"number": float, "text": str, "boolean": bool}[kind_of(node.part, names)]}:
            raise ExpressionError("'in (…)' must list values of the same kind as what stands before it")
    elif isinstance(node, IsNull):
        kind_of(node.part, names)
    else:
        parts = (node.part,) if isinstance(node, Not) else node.parts
        for part in parts:
            require(part, "boolean", names, "a part of and, or, not")
    return "boolean"


def _call(node: Call, names: SymbolTable) -> Kind:
    if node.name in FUNCTIONS:
        return _function(node, names)
    if names.of_rows and node.name in ROW_FUNCTIONS:
        if len(node.arguments) != 1 or not isinstance(node.arguments[0], Text):
            raise ExpressionError(f'{node.name}() takes one quoted name, as in {node.name}("…")')
        return ROW_FUNCTIONS[node.name][0]
    if not names.of_rows and node.name in AGGREGATES:
        return _aggregate(node, names)
    if names.of_rows and node.name in WINDOWED:
        raise ExpressionError(f"{node.name}() needs a window: last N rows, last N days or so far")
    function_names = [*FUNCTIONS, *(ROW_FUNCTIONS if names.of_rows else AGGREGATES)]
    raise ExpressionError(f"unknown function '{node.name}'; {did_you_mean(node.name, function_names)}")


def _function(node: Call, names: SymbolTable) -> Kind:
    if len(node.arguments) != 1 and node.name not in _MANY:
        raise ExpressionError(f"{node.name}() takes one value")
    kinds = {kind_of(argument, names) for argument in node.arguments}
    if len(kinds) != 1:
        raise ExpressionError(f"{node.name}() takes values of one kind")
    kind = kinds.pop()
    if node.name != "coalesce" and kind != "number":
        raise ExpressionError(f"{node.name}() takes numbers")
    return kind


def _aggregate(node: Call, names: SymbolTable) -> Kind:
    if len(node.arguments) != 1 or names.within_aggregate:
        raise ExpressionError(f"{node.name}() takes one value of single rows")
    argument = node.arguments[0]
    _require_known_variables(argument, names)
    if isinstance(argument, Variable):
        if node.name != "count":
            raise ExpressionError(f"{node.name}({argument.name}) needs a field, as in {argument.name}.manipulation")
        return "number"
    single_variable(node)
    kind = kind_of(argument, names._replace(within_aggregate=True))
    if node.name == "count_distinct" or (node.name == "count" and kind == "boolean"):
        return "number"
    if node.name in ("first", "last"):
        return kind
    if node.name == "count":
        raise ExpressionError("count() takes a condition or a variable")
    if kind != "number":
        raise ExpressionError(f"{node.name}() takes numbers")
    return "number"


def _require_known_variables(argument: Node, names: SymbolTable) -> None:
    for part in walk(argument):
        if isinstance(part, Variable | Member) and part_variable(part) not in names.variables:
            remedy = did_you_mean(part_variable(part), list(names.variables))
            raise ExpressionError(f"unknown variable '{part_variable(part)}'; {remedy}")


def _window(node: Window, names: SymbolTable) -> Kind:
    if not names.windows:
        raise ExpressionError(f"{node.function}() over past rows belongs under columns; give it a name there")
    if node.function not in WINDOWED:
        raise ExpressionError(f"unknown function '{node.function}'; {did_you_mean(node.function, list(WINDOWED))}")
    if node.function == "ewma" and node.rows is None:
        raise ExpressionError("ewma() takes last N rows: N is its span")
    inner = SymbolTable(_OVER_OTHERS if node.over != "partition" else names.fields)
    kind = kind_of(node.value, inner)
    if node.where is not None:
        require(node.where, "boolean", inner, "what follows where")
    if node.function == "count" and kind != "boolean":
        raise ExpressionError("count() takes a condition")
    if kind != "number" and node.function not in ("count", "count_distinct"):
        raise ExpressionError(f"{node.function}() takes numbers")
    return "number"


def single_variable(node: Call) -> str:
    """The one variable whose rows an aggregate looks at."""
    parts = walk(node.arguments[0])
    variables = {part_variable(part) for part in parts if isinstance(part, Variable | Member)}
    if len(variables) != 1 or any(isinstance(part, Field) for part in parts):
        raise ExpressionError(f"{node.name}() takes fields of one variable, as in {node.name}(PRAISE.compassion)")
    return variables.pop()


def part_variable(part: Variable | Member) -> str:
    """The variable that a part names."""
    return part.name if isinstance(part, Variable) else part.variable


def _kind_of_name(name: str, fields: Mapping[str, Kind], what: str) -> Kind:
    if name not in fields:
        raise ExpressionError(
            f"unknown {what} '{name}'; {did_you_mean(name, list(fields)) if fields else 'none is known here'}"
        )
    return fields[name]


def _misplaced(node: Member | Variable, names: SymbolTable) -> str:
    if names.of_rows:
        return f"'{part_variable(node)}' is a variable of a match; only measures and having may name it"
    shown = node.name if isinstance(node, Variable) else f"{node.variable}.{node.name}"
    return f"'{shown}' stands for several rows; take one value of it, as in mean({shown}) or last({shown})"
