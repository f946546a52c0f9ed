"""The prompts: files of ``undersong/prompts`` and the taxonomy → the stable part of every question, with its hash."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path

import msgspec

from undersong.models import Depth, Record
from undersong.rulebook import file_hash, read
from undersong.taxonomy import Taxonomy, TraitEntry, taxonomy

FOLDER = Path(__file__).parents[2] / "prompts"
SYSTEM = ("principle.md", "evidence.md", "answer.md", "standard.md", "thorough.md", "confirm.md")
DATA = ("mechanisms.yaml", "reading.yaml", "question.yaml")
SHORT_ANCHORS = (0, 2, 4)  # the marks that the standard prompt explains; the thorough one explains all five
MARKS = 4  # the highest mark; a score is mark / 4


class _StrictPrompts(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of the parts of the prompt files."""


class MechanismEntry(_StrictPrompts, frozen=True, kw_only=True):
    """What a judge is asked for; ``only_confirm``: only as a second question, never of a single message."""

    description: str
    context: bool
    confirm: str
    only_confirm: bool = False


class MechanismPrompts(_StrictPrompts, frozen=True, kw_only=True):
    """``mechanisms.yaml``."""

    mechanisms: dict[str, MechanismEntry]
    acts: dict[str, str]


class ReadingLimits(_StrictPrompts, frozen=True, kw_only=True):
    """``reading.yaml``: see the file."""

    prior_messages: int
    thread_first: int
    thread_bytes: int
    prior_bytes: int
    message_bytes: int
    tools: int
    tool_bytes: int
    tool_messages: int
    answer_tokens: dict[str, int]
    thinking_tokens: int
    body_bytes: int
    quote_characters: int
    control: tuple[str, ...]


class QuestionWords(_StrictPrompts, frozen=True, kw_only=True):
    """``question.yaml``: the fixed words of a question."""

    thread: str
    history: str
    message: str
    tools: str
    cut: str
    shortened: str
    question: str
    repair: str
    around: str
    confirm: str


class PromptSet(Record, frozen=True, kw_only=True, dict=True, gc=True):
    """Everything that a question is made of beside the conversation."""

    texts: dict[str, str]
    mechanisms: dict[str, MechanismEntry]
    acts: dict[str, str]
    limits: ReadingLimits
    words: QuestionWords
    hashes: dict[str, str]

    @cached_property
    def standard(self) -> str:
        """The system prompt of standard depth."""
        return self._system("standard.md", thorough=False)

    @cached_property
    def thorough(self) -> str:
        """The system prompt of thorough depth."""
        return self._system("thorough.md", thorough=True)

    @cached_property
    def offered(self) -> frozenset[str]:
        """The mechanisms that a question about one message may be answered with."""
        return frozenset(name for name, each in self.mechanisms.items() if not each.only_confirm)

    def system(self, depth: Depth) -> str:
        """The stable first part of a question: the same bytes for every message of a depth, so that it is cached."""
        return self.thorough if depth == "thorough" else self.standard

    @property
    def confirming(self) -> str:
        """The system prompt of ``confirm``."""
        return self.texts["confirm.md"]

    @cached_property
    def hash(self) -> str:
        """SHA-256 over everything that is asked: prompts, limits and taxonomy."""
        parts = (self.standard, self.thorough, self.confirming, *(self.hashes[name] for name in sorted(self.hashes)))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def _system(self, depth: str, *, thorough: bool) -> str:
        shipped_taxonomy = taxonomy()
        parts = (
            self.texts["principle.md"],
            "\n".join(_traits(shipped_taxonomy, thorough)),
            "\n".join(_catalogue(shipped_taxonomy, thorough)),
            "\n".join(self._mechanisms()),
            self.texts["evidence.md"],
            self.texts[depth],
            self.texts["answer.md"],
        )
        return "\n\n".join(part.strip() for part in parts) + "\n"

    def _mechanisms(self) -> Iterator[str]:
        yield "# Mechanisms\n"
        for name, mechanism in self.mechanisms.items():
            if not mechanism.only_confirm:
                yield f"- {name}: {mechanism.description}{' Needs the context.' if mechanism.context else ''}"


@cache
def shipped_prompts() -> PromptSet:
    """The shipped prompts, read once; raises RuleError with file and line."""
    mechanisms_file = read(FOLDER / "mechanisms.yaml", MechanismPrompts)
    return PromptSet(
        texts={name: (FOLDER / name).read_text(encoding="utf-8") for name in SYSTEM},
        mechanisms=mechanisms_file.mechanisms,
        acts=mechanisms_file.acts,
        limits=read(FOLDER / "reading.yaml", ReadingLimits),
        words=read(FOLDER / "question.yaml", QuestionWords),
        hashes={f"prompts/{name}": file_hash(FOLDER / name) for name in (*SYSTEM, *DATA)} | taxonomy().hashes,
    )


def _traits(shipped_taxonomy: Taxonomy, thorough: bool) -> Iterator[str]:
    yield "# Traits\n\nA mark from 0 to 4 each. In a negative trait 4 is the worst, in a positive one the best.\n"
    for trait in shipped_taxonomy.traits.values():
        yield f"- {trait.id} ({trait.polarity}): {trait.description}"
        yield from _anchors(trait, thorough)


def _anchors(trait: TraitEntry, thorough: bool) -> Iterator[str]:
    marks = range(MARKS + 1) if thorough else SHORT_ANCHORS
    yield "  " + " ".join(f"{mark}: {trait.anchors[mark]}" for mark in marks)


def _catalogue(shipped_taxonomy: Taxonomy, thorough: bool) -> Iterator[str]:
    """Ids with our description; the standard prompt has the names alone."""
    yield "# Catalogue of indicators\n"
    for indicator in shipped_taxonomy.asked_of_a_judge():
        yield f"- {indicator.id}: {indicator.description if thorough else indicator.name.replace('_', ' ')}"
