"""Phrase files checked: what ``undersong rules check`` prints about them, every problem with file and line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from undersong.datafiles import yaml_loader
from undersong.datafiles.scan_config import ROUTING, RoutingRules, StructureRules, TelemetryRules
from undersong.datafiles.taxonomy import taxonomy
from undersong.errors import RuleError
from undersong.models import TRAITS, Record
from undersong.scan.phrases import (
    STRUCTURE,
    TELEMETRY,
    PhraseFile,
    PhraseGroup,
    SignalBook,
    load_book,
    phrases_of,
    signal_files,
)
from undersong.scan.unicode_fold import fold, is_word

CONSTANTS: dict[Path, type] = {STRUCTURE: StructureRules, TELEMETRY: TelemetryRules, ROUTING: RoutingRules}
STEMS = 4  # distinct stems of an indicator: fewer are one way of saying it, and a speaker has many
FIRES, PASSES = 3, 2  # cases of a group: two near-misses for three hits
Read = tuple[yaml_loader.YamlDocument, PhraseFile]


def check_signals(path: Path | None = None) -> list[RuleError]:
    """Every problem of every phrase file, in one run; ``path`` is a folder or a file, the shipped ones by default.

    An unreadable file is one problem and hides nothing of the others. Without ``path`` the constants of the scanner
    are read too, and each indicator must have a group or a reason why it has none.
    """
    problems: list[RuleError] = []
    read: list[Read] = []
    for file in signal_files(path):
        try:
            document = yaml_loader.load(file)
            read.append((document, yaml_loader.convert(document, PhraseFile)))
        except RuleError as error:
            problems.append(error)
    words = _function_words()
    for document, parsed in read:
        problems += _problems(document, parsed, words)
    return problems + ([*_uncovered(read), *_constants()] if path is None else [])


def _function_words() -> frozenset[str]:
    try:
        return frozenset(yaml_loader.read(STRUCTURE, StructureRules).function_words.split())
    except RuleError:
        return frozenset()  # the broken file is a problem of its own, see _constants


def _constants() -> Iterator[RuleError]:
    for path, kind in CONSTANTS.items():
        try:
            yaml_loader.read(path, kind)
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


def _problems(document: yaml_loader.YamlDocument, file: PhraseFile, words: frozenset[str]) -> Iterator[RuleError]:
    traits = [*TRAITS, "hard_constraint"]
    if file.trait not in traits:
        yield document.error(f"unknown trait '{file.trait}'", "$.trait", yaml_loader.did_you_mean(file.trait, traits))
    for id_ in file.no_wording:
        yield from _indicator(document, file, id_, f"$.no_wording.{id_}")
    seen: dict[tuple[str, str], str] = {}
    for place, group in enumerate(file.groups):
        at = f"$.groups[{place}]"
        yield from _names(document, file, group, at)
        yield from _phrases(document, group, at, seen)
        yield from _counts(document, file, group, at, words)


def _names(document: yaml_loader.YamlDocument, file: PhraseFile, group: PhraseGroup, at: str) -> Iterator[RuleError]:
    if group.indicator is not None:
        yield from _indicator(document, file, group.indicator, f"{at}.indicator")
    if file.trait == "hard_constraint" and group.constraint not in taxonomy().hard_constraints:
        yield document.error("the group names no hard constraint", f"{at}.constraint", "write HC-01 to HC-07")
    if file.trait != "hard_constraint" and group.constraint is not None:
        yield document.error("only hard constraints have a 'constraint'", f"{at}.constraint", "remove the key")


def _indicator(document: yaml_loader.YamlDocument, file: PhraseFile, id_: str, at: str) -> Iterator[RuleError]:
    entry = taxonomy().indicators.get(id_)
    if entry is None or entry.trait != file.trait:
        of_trait = [name for name, other in taxonomy().indicators.items() if other.trait == file.trait]
        remedy = yaml_loader.did_you_mean(id_, of_trait) if of_trait else "remove the key"
        yield document.error(f"'{id_}' is no indicator of {file.trait}", at, remedy)


def _phrases(
    document: yaml_loader.YamlDocument, group: PhraseGroup, at: str, seen: dict[tuple[str, str], str]
) -> Iterator[RuleError]:
    for place, phrase in enumerate(group.phrases):
        where, folded = f"{at}.phrases[{place}]", fold(phrase).text.strip()
        if not any(map(is_word, folded)) or not folded.isprintable():
            yield document.error(f"'{phrase}' is no phrase", where, "write words, without line breaks")
        elif (group.label, folded) in seen:
            yield document.error(f"'{phrase}' stands twice under '{group.label}'", where, "keep one of them")
        seen[group.label, folded] = phrase


def _counts(
    document: yaml_loader.YamlDocument, file: PhraseFile, group: PhraseGroup, at: str, words: frozenset[str]
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


class PhraseCaseResult(Record, frozen=True, kw_only=True):
    """One case of a phrase file: the label that ``fires`` expects (None for ``passes``), and the labels it gave."""

    where: str
    kind: Literal["fires", "passes"]
    text: str
    expected: str | None
    labels: tuple[str, ...]
    ok: bool


def test_signals(path: Path | None = None) -> list[PhraseCaseResult]:  # noqa: PT028 - a verb of the rules, not a pytest test
    """Run the cases of every phrase file against the phrases of that file; raises RuleError for a broken one.

    A ``fires`` case must give a hit with its label, a ``passes`` case no hit at all.
    """
    results: list[PhraseCaseResult] = []
    for file in signal_files(path):
        document = yaml_loader.load(file)
        results += _results(document, yaml_loader.convert(document, PhraseFile))
    return results


test_signals.__test__ = False  # type: ignore[attr-defined]


def _results(document: yaml_loader.YamlDocument, file: PhraseFile) -> Iterator[PhraseCaseResult]:
    shipped = load_book()
    book = SignalBook(phrases_of(file), shipped.structure, shipped.telemetry, shipped.routing, {})
    for place, group in enumerate(file.groups):
        for text, where in _texts(document, group.fires, f"$.groups[{place}].fires"):
            labels = _labels(book, text)
            ok = group.label in labels
            yield PhraseCaseResult(where=where, kind="fires", text=text, expected=group.label, labels=labels, ok=ok)
        for text, where in _texts(document, group.passes, f"$.groups[{place}].passes"):
            yield _passing(book, text, where)
    for text, where in _texts(document, file.passes, "$.passes"):
        yield _passing(book, text, where)


def _texts(document: yaml_loader.YamlDocument, texts: tuple[str, ...], at: str) -> Iterator[tuple[str, str]]:
    for place, text in enumerate(texts):
        yield text, f"{document.path}:{document.line(f'{at}[{place}]')}"


def _passing(book: SignalBook, text: str, where: str) -> PhraseCaseResult:
    labels = _labels(book, text)
    return PhraseCaseResult(where=where, kind="passes", text=text, expected=None, labels=labels, ok=not labels)


def _labels(book: SignalBook, text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(hit.label for hit in book.hits(fold(text))))


_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_ENDING = re.compile(r"(?<=\w{3})(?:ing|ed|es|s|e|ly)$")


def stem(phrase: str, function_words: frozenset[str]) -> frozenset[str]:
    """The content words of a phrase without endings; all its words where none is a content word.

    >>> words = frozenset({"you", "are", "you're", "all", "your"})
    >>> stem("You are imagining things", words) == stem("you're imagining all your things", words)
    True
    """
    words = _WORD.findall(fold(phrase).text)
    content = [word for word in words if word not in function_words and word.split("'")[0] not in function_words]
    return frozenset(_ENDING.sub("", word.split("'")[0]) for word in content or words)


def stems(phrases: Iterable[str], function_words: frozenset[str]) -> set[frozenset[str]]:
    """The distinct stems of some phrases."""
    return {stem(phrase, function_words) for phrase in phrases}
