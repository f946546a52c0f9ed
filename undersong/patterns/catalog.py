"""The catalog of pattern rules: rule files are loaded, compiled, and chosen by id or alias.

rule file → language.compile.compile_rule → PatternRule
rows → reference.partitions.timelines → reference.search.search(rule, timelines) → matches
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from undersong.datafiles.stored import stored
from undersong.datafiles.yaml_loader import RULES, did_you_mean, file_hash, load
from undersong.errors import RuleError, UsageError
from undersong.patterns.language.compile import CheckedRule, PatternRule, check_rule

__all__ = ["FOLDER", "PatternRule", "all_rules", "load_rules", "named", "repeated", "rule_files", "rule_hashes"]
FOLDER = RULES / "patterns"


def rule_files(paths: Sequence[str | Path] | None = None) -> tuple[Path, ...]:
    """The pattern files of files and folders (None: the shipped ones), sorted within a folder."""
    files: list[Path] = []
    for path in map(Path, paths if paths is not None else [FOLDER]):
        if not path.exists():
            raise RuleError(
                "there is no such file or folder", where=str(path), remedy="name a .yaml file or a folder of them"
            )
        files += sorted(path.glob("*.yaml")) if path.is_dir() else [path]
    if not files:
        raise RuleError(
            "holds no pattern file", where=", ".join(map(str, paths or ())), remedy="pattern files end in .yaml"
        )
    return tuple(files)


def all_rules(paths: Sequence[str | Path] | None = None) -> tuple[PatternRule, ...]:
    """Every rule, also those that are off by default; raises RuleError at the first problem."""
    if paths is None:
        return _shipped()
    return _distinct([(file, _rule_of(file)) for file in rule_files(paths)])


def load_rules(paths: Sequence[str | Path] | None = None, names: Iterable[str] = ()) -> tuple[PatternRule, ...]:
    """The rules that are on by default, or those with the given names (ids or aliases), on or off."""
    rules = all_rules(paths)
    wanted = tuple(names)
    if not wanted:
        return tuple(rule for rule in rules if rule.file.enabled)
    chosen = {rule.id: rule for rule in (named(rules, name) for name in wanted)}
    return tuple(chosen.values())


def chosen_rules(requested: Sequence[PatternRule | str] | str | None) -> tuple[PatternRule, ...]:
    """Rules and names of shipped ones as rules; None: those that are on. Raises UsageError for an unknown name."""
    if requested is None:
        return load_rules()
    several = (requested,) if isinstance(requested, str) else requested
    return tuple(named(all_rules(), each) if isinstance(each, str) else each for each in several)


def other_ways(rules: Iterable[PatternRule]) -> frozenset[str]:
    """The hashes of shipped rules that find a pattern of ``rules`` in another way and are not among them."""
    chosen = tuple(rules)
    patterns = {rule.pattern for rule in chosen}
    return frozenset(rule.hash for rule in all_rules() if rule.pattern in patterns) - {rule.hash for rule in chosen}


def named(rules: Iterable[PatternRule], name: str) -> PatternRule:
    """The rule with an id or alias; raises UsageError with the nearest name."""
    by_name: dict[str, PatternRule] = {}
    for rule in rules:
        by_name |= dict.fromkeys((rule.id, *rule.file.aliases), rule)
    if name not in by_name:
        raise UsageError(f"unknown rule '{name}'", remedy=did_you_mean(name, list(by_name)))
    return by_name[name]


@lru_cache(maxsize=1)
def _shipped() -> tuple[PatternRule, ...]:
    """The rules of this package, read and checked once for all programs."""
    files = rule_files()
    contents = b"\0".join(file.read_bytes() for file in files)
    checked = stored(
        "patterns", contents, tuple[CheckedRule, ...], lambda: tuple(check_rule(load(file)) for file in files)
    )
    ready = [(file, rule.ready(file_hash(file))) for file, rule in zip(files, checked, strict=True)]
    return _distinct(ready)


def rule_hashes(rules: Iterable[PatternRule]) -> dict[str, str]:
    """Of each rule two SHA-256, for the manifest: ``patterns/ID`` of its meaning, ``patterns/ID.yaml`` of its file."""
    hashes: dict[str, str] = {}
    for rule in rules:
        hashes |= {f"patterns/{rule.id}": rule.hash, f"patterns/{rule.id}.yaml": rule.source}
    return hashes


def _rule_of(file: Path) -> PatternRule:
    try:
        source = file_hash(file)
    except OSError:
        source = ""  # to load it says why
    return _compiled(file, source)


@lru_cache(maxsize=512)  # verify asks for the same rules again and again
def _compiled(file: Path, source: str) -> PatternRule:
    return check_rule(load(file)).ready(source)


def _distinct(rules: list[tuple[Path, PatternRule]]) -> tuple[PatternRule, ...]:
    problem = next(iter(repeated(rules)), None)
    if problem:
        raise problem
    return tuple(rule for _, rule in rules)


def repeated(rules: Iterable[tuple[Path, PatternRule]]) -> list[RuleError]:
    """A problem for every id or alias that an earlier file has taken."""
    owners: dict[str, Path] = {}
    problems = []
    for file, rule in rules:
        for name in (rule.id, *rule.file.aliases):
            if name in owners:
                what = f"the name '{name}' is taken by {owners[name]}"
                problems.append(RuleError(what, where=f"{file}:1", remedy="choose another id or alias"))
            owners[name] = file
    return problems
