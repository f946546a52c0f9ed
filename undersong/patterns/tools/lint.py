"""`undersong rules check`: every problem of every pattern file in one run, each with file, line and remedy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from undersong.datafiles.taxonomy import taxonomy
from undersong.datafiles.yaml_loader import RULES, YamlDocument, did_you_mean, load
from undersong.errors import RuleError
from undersong.models import TRAITS, Record
from undersong.patterns.catalog import all_rules, repeated, rule_files
from undersong.patterns.language import row_pattern
from undersong.patterns.language.compile import PatternRule, try_rule
from undersong.patterns.language.expressions import (
    Both,
    Call,
    Compare,
    Field,
    Member,
    Node,
    OneOf,
    Text,
    Truth,
    parse,
    walk,
)
from undersong.patterns.language.row_pattern import ANY, Bind, Or, Part, Passed, Repeat, Then, can_be_empty
from undersong.patterns.language.rulefile import written
from undersong.patterns.set_indicators import asked_of_findings, sequence_indicators
from undersong.patterns.significance.necessary_conditions import conditions_written_out
from undersong.patterns.tools.impossibility import beyond_anchors, disjoint, impossible, never_holds
from undersong.patterns.tools.rule_tests import run_rule_tests
from undersong.rows.binary import TEXTS


class Lint(Record, frozen=True, kw_only=True):
    """One remark on a rule file; ``id`` names the check (docs/rules.md lists them)."""

    id: str
    severity: Literal["error", "warning"]
    where: str
    what: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.where}: {self.severity} [{self.id}] {self.what}" + (f"; {self.remedy}" if self.remedy else "")


def check_rules(paths: Sequence[str | Path] | None = None) -> tuple[Lint, ...]:
    """Every remark on the pattern files (None: the shipped ones), in the order of files; errors do not stop it."""
    lints: list[Lint] = []
    rules: list[tuple[Path, PatternRule]] = []
    for file in rule_files(paths):
        try:
            document = load(file)
        except RuleError as error:
            lints += [_error("unreadable", each) for each in (error, *error.also)]
            continue
        rule, problems = try_rule(document)
        lints += [_error("invalid", problem) for problem in problems]
        if rule is not None:
            rules.append((file, rule))
            lints += _remarks(document, rule)
    lints += [_error("repeated-name", problem) for problem in repeated(rules)]
    lints += _never_set(rules)
    return tuple(lints)


def _never_set(rules: Sequence[tuple[Path, PatternRule]]) -> Iterator[Lint]:
    """Rules that ask for an indicator that nobody gives, and rules that set one which a message shows."""
    settable = {name for rule in (*all_rules(), *(rule for _, rule in rules)) for name in rule.file.sets}
    for file, rule in rules:
        document = load(file)
        for name in sorted(asked_of_findings(rule) - settable):
            place = next((path for path, text in _clauses(rule).items() if f'"{name}"' in str(text)), "$")
            what = f"asks for {name}, which no message shows and no rule sets"
            yield _at(document, "unset-indicator", place, what, "ask for another, or write a rule with it under sets")
        for name in sorted(rule.file.sets.keys() - sequence_indicators()):
            what = f"sets {name}, which is no indicator that only a sequence shows"
            yield _at(document, "unset-indicator", "$.sets", what, did_you_mean(name, sorted(sequence_indicators())))


def _remarks(document: YamlDocument, rule: PatternRule) -> Iterator[Lint]:
    yield from _unused(document, rule)
    yield from _words(document, rule)
    yield from _conditions(document, rule)
    yield from _never(document, rule)
    yield from _bounds(document, rule)
    yield from _prose(document, rule)
    yield from _cases(document, rule)


def _unused(document: YamlDocument, rule: PatternRule) -> Iterator[Lint]:
    used = row_pattern.variables(row_pattern.parse(rule.file.pattern))
    for name in rule.names:
        if name not in used:
            what, remedy = f"variable '{name}' is not in the pattern", "use it or delete it"
            yield _warning(document, "unreachable-variable", f"$.define.{name}", what, remedy)
    texts = [rule.file.where, rule.file.until, *rule.file.define.values(), *rule.file.columns.values()]
    texts += [*rule.file.measures.values(), *rule.file.having]
    parts = [part for text in texts if text is not None for part in walk(parse(written(text)))]
    mentioned = {part.name for part in parts if isinstance(part, Field | Member)}
    for name in rule.file.columns:
        if name not in mentioned:
            yield _warning(document, "unused-column", f"$.columns.{name}", f"column '{name}' is not used", "delete it")


def _clauses(rule: PatternRule) -> dict[str, Any]:
    """Every expression of a rule by its path in the file."""
    file = rule.file
    places: dict[str, Any] = {"$.where": file.where, "$.until": file.until}
    for clause, texts in (("columns", file.columns), ("define", file.define), ("measures", file.measures)):
        places |= {f"$.{clause}.{name}": text for name, text in texts.items()}
    return places | {f"$.having[{i}]": text for i, text in enumerate(file.having)}


def _words(document: YamlDocument, rule: PatternRule) -> Iterator[Lint]:
    for path, text in _clauses(rule).items():
        for what, remedy in unknown_words(parse(written(text))) if text is not None else ():
            yield _warning(document, "unknown-word", path, what, remedy)


def _conditions(document: YamlDocument, rule: PatternRule) -> Iterator[Lint]:
    _, trees = conditions_written_out(rule)
    where = Truth(True) if rule.trees.where is None else rule.trees.where
    for name, tree in trees.items():
        if impossible(tree) or (impossible(Both((where, tree))) and not impossible(where)):
            what = f"no row can be '{name}': its condition contradicts {'itself' if impossible(tree) else 'where'}"
            yield _warning(document, "unreachable-variable", f"$.define.{name}", what, "correct or delete it")
    possible = sorted(ambiguous_pairs(row_pattern.parse(rule.file.pattern)))
    pairs = [pair for pair in possible if not _meant(rule, pair) and not disjoint(trees[pair[0]], trees[pair[1]])]
    if pairs:
        named = ", ".join(f"{one} and {other}" for one, other in pairs)
        what = f"one row may fit both of neighbours, and the preference order decides which it is: {named}"
        remedy = "make the conditions exclude each other, or name them under overlaps where it is meant"
        yield _warning(document, "overlapping-neighbours", "$.pattern", what, remedy)


def _never(document: YamlDocument, rule: PatternRule) -> Iterator[Lint]:
    beyond = beyond_anchors(rule)
    if beyond is None:
        what = "nothing can match: the pattern asks for rows before '^' or after '$'"
        yield _at(document, "never-matches", "$.pattern", what, "begin with '^', end with '$', or leave them out")
    for name in sorted(beyond or ()):
        what = f"no match has a row of '{name}': it stands before '^' or after '$'"
        yield _warning(
            document, "unreachable-variable", "$.pattern", what, "correct the pattern or delete the variable"
        )
    where = rule.trees.where
    if where is not None and impossible(where):
        what, remedy = "no row is left: the condition contradicts itself", "correct or delete it"
        yield _at(document, "never-matches", "$.where", what, remedy)
    for i, tree in enumerate(rule.trees.having):
        if never_holds(rule, tree):
            what = f"nothing can match: no match of this pattern has '{written(rule.file.having[i])}'"
            yield _at(document, "never-matches", f"$.having[{i}]", what, "compare it with pattern, define and measures")


def _meant(rule: PatternRule, pair: tuple[str, str]) -> bool:
    return any(set(pair) <= set(group) for group in rule.file.overlaps)


def _bounds(document: YamlDocument, rule: PatternRule) -> Iterator[Lint]:
    part = row_pattern.parse(rule.file.pattern)
    if rule.within == 0:
        what = f"'{rule.file.within}' leaves rows of one and the same moment alone"
        yield _warning(
            document, "empty-bound", "$.within", what, "name the time that a match may take, or leave it out"
        )
    if row_pattern.tolerant(part) and rule.within is None:
        what = "the pattern passes over rows or repeats without end, and nothing bounds it in time"
        yield _warning(document, "missing-bound", "$.pattern", what, "add within, such as within: 21 days")
    if row_pattern.open_end(part) and rule.within is None:
        what = "the end of a match stays undecided until the rows end"
        yield _warning(document, "undecidable-end", "$.pattern", what, "close it with {n,m}, a reluctant ? or within")
    if rule.file.keep == "strongest" and rule.within is None:
        what = "a later match may be stronger, so none is decided until the rows end"
        yield _warning(document, "undecidable-end", "$.keep", what, "add within, such as within: 21 days")


def _prose(document: YamlDocument, rule: PatternRule) -> Iterator[Lint]:
    if not rule.file.why.strip():
        what, remedy = "nothing says where its numbers come from", "say it under why"
        yield _warning(document, "no-why", "$.why", what, remedy)
    if not rule.file.misses:
        what, remedy = "nothing says what the rule does not find", "name it under misses"
        yield _warning(document, "no-misses", "$.misses", what, remedy)


def _cases(document: YamlDocument, rule: PatternRule) -> Iterator[Lint]:
    cases = rule.file.cases
    if not cases.hits:
        yield _warning(
            document, "no-hit-case", "$.cases", "no case shows what the rule finds", "add one under cases.hits"
        )
    if not cases.near_misses:
        what = "no case shows an innocent look-alike"
        yield _warning(document, "no-innocent-case", "$.cases", what, "add one under cases.near_misses")
    for group, examples, finds in (("hits", cases.hits, True), ("near_misses", cases.near_misses, False)):
        for i, example in enumerate(examples):
            if bool(example.finds) != finds:
                what = f"case '{example.name}' under {group} {'finds nothing' if finds else 'finds something'}"
                yield _at(document, "misplaced-case", f"$.cases.{group}[{i}]", what, "move it to the other list")
    yield from _failing(document, rule)


def _failing(document: YamlDocument, rule: PatternRule) -> Iterator[Lint]:
    try:
        results = run_rule_tests(rule)
    except RuleError as error:
        line = document.line("$.cases")
        what = f"{error.where}: {error.what}"
        yield Lint(id="bad-case", severity="error", where=f"{document.path}:{line}", what=what, remedy=error.remedy)
        return
    places = [f"$.cases.{group}[{i}]" for group in ("hits", "near_misses") for i in range(_count(rule, group))]
    for place, result in zip(places, results, strict=True):
        if not result.passed:
            what = f"case '{result.name}' finds {list(result.actual)}, not {list(result.expected)}"
            yield _at(document, "failing-case", place, what, "correct the rule or the case")


def _count(rule: PatternRule, group: str) -> int:
    return len(rule.file.cases.hits if group == "hits" else rule.file.cases.near_misses)


def _error(name: str, error: RuleError) -> Lint:
    return Lint(id=name, severity="error", where=error.where, what=error.what, remedy=error.remedy)


def _at(document: YamlDocument, name: str, path: str, what: str, remedy: str) -> Lint:
    return _error(name, document.error(what, path, remedy))


def _warning(document: YamlDocument, name: str, path: str, what: str, remedy: str) -> Lint:
    where = f"{document.path}:{document.line(path)}"
    return Lint(id=name, severity="warning", where=where, what=what, remedy=remedy)


class _FirstVariables(NamedTuple):
    """The variables that a part can begin with."""

    first: frozenset[str]
    empty: bool


def ambiguous_pairs(part: Part) -> frozenset[tuple[str, str]]:
    """Pairs of different named variables, in alphabetical order, between which a match may choose for one row.

    Rows that are passed over (``ANY``, ``{- A -}``) are no rival: passing over is meant to yield.
    """
    pairs: set[tuple[str, str]] = set()
    _walk(part, frozenset(), pairs)
    return frozenset(pairs)


def _walk(part: Part, after: frozenset[str], pairs: set[tuple[str, str]]) -> None:
    """Note the choices within a part that is followed by the variables ``after``."""
    if isinstance(part, Then):
        for i, child in enumerate(part.parts):
            _walk(child, _first_of(part.parts[i + 1 :], after), pairs)
    elif isinstance(part, Or):
        for i, child in enumerate(part.parts):
            for other in part.parts[i + 1 :]:
                _note(_ends(child).first, _ends(other).first, pairs)
            _walk(child, after, pairs)
    elif isinstance(part, Repeat):
        again = _ends(part.part).first
        if part.most is None or part.most > part.least:
            _note(again, after, pairs)
        _walk(part.part, after | again if part.most is None or part.most > 1 else after, pairs)


def _note(one: frozenset[str], other: frozenset[str], pairs: set[tuple[str, str]]) -> None:
    pairs.update((min(a, b), max(a, b)) for a in one for b in other if a != b)


def _first_of(parts: tuple[Part, ...], after: frozenset[str]) -> frozenset[str]:
    first: frozenset[str] = frozenset()
    for part in parts:
        ends = _ends(part)
        first |= ends.first
        if not ends.empty:
            return first
    return first | after


def _ends(part: Part) -> _FirstVariables:
    if isinstance(part, Bind):
        return _FirstVariables(frozenset() if part.variable == ANY else frozenset({part.variable}), False)
    if isinstance(part, Passed):
        return _FirstVariables(frozenset(), can_be_empty(part.part))
    if isinstance(part, Or):
        branches = [_ends(inner) for inner in part.parts]
        return _FirstVariables(
            frozenset().union(*(ends.first for ends in branches)), any(ends.empty for ends in branches)
        )
    if isinstance(part, Repeat):
        inner = _ends(part.part)
        return _FirstVariables(inner.first, inner.empty or part.least == 0)
    if isinstance(part, Then):
        return _FirstVariables(_first_of(part.parts, frozenset()), all(_ends(inner).empty for inner in part.parts))
    return _FirstVariables(frozenset(), True)


def unknown_words(tree: Node) -> Iterator[tuple[str, str]]:
    """What is wrong and a remedy, for each indicator, label, trait, tier and the like that is none.

    Signals are not among them: judges name their own, and a rule whose signal no row has is called not applicable.
    """
    for part in walk(tree):
        for kind, word in _asked(part):
            valid = _valid_words(kind)
            if word not in valid:
                yield f"no {kind} is named '{word}'", did_you_mean(word, _near(kind, word, valid))


def _asked(part: Node) -> Iterator[tuple[str, str]]:
    """The kind and the word of each quoted text that is compared with a closed set."""
    if isinstance(part, Call) and part.name in ("indicator", "flag"):
        yield from ((part.name, each.value) for each in part.arguments if isinstance(each, Text))
    elif isinstance(part, Compare):
        for field, text in ((part.left, part.right), (part.right, part.left)):
            if isinstance(field, Field) and field.name in TEXTS and isinstance(text, Text):
                yield field.name, text.value
    elif isinstance(part, OneOf) and isinstance(part.part, Field) and part.part.name in TEXTS:
        yield from ((part.part.name, option) for option in part.options if isinstance(option, str))


def _valid_words(kind: str) -> tuple[str, ...]:
    if kind == "indicator":
        return tuple(taxonomy().indicators)
    return (*TRAITS, *_labels()) if kind == "flag" else TEXTS[kind]


def _near(kind: str, word: str, valid: tuple[str, ...]) -> list[str]:
    """The names to choose from: of an indicator, those of its trait where there are some."""
    prefix = word.split("-")[0] + "-"
    return [name for name in valid if name.startswith(prefix)] or list(valid) if kind == "indicator" else list(valid)


@cache
def _labels() -> tuple[str, ...]:
    """The labels of all phrase groups, structural ones included."""
    files = [RULES / "structure.yaml", *sorted((RULES / "signals").glob("*.yaml"))]
    return tuple(sorted({group["label"] for file in files for group in load(file).value["groups"]}))
