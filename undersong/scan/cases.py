"""The cases beside the phrases, run: what ``undersong rules test`` prints."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from undersong import rulebook
from undersong.models import Record
from undersong.scan.normalise import fold
from undersong.scan.phrases import PhraseFile, SignalBook, load_book, phrases_of, signal_files


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
        document = rulebook.load(file)
        results += _results(document, rulebook.convert(document, PhraseFile))
    return results


test_signals.__test__ = False  # type: ignore[attr-defined]


def _results(document: rulebook.YamlDocument, file: PhraseFile) -> Iterator[PhraseCaseResult]:
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


def _texts(document: rulebook.YamlDocument, texts: tuple[str, ...], at: str) -> Iterator[tuple[str, str]]:
    for place, text in enumerate(texts):
        yield text, f"{document.path}:{document.line(f'{at}[{place}]')}"


def _passing(book: SignalBook, text: str, where: str) -> PhraseCaseResult:
    labels = _labels(book, text)
    return PhraseCaseResult(where=where, kind="passes", text=text, expected=None, labels=labels, ok=not labels)


def _labels(book: SignalBook, text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(hit.label for hit in book.hits(fold(text))))
