"""Phrase files checked and their cases run: what ``undersong rules check`` and ``rules test`` print."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from undersong import rulebook
from undersong.errors import RuleError
from undersong.models import TRAITS, Noun
from undersong.scan.normalise import fold, is_word
from undersong.scan.phrases import (
    STRUCTURE,
    TELEMETRY,
    Group,
    PhraseFile,
    SignalBook,
    load_book,
    phrases_of,
    signal_files,
)
from undersong.scan.rules import StructureRules, TelemetryRules
from undersong.tiers import ROUTING, RoutingRules

PREFIXES: dict[str, tuple[str, ...]] = {
    "virtue": ("VIR",), "goodwill": ("GDW",), "manipulation": ("MAN",), "deception": ("DEC",),
    "accuracy": ("ACC",), "reasoning": ("RSN",), "fabrication": ("FAB",), "broken_logic": ("BLG",),
    "recognition": ("REC",), "compassion": ("CMP", "PRE"), "dismissal": ("DIS",), "exploitation": ("EXP",),
}  # fmt: skip
CONSTANTS: dict[Path, type] = {STRUCTURE: StructureRules, TELEMETRY: TelemetryRules, ROUTING: RoutingRules}
CONSTRAINTS = frozenset(f"HC-0{number}" for number in range(1, 8))


class CaseResult(Noun, frozen=True, kw_only=True):
    """One case of a phrase file: the label that ``fires`` expects (None for ``passes``), and the labels it gave."""

    where: str
    kind: Literal["fires", "passes"]
    text: str
    expected: str | None
    labels: tuple[str, ...]
    ok: bool


def check_signals(path: Path | None = None) -> list[RuleError]:
    """Every problem of every phrase file, in one run; ``path`` is a folder or a file, the shipped ones by default.

    An unreadable file is one problem and hides nothing of the others. Without ``path`` the constants of the scanner
    are read too.
    """
    problems: list[RuleError] = []
    for file in signal_files(path):
        try:
            document = rulebook.load(file)
            parsed = rulebook.convert(document, PhraseFile)
        except RuleError as error:
            problems.append(error)
        else:
            problems += _problems(document, parsed)
    return problems + (_constants() if path is None else [])


def test_signals(path: Path | None = None) -> list[CaseResult]:  # noqa: PT028 - a verb of the rules, not a pytest test
    """Run the cases of every phrase file against the phrases of that file; raises RuleError for a broken one.

    A ``fires`` case must give a hit with its label, a ``passes`` case no hit at all.
    """
    results: list[CaseResult] = []
    for file in signal_files(path):
        document = rulebook.load(file)
        results += _results(document, rulebook.convert(document, PhraseFile))
    return results


test_signals.__test__ = False  # type: ignore[attr-defined]


def _results(document: rulebook.Located, file: PhraseFile) -> Iterator[CaseResult]:
    shipped = load_book()
    book = SignalBook(phrases_of(file), shipped.structure, shipped.telemetry, shipped.routing, {})
    for place, case in enumerate(file.fires):
        labels = _labels(book, case.text)
        where = f"{document.path}:{document.line(f'$.fires[{place}]')}"
        ok = case.label in labels
        yield CaseResult(where=where, kind="fires", text=case.text, expected=case.label, labels=labels, ok=ok)
    for place, text in enumerate(file.passes):
        labels = _labels(book, text)
        where = f"{document.path}:{document.line(f'$.passes[{place}]')}"
        yield CaseResult(where=where, kind="passes", text=text, expected=None, labels=labels, ok=not labels)


def _labels(book: SignalBook, text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(hit.label for hit in book.hits(fold(text))))


def _constants() -> list[RuleError]:
    problems = []
    for path, kind in CONSTANTS.items():
        try:
            rulebook.read(path, kind)
        except RuleError as error:
            problems.append(error)
    return problems


def _problems(document: rulebook.Located, file: PhraseFile) -> Iterator[RuleError]:
    if file.trait not in (*TRAITS, "hard_constraint"):
        known = [*TRAITS, "hard_constraint"]
        yield document.error(f"unknown trait '{file.trait}'", "$.trait", rulebook.did_you_mean(file.trait, known))
    labels = {group.label for group in file.groups}
    for place, case in enumerate(file.fires):
        if case.label not in labels:
            remedy = rulebook.did_you_mean(case.label, sorted(labels))
            yield document.error(f"no group has the label '{case.label}'", f"$.fires[{place}].label", remedy)
    for cases in ("fires", "passes"):
        if not getattr(file, cases):
            yield document.error(f"no cases under '{cases}'", f"$.{cases}", "write texts that must and must not fire")
    seen: dict[tuple[str, str], str] = {}
    for place, group in enumerate(file.groups):
        yield from _group_problems(document, file, group, f"$.groups[{place}]")
        yield from _phrase_problems(document, group, f"$.groups[{place}]", seen)


def _group_problems(document: rulebook.Located, file: PhraseFile, group: Group, at: str) -> Iterator[RuleError]:
    prefix = (group.indicator or "").split("-")[0]
    if group.indicator is not None and prefix not in PREFIXES.get(file.trait, ()):
        yield document.error(
            f"'{group.indicator}' is no indicator of {file.trait}", f"{at}.indicator", "see the taxonomy"
        )
    if file.trait == "hard_constraint" and group.constraint not in CONSTRAINTS:
        yield document.error("the group names no hard constraint", f"{at}.constraint", "write HC-01 to HC-07")
    if file.trait != "hard_constraint" and group.constraint is not None:
        yield document.error("only hard constraints have a 'constraint'", f"{at}.constraint", "remove the key")


def _phrase_problems(
    document: rulebook.Located, group: Group, at: str, seen: dict[tuple[str, str], str]
) -> Iterator[RuleError]:
    for place, phrase in enumerate(group.phrases):
        where, folded = f"{at}.phrases[{place}]", fold(phrase).text.strip()
        if not any(map(is_word, folded)) or not folded.isprintable():
            yield document.error(f"'{phrase}' is no phrase", where, "write words, without line breaks")
        elif (group.label, folded) in seen:
            yield document.error(f"'{phrase}' stands twice under '{group.label}'", where, "keep one of them")
        seen[group.label, folded] = phrase
