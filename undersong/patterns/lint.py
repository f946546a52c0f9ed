"""`undersong rules check`: every problem of every pattern file in one run, each with file, line and remedy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from undersong.errors import RuleError
from undersong.models import Record
from undersong.patterns import repeated, rule_files, sequences
from undersong.patterns.cases import run_rule_tests
from undersong.patterns.expressions import Both, Field, Member, Truth, parse, walk
from undersong.patterns.needs import inserted, written_out
from undersong.patterns.neighbours import ambiguous_pairs
from undersong.patterns.never import beyond_anchors, never_holds
from undersong.patterns.quoted import unknown_words
from undersong.patterns.ranges import disjoint, impossible
from undersong.patterns.rulefile import written
from undersong.patterns.rules import PatternRule, try_rule
from undersong.rulebook import YamlDocument, load


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
    return tuple(lints)


def _remarks(document: YamlDocument, rule: PatternRule) -> Iterator[Lint]:
    yield from _unused(document, rule)
    yield from _words(document, rule)
    yield from _conditions(document, rule)
    yield from _never(document, rule)
    yield from _bounds(document, rule)
    yield from _cases(document, rule)


def _unused(document: YamlDocument, rule: PatternRule) -> Iterator[Lint]:
    used = sequences.variables(sequences.parse(rule.file.pattern))
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


def _words(document: YamlDocument, rule: PatternRule) -> Iterator[Lint]:
    file = rule.file
    places: dict[str, Any] = {"$.where": file.where, "$.until": file.until}
    for clause, texts in (("columns", file.columns), ("define", file.define), ("measures", file.measures)):
        places |= {f"$.{clause}.{name}": text for name, text in texts.items()}
    places |= {f"$.having[{i}]": text for i, text in enumerate(file.having)}
    for path, text in places.items():
        for what, remedy in unknown_words(parse(written(text))) if text is not None else ():
            yield _warning(document, "unknown-word", path, what, remedy)


def _conditions(document: YamlDocument, rule: PatternRule) -> Iterator[Lint]:
    columns = written_out(rule.trees.columns)
    trees = {name: inserted(tree, columns) for name, tree in zip(rule.names, rule.trees.define, strict=True)}
    where = Truth(True) if rule.trees.where is None else rule.trees.where
    for name, tree in trees.items():
        if impossible(tree) or (impossible(Both((where, tree))) and not impossible(where)):
            what = f"no row can be '{name}': its condition contradicts {'itself' if impossible(tree) else 'where'}"
            yield _warning(document, "unreachable-variable", f"$.define.{name}", what, "correct or delete it")
    possible = sorted(ambiguous_pairs(sequences.parse(rule.file.pattern)))
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
    part = sequences.parse(rule.file.pattern)
    if rule.within == 0:
        what = f"'{rule.file.within}' leaves rows of one and the same moment alone"
        yield _warning(
            document, "empty-bound", "$.within", what, "name the time that a match may take, or leave it out"
        )
    if sequences.tolerant(part) and rule.within is None:
        what = "the pattern passes over rows or repeats without end, and nothing bounds it in time"
        yield _warning(document, "missing-bound", "$.pattern", what, "add within, such as within: 21 days")
    if sequences.open_end(part) and rule.within is None:
        what = "the end of a match stays undecided until the rows end"
        yield _warning(document, "undecidable-end", "$.pattern", what, "close it with {n,m}, a reluctant ? or within")
    if rule.file.keep == "strongest" and rule.within is None:
        what = "a later match may be stronger, so none is decided until the rows end"
        yield _warning(document, "undecidable-end", "$.keep", what, "add within, such as within: 21 days")


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
