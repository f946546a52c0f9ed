"""A pattern in words for the person who decides: which rule found it, its stages, and what suffices for it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from undersong.models import Finding
from undersong.patterns.catalog import all_rules
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.language.rulefile import ShapeFile
from undersong.report.opening_phrases import name_of
from undersong.report.stage_book import stage_book

NAMES, PASSED_OVER = re.compile(r"\b[A-Z][A-Z_0-9]+\b"), re.compile(r"\{-.*?-\}", re.S)  # in the PATTERN of a rule
FILLERS = frozenset({"ANY", "OTHER", "PERMUTE"})
_SENTENCE = re.compile(r"(?<=[.;])\s+")
_CODE = re.compile(r" (?:[A-Z]{2,3}-\d+|\([^()]*\d\.?\d*[^()]*\))")  # PAT-02, (goodwill of .6 and more)
_TECHNICAL = re.compile(r"(?<!\w)\.\d|\d\.\d|\w/\w|\.(?:md|py|ya?ml)\b|`")


def rule_of(finding: Finding) -> PatternRule | None:
    """The rule that found it, None where today's rules are others."""
    return _by_hash(all_rules()).get(finding.rule_hash)


@lru_cache(maxsize=1)
def _by_hash(rules: tuple[PatternRule, ...]) -> Mapping[str, PatternRule]:
    return {rule.hash: rule for rule in rules[::-1]}


def found_by(finding: Finding) -> str:
    """Which of the rules of its pattern found it, or that a reader did: ``found by the rule “by indicators”``."""
    if finding.is_read:
        return "found by reading the whole sequence"
    rule = rule_of(finding)
    if rule is None:
        return "found by a rule that is not among those of today"
    variant = rule.id.removeprefix(rule.pattern).strip("_").replace("_", " ")
    return f"found by the rule “{variant}”" if variant else "found by the main rule"


def shape_of(finding: Finding) -> ShapeFile | None:
    """The pattern in prose, of the rule itself or of the one that the pattern is named by."""
    rules = (rule_of(finding), *(other for other in all_rules() if other.id == finding.pattern))
    return next((one.file.reading for one in rules if one and one.file.reading), None)


def stage_of(finding: Finding, name: str) -> str:
    """A stage of a finding in lower case, by the name that readers have for it."""
    return stage_book().readers.get(finding.pattern, {}).get(name.lower(), name.lower())


def stage_words(finding: Finding) -> dict[str, str]:
    """Stage → what messages of it do: in a reader's words, else in those of ``stages.yaml``."""
    shape = shape_of(finding)
    return stage_book().shows | {
        stage.name.lower(): " ".join(stage.shows.split()) for stage in (shape.stages if shape else ())
    }


def asked_stages(finding: Finding) -> tuple[str, ...]:
    """The stages that the reader or rule looks for, in the order of the pattern, and any other of the finding."""
    own = dict.fromkeys(name.lower() for name, _ in finding.stages)
    rule, shape = rule_of(finding), shape_of(finding)
    if finding.is_read and shape is not None:
        names: Iterable[str] = (stage.name for stage in shape.stages)
    elif rule is not None and own:
        names = NAMES.findall(PASSED_OVER.sub("", rule.file.pattern or ""))
    else:
        return tuple(dict.fromkeys(stage_of(finding, name) for name in own)) or ("messages",)
    every = (name.lower() for name in (*names, *own) if name.upper() not in FILLERS or name.lower() in own)
    return tuple(dict.fromkeys(stage_of(finding, name) for name in every))


def stage_names(finding: Finding) -> tuple[str, ...]:
    """Those, and then the other stages of the pattern in a reader's words, seen or not."""
    shape = shape_of(finding)
    read = (stage.name.lower() for stage in (shape.stages if shape else ()))
    return tuple(dict.fromkeys((*asked_stages(finding), *read)))


def any_order(finding: Finding) -> bool:
    """Whether the rule takes some of its stages in any order."""
    rule = rule_of(finding)
    return not finding.is_read and rule is not None and "PERMUTE" in (rule.file.pattern or "")


def enough_words(finding: Finding, home: str) -> str:
    """What suffices to confirm it."""
    shape, who = shape_of(finding), name_of(finding.agent, home)
    names = [stage.name for stage in shape.stages] if shape else [*stage_names(finding)]
    stages = " and ".join(filter(None, (", ".join(names[:-1]), names[-1]))).replace("_", " ")
    single = names == ["messages"] or not names
    what = "the pattern" if single else stages
    return f"Enough to confirm: what {who} wrote shows {what}, whichever messages they are in."


def rule_paragraphs(finding: Finding) -> Iterator[str]:
    """The pattern and its rule without numbers, files and terms of the rule language."""
    shape, rule = shape_of(finding), rule_of(finding)
    if shape is not None:
        yield " ".join(shape.shape.split())
    if rule is None:
        return
    if words := plain(rule.file.description):
        yield f"The rule looks for: {words[:1].lower()}{words[1:]}" if shape is not None else words


def plain(text: str) -> str:
    """The sentences that somebody understands who does not know how rules are written and measured."""
    sentences = _SENTENCE.split(_CODE.sub("", " ".join(text.split())))
    return " ".join(one for one in sentences if not _TECHNICAL.search(one)).rstrip(";")
