"""Dictionary matching (Aho-Corasick) of phrases in folded text, between word boundaries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from ahocorasick_rs import BytesAhoCorasick, Implementation

from undersong.datafiles import yaml_loader
from undersong.datafiles.scan_config import ROUTING, RoutingRules, StructureRules, TelemetryRules, routing_rules
from undersong.errors import RuleError
from undersong.ml.triage import FILE as TRIAGE_FILE
from undersong.ml.triage import TALK_FILE, RoleTriage, load_triage
from undersong.models import Hit
from undersong.scan.ngram_loops import LoopFinder
from undersong.scan.text_batch import TextBatch
from undersong.scan.unicode_fold import BREAK, Folded, fold, is_word

_ASCII_WORD = tuple(is_word(chr(code)) for code in range(128))
HEAD = 14  # bytes by which a string is found before it is compared as a whole; shorter heads are found too often
LEAD_2, LEAD_3, LEAD_4 = 0xC0, 0xE0, 0xF0  # first bytes of UTF-8 sequences of that length


class Needle(NamedTuple):
    """A folded phrase; ``boundless`` is for scripts without spaces, where a word has no visible edge."""

    text: str
    boundless: bool = False


class Needles:
    """The needles of a book with the Aho-Corasick automaton that finds their heads: linear in the text.

    With whole strings its table is several times as large, and what the processor's cache does not hold makes it
    slow: of natural text a third is saved.
    """

    def __init__(self, needles: Iterable[Needle]) -> None:
        self._bounded: list[tuple[bool, bool]] = []
        by_head: dict[bytes, dict[bytes, list[int]]] = {}
        for index, one in enumerate(needles):
            self._bounded.append(
                (not one.boundless and is_word(one.text[0]), not one.boundless and is_word(one.text[-1]))
            )
            string = one.text.encode()
            by_head.setdefault(string[:HEAD], {}).setdefault(string, []).append(index)
        self._by_head = tuple(by_head.values())
        self._automaton = BytesAhoCorasick(list(by_head), implementation=Implementation.DFA)

    def find(self, data: bytes) -> list[tuple[int, int, int]]:
        """(start, end, index of the needle) wherever one stands between word boundaries, in order.

        ``data`` is folded text as UTF-8 that begins and ends with BREAK.
        """
        return sorted(
            (start, start + len(string), index)
            for head, start, _ in self._automaton.find_matches_as_indexes(data, overlapping=True)
            for string, indexes in self._by_head[head].items()
            if data.startswith(string, start)
            for index in indexes
            if self._stands_alone(data, index, start, start + len(string))
        )

    def _stands_alone(self, data: bytes, index: int, start: int, end: int) -> bool:
        before, after = self._bounded[index]
        return not (before and _word_before(data, start)) and not (after and _word_after(data, end))


def _word_before(data: bytes, at: int) -> bool:
    if data[at - 1] < 0x80:
        return _ASCII_WORD[data[at - 1]]
    first = at - 1
    while data[first] < LEAD_2:
        first -= 1
    return is_word(data[first:at].decode())


def _word_after(data: bytes, at: int) -> bool:
    lead = data[at]
    if lead < 0x80:
        return _ASCII_WORD[lead]
    return is_word(data[at : at + (2 if lead < LEAD_3 else 3 if lead < LEAD_4 else 4)].decode())


SIGNALS = yaml_loader.RULES / "signals"
STRUCTURE = yaml_loader.RULES / "structure.yaml"
TELEMETRY = yaml_loader.RULES / "telemetry.yaml"


class _PhraseFileSection(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of the parts of a phrase file."""


class PhraseGroup(_PhraseFileSection, frozen=True, kw_only=True):
    """Phrases of one kind: ``boundless`` for scripts without spaces between words.

    Each text of ``fires`` must give a hit with this label, each near-miss of ``passes`` no hit of the file at all.
    """

    label: str
    phrases: tuple[str, ...]
    fires: tuple[str, ...]
    passes: tuple[str, ...]
    indicator: str | None = None
    constraint: str | None = None
    boundless: bool = False


class PhraseFile(_PhraseFileSection, frozen=True, kw_only=True):
    """``rules/signals/<trait>.yaml``; ``no_wording`` says which indicators no phrase can reveal, and why.

    ``passes`` are near-misses of the file that belong to no one group.
    """

    trait: str
    why: str
    groups: tuple[PhraseGroup, ...]
    passes: tuple[str, ...] = ()
    no_wording: dict[str, str] = {}


class Phrase(NamedTuple):
    """One phrase of the book."""

    text: str
    trait: str
    label: str
    indicator: str | None = None
    constraint: str | None = None
    boundless: bool = False

    def hit(self, start: int, end: int) -> Hit:
        """A Hit of this phrase at a verbatim span."""
        return Hit(
            trait=self.trait,
            label=self.label,
            phrase=self.text,
            start=start,
            end=end,
            indicator=self.indicator,
            constraint=self.constraint,
        )


class SignalBook:
    """All phrases, thresholds and constants of the scanner; ``hashes`` maps file names to their SHA-256.

    Without a ``triage`` model the scans have no triage score.
    """

    def __init__(
        self,
        phrases: Iterable[Phrase],
        structure: StructureRules,
        telemetry: TelemetryRules,
        routing: RoutingRules,
        hashes: dict[str, str],
        triage: RoleTriage | None = None,
    ) -> None:
        self.phrases = tuple(phrases)
        self.structure, self.telemetry, self.routing, self.hashes = structure, telemetry, routing, hashes
        self.triage = triage
        self.loops = LoopFinder(structure)
        by_needle: dict[Needle, list[Phrase]] = {}
        for phrase, needle in zip(self.phrases, needles_of(self.phrases), strict=True):
            by_needle.setdefault(needle, []).append(phrase)
        self._by_needle = tuple(by_needle.values())
        self._needles = Needles(by_needle)

    def __reduce__(self) -> tuple[Any, ...]:
        """The shipped book goes to another process by its hashes, any other one as what it was made of."""
        if self is load_book():
            return _shipped_book, (self.hashes,)
        parts = self.phrases, self.structure, self.telemetry, self.routing, self.hashes, self.triage
        return SignalBook, parts

    def hits(self, folded: Folded) -> tuple[Hit, ...]:
        """The hits of a text in order of appearance; one inside a longer one of the same trait and label is dropped."""
        return self.hits_of(TextBatch([folded])).get(0, ())

    def hits_of(self, block: TextBatch) -> dict[int, tuple[Hit, ...]]:
        """The hits of every text of a block that has any, by its index."""
        matches = self._needles.find(block.data)
        if not matches:
            return {}
        hits: dict[int, list[Hit]] = {}
        starts, ends, needles = zip(*matches, strict=True)
        for index, (text, span) in zip(needles, block.spans(starts, ends), strict=True):
            if span is not None:
                hits.setdefault(text, []).extend(phrase.hit(*span) for phrase in self._by_needle[index])
        return {text: _outermost(own) for text, own in hits.items()}


def needles_of(phrases: Sequence[Phrase]) -> list[Needle]:
    """What the matcher looks for: the folded phrases, folded as one text since that takes a tenth of the time."""
    if not phrases:
        return []
    folded = fold(BREAK.join(" ".join(phrase.text.split()) for phrase in phrases)).text.split(BREAK)
    return [Needle(text.strip(), phrase.boundless) for text, phrase in zip(folded, phrases, strict=True)]


def phrases_of(file: PhraseFile) -> list[Phrase]:
    """The phrases of one file."""
    return [
        Phrase(text, file.trait, group.label, group.indicator, group.constraint, group.boundless)
        for group in file.groups
        for text in group.phrases
    ]


def structure_phrases(rules: StructureRules) -> list[Phrase]:
    """The apology, correction, empathy and claim tokens."""
    return [Phrase(text, "structure", group.label) for group in rules.groups for text in group.phrases]


def signal_files(path: Path | None = None) -> list[Path]:
    """The phrase files: the shipped ones, those of a folder, or one file."""
    path = path or SIGNALS
    return [path] if path.is_file() else sorted(path.glob("*.yaml"))


@cache
def load_book() -> SignalBook:
    """The shipped book, read once; raises RuleError with file and line."""
    paths = signal_files()
    structure = yaml_loader.read(STRUCTURE, StructureRules)
    files = [yaml_loader.read(path, PhraseFile) for path in paths]
    phrases = [phrase for file in files for phrase in phrases_of(file)] + structure_phrases(structure)
    hashes = {
        str(path.relative_to(yaml_loader.RULES)): yaml_loader.file_hash(path)
        for path in [*paths, STRUCTURE, TELEMETRY, ROUTING]
    }
    telemetry = yaml_loader.read(TELEMETRY, TelemetryRules)
    (posts, posts_hash), (talk, talk_hash) = load_triage(), load_triage(file=TALK_FILE)
    hashes |= {f"triage/{TRIAGE_FILE}": posts_hash, f"triage/{TALK_FILE}": talk_hash}
    return SignalBook(phrases, structure, telemetry, routing_rules(), hashes, RoleTriage(posts, talk))


def _shipped_book(hashes: dict[str, str]) -> SignalBook:
    """The shipped book of this process; raises RuleError where another one was meant."""
    book = load_book()
    if book.hashes != hashes:
        remedy = "install one version of undersong on all machines"
        raise RuleError("the phrases in this process are other ones", remedy=remedy)
    return book


def _outermost(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    if len(hits) == 1:
        return tuple(hits)
    outermost: list[Hit] = []
    reach: dict[tuple[str, str], int] = {}
    for hit in sorted(hits, key=lambda hit: (hit.start, -hit.end, hit.trait, hit.label)):
        kind = hit.trait, hit.label
        if hit.end > reach.get(kind, -1):
            reach[kind] = hit.end
            outermost.append(hit)
    return tuple(outermost)
