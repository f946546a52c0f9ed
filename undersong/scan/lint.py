"""Phrase files checked: what ``undersong rules check`` prints about them, every problem with file and line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from undersong import rulebook
from undersong.errors import RuleError
from undersong.models import TRAITS
from undersong.scan.normalise import fold, is_word
from undersong.scan.phrases import STRUCTURE, TELEMETRY, PhraseFile, PhraseGroup, signal_files
from undersong.scan.rules import StructureRules, TelemetryRules
from undersong.scan.stems import stems
from undersong.taxonomy import taxonomy
from undersong.tiers import ROUTING, RoutingRules

CONSTANTS: dict[Path, type] = {STRUCTURE: StructureRules, TELEMETRY: TelemetryRules, ROUTING: RoutingRules}
STEMS = 4  # distinct stems of an indicator: fewer are one way of saying it, and a speaker has many
FIRES, PASSES = 3, 2  # cases of a group: two near-misses for three hits
Read = tuple[rulebook.YamlDocument, PhraseFile]


def check_signals(path: Path | None = None) -> list[RuleError]:
    """Every problem of every phrase file, in one run; ``path`` is a folder or a file, the shipped ones by default.

    An unreadable file is one problem and hides nothing of the others. Without ``path`` the constants of the scanner
    are read too, and each indicator must have a group or a reason why it has none.
    """
    problems: list[RuleError] = []
    read: list[Read] = []
    for file in signal_files(path):
        try:
            document = rulebook.load(file)
            read.append((document, rulebook.convert(document, PhraseFile)))
        except RuleError as error:
            problems.append(error)
    words = _function_words()
    for document, parsed in read:
        problems += _problems(document, parsed, words)
    return problems + ([*_uncovered(read), *_constants()] if path is None else [])


def _function_words() -> frozenset[str]:
    try:
        return frozenset(rulebook.read(STRUCTURE, StructureRules).function_words.split())
    except RuleError:
        return frozenset()  # the broken file is a problem of its own, see _constants


def _constants() -> Iterator[RuleError]:
    for path, kind in CONSTANTS.items():
        try:
            rulebook.read(path, kind)
        except RuleError as error:
            yield error


def _uncovered(read: Iterable[Read]) -> Iterator[RuleError]:
    """Indicators without a group and without a reason."""
    for document, file in read:
        has = {group.indicator for group in file.groups} | file.no_wording.keys()
        for id_, entry in taxonomy().indicators.items():
            if entry.trait == file.trait and id_ not in has:
                remedy = "write a group for it, or say under 'no_wording' why there is none"
                yield document.error(f"no phrase points to '{id_}'", "$.groups", remedy)


def _problems(document: rulebook.YamlDocument, file: PhraseFile, words: frozenset[str]) -> Iterator[RuleError]:
    traits = [*TRAITS, "hard_constraint"]
    if file.trait not in traits:
        yield document.error(f"unknown trait '{file.trait}'", "$.trait", rulebook.did_you_mean(file.trait, traits))
    for id_ in file.no_wording:
        yield from _indicator(document, file, id_, f"$.no_wording.{id_}")
    seen: dict[tuple[str, str], str] = {}
    for place, group in enumerate(file.groups):
        at = f"$.groups[{place}]"
        yield from _names(document, file, group, at)
        yield from _phrases(document, group, at, seen)
        yield from _counts(document, file, group, at, words)


def _names(document: rulebook.YamlDocument, file: PhraseFile, group: PhraseGroup, at: str) -> Iterator[RuleError]:
    if group.indicator is not None:
        yield from _indicator(document, file, group.indicator, f"{at}.indicator")
    if file.trait == "hard_constraint" and group.constraint not in taxonomy().hard_constraints:
        yield document.error("the group names no hard constraint", f"{at}.constraint", "write HC-01 to HC-07")
    if file.trait != "hard_constraint" and group.constraint is not None:
        yield document.error("only hard constraints have a 'constraint'", f"{at}.constraint", "remove the key")


def _indicator(document: rulebook.YamlDocument, file: PhraseFile, id_: str, at: str) -> Iterator[RuleError]:
    entry = taxonomy().indicators.get(id_)
    if entry is None or entry.trait != file.trait:
        of_trait = [name for name, other in taxonomy().indicators.items() if other.trait == file.trait]
        remedy = rulebook.did_you_mean(id_, of_trait) if of_trait else "remove the key"
        yield document.error(f"'{id_}' is no indicator of {file.trait}", at, remedy)


def _phrases(
    document: rulebook.YamlDocument, group: PhraseGroup, at: str, seen: dict[tuple[str, str], str]
) -> Iterator[RuleError]:
    for place, phrase in enumerate(group.phrases):
        where, folded = f"{at}.phrases[{place}]", fold(phrase).text.strip()
        if not any(map(is_word, folded)) or not folded.isprintable():
            yield document.error(f"'{phrase}' is no phrase", where, "write words, without line breaks")
        elif (group.label, folded) in seen:
            yield document.error(f"'{phrase}' stands twice under '{group.label}'", where, "keep one of them")
        seen[group.label, folded] = phrase


def _counts(
    document: rulebook.YamlDocument, file: PhraseFile, group: PhraseGroup, at: str, words: frozenset[str]
) -> Iterator[RuleError]:
    for kind, least in (("fires", FIRES), ("passes", PASSES)):
        number = len(getattr(group, kind))
        if number < least:
            what = f"'{group.label}' has {number} cases under '{kind}', fewer than {least}"
            yield document.error(what, f"{at}.{kind}", "write texts that must and must not fire")
    same = [
        other for other in file.groups if other is group or (group.indicator and other.indicator == group.indicator)
    ]
    number = len(stems((phrase for other in same for phrase in other.phrases), words))
    if number < STEMS:
        what = f"'{group.label}' has {number} distinct stems, fewer than {STEMS}"
        yield document.error(what, f"{at}.phrases", "write other ways of saying it, not variants")
