"""Quoted words of a rule that no row of ours can have: a misspelt one would never be true, and nothing would say so."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import get_args

from undersong.models import TRAITS, Observed, Role, State, Tier, Width
from undersong.patterns.expressions import Call, Compare, Field, Node, OneOf, Text, walk
from undersong.rulebook import RULES, did_you_mean, load
from undersong.taxonomy import taxonomy

WORDS: dict[str, tuple[str, ...]] = {
    "tier": get_args(Tier),
    "tier_before": get_args(Tier),
    "width": get_args(Width),
    "observed": get_args(Observed),
    "state": get_args(State),
    "role": get_args(Role),
}


def unknown_words(tree: Node) -> Iterator[tuple[str, str]]:
    """What is wrong and a remedy, for each indicator, label, trait, tier and the like that is none.

    Signals are not among them: judges name their own, and a rule whose signal no row has is called not applicable.
    """
    for part in walk(tree):
        for kind, word in _asked(part):
            valid = _valid_words(kind)
            if word not in valid:
                yield f"no {kind} is named '{word}'", did_you_mean(word, _near(kind, word, valid))


def _asked(part: Node) -> Iterator[tuple[str, str]]:
    """The kind and the word of each quoted text that is compared with a closed set."""
    if isinstance(part, Call) and part.name in ("indicator", "flag"):
        yield from ((part.name, each.value) for each in part.arguments if isinstance(each, Text))
    elif isinstance(part, Compare):
        for field, text in ((part.left, part.right), (part.right, part.left)):
            if isinstance(field, Field) and field.name in WORDS and isinstance(text, Text):
                yield field.name, text.value
    elif isinstance(part, OneOf) and isinstance(part.part, Field) and part.part.name in WORDS:
        yield from ((part.part.name, option) for option in part.options if isinstance(option, str))


def _valid_words(kind: str) -> tuple[str, ...]:
    if kind == "indicator":
        return tuple(taxonomy().indicators)
    return (*TRAITS, *_labels()) if kind == "flag" else WORDS[kind]


def _near(kind: str, word: str, valid: tuple[str, ...]) -> list[str]:
    """The names to choose from: of an indicator, those of its trait where there are some."""
    prefix = word.split("-")[0] + "-"
    return [name for name in valid if name.startswith(prefix)] or list(valid) if kind == "indicator" else list(valid)


@cache
def _labels() -> tuple[str, ...]:
    """The labels of all phrase groups, structural ones included."""
    files = [RULES / "structure.yaml", *sorted((RULES / "signals").glob("*.yaml"))]
    return tuple(sorted({group["label"] for file in files for group in load(file).value["groups"]}))
