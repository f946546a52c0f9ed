"""Mechanisms of the score and labels of phrases in words, for ``undersong rules show``."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from undersong.judges.llm.book import shipped_prompts
from undersong.rulebook import RULES, read
from undersong.scan.phrases import PhraseFile, signal_files
from undersong.scan.rules import StructureRules
from undersong.verdict.books import guns, mechanisms


class LabelledPhrases(NamedTuple):
    """The phrases of one group under a label: their file, what they stand for there, and the words themselves."""

    file: str
    of: str
    phrases: tuple[str, ...]


def mechanism_names() -> dict[str, str]:
    """The mechanisms of the score and the smoking guns, by id, with their titles."""
    scored = {name: rule.title.lower() for name, rule in mechanisms().mechanisms.items()}
    return scored | {name: kind.title.lower() for name, kind in guns().kinds.items()}


def label_names() -> dict[str, str]:
    """The labels of phrases with the names of their files, but for those that name a mechanism as well."""
    named_mechanisms = mechanism_names()
    return {
        label: ", ".join(dict.fromkeys(Path(each.file).stem for each in groups))
        for label, groups in sorted(_labels().items())
        if label not in named_mechanisms
    }


def mechanism(name: str) -> Iterator[tuple[str, str]]:
    """(Heading, text) of each thing to say of a mechanism."""
    yield "", shipped_prompts().mechanisms[name].description
    rule, gun = mechanisms().mechanisms.get(name), guns().kinds.get(name)
    if rule is not None:
        yield "meaning", rule.meaning
        yield "score", f"takes {rule.penalty} points of {mechanisms().start} where the evidence shows it"
        yield "evidence", rule.evidence
        yield "why", rule.why
        yield "file", "mechanisms.yaml, session/"
    if gun is not None:
        yield "meaning", gun.explanation
        yield "score", "takes no points: it is quoted as a smoking gun, and the reader makes the call"
        if gun.label:
            yield "phrases", f"those with the label “{gun.label}”"
        if gun.signal:
            yield "signal", f"{gun.signal} from {gun.least:g} on"
        yield "file", "smoking_guns.yaml"


def label(name: str) -> tuple[LabelledPhrases, ...]:
    """The groups of phrases under a label."""
    return _labels().get(name, ())


@cache
def _labels() -> dict[str, tuple[LabelledPhrases, ...]]:
    by_label: dict[str, tuple[LabelledPhrases, ...]] = {}
    for path in signal_files():
        file = read(path, PhraseFile)
        for group in file.groups:
            labelled = LabelledPhrases(
                f"signals/{path.name}", group.indicator or group.constraint or file.trait, group.phrases
            )
            by_label[group.label] = (*by_label.get(group.label, ()), labelled)
    structure = read(RULES / "structure.yaml", StructureRules)
    for tokens in structure.groups:
        labelled = LabelledPhrases("structure.yaml", "structure", tokens.phrases)
        by_label[tokens.label] = (*by_label.get(tokens.label, ()), labelled)
    return by_label
