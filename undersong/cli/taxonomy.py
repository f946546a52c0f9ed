"""Entries of the taxonomy in words: what ``undersong rules show MAN-URGENCY`` prints, and the ids by kind."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from textwrap import fill
from typing import NamedTuple

from undersong.datafiles.scan_config import StructureRules
from undersong.datafiles.taxonomy import Taxonomy, taxonomy
from undersong.datafiles.verdict_config import distress_config, guns, mechanisms
from undersong.datafiles.yaml_loader import RULES, read
from undersong.judges.llm.prompts import shipped_prompts
from undersong.scan.phrases import PhraseFile, PhraseGroup, signal_files

WIDTH = 100
CODE = "CODE-"
MARKS = ("0", ".25", ".5", ".75", "1")
CAVEAT = "a hit routes a message to a reader, it proves nothing"


def names(kind: str) -> dict[str, str]:
    """Ids of a kind (dimensions, traits, indicators, combinations, pathways, codes, …) with a short name each."""
    if kind in ("mechanisms", "labels"):
        return mechanism_names() if kind == "mechanisms" else label_names()
    book = taxonomy()
    return {
        "dimensions": book.dimensions,
        "traits": {name: f"{entry.dimension}, {entry.polarity}" for name, entry in book.traits.items()},
        "indicators": {name: entry.name for name, entry in book.indicators.items()},
        "combinations": {name: entry.name for name, entry in book.combination_patterns.items()},
        "pathways": {name: entry.name for name, entry in book.sabotage_pathways.items()},
        "constraints": {name: entry.name for name, entry in book.hard_constraints.items()},
        "codes": {CODE + name: entry.name for name, entry in book.distress_codes.items()},
    }[kind]


def canonical(name: str) -> str | None:
    """The id of an entry by its name in any case; None where there is no such entry."""
    wanted = name.lower()
    return next((id_ for kind in KINDS for id_ in names(kind) if id_.lower() == wanted), None)


def explain(id_: str) -> str:
    """An entry of the taxonomy, in lines for a reader; ``id_`` as ``canonical`` gives it."""
    kind = next(kind for kind in KINDS if id_ in names(kind))
    return "\n".join(_EXPLAINED[kind](id_)) + "\n"


def _indicator(id_: str) -> Iterator[str]:
    book = taxonomy()
    entry = book.indicators[id_]
    trait = book.traits[entry.trait]
    yield from _head(entry.id, entry.name, entry.description)
    yield f"trait       {entry.trait}: {trait.polarity}, {trait.dimension}, value of {trait.value}"
    asked = (
        "not asked: only a sequence shows it, and a finding sets it"
        if entry.sequence_only
        else "asked of a judge that gives indicators; the offline judge gives none"
    )
    yield f"judge       {asked}"
    yield from _listed("part of", [f"{shape} {_shape_name(book, shape)}" for shape in book.shapes_of(entry.id)])
    near = [(link.target, link.relationship) for link in book.related if link.source == entry.id]
    near += [(link.source, link.relationship) for link in book.related if link.target == entry.id]
    yield from _listed("often with", [f"{other} ({why.replace('_', ' ')})" for other, why in near])
    file = _files()[entry.trait]
    yield from _phrases([group for group in file.groups if group.indicator == entry.id])
    if entry.id in file.no_wording:
        yield f"phrases     none: {file.no_wording[entry.id]}"


def _dimension(name: str) -> Iterator[str]:
    book = taxonomy()
    yield from _head(name, "dimension: the mean of its traits, negative ones inverted", book.dimensions[name])
    traits = {id_: entry for id_, entry in book.traits.items() if entry.dimension == name}
    yield from _listed("traits", [f"{id_} ({entry.polarity})" for id_, entry in traits.items()])


def _trait(name: str) -> Iterator[str]:
    book = taxonomy()
    entry, file = book.traits[name], _files()[name]
    yield from _head(name, f"{entry.polarity} trait of {entry.dimension}", entry.description)
    yield f"value       {entry.value}: {book.values[entry.value]}"
    for mark, anchor in zip(MARKS, entry.anchors, strict=True):
        yield f"{'scores' if mark == '0' else '':<12}{mark:<4} {anchor}"
    yield f"indicators  {len(entry.indicators)}"
    counts = {
        id_: sum(len(group.phrases) for group in file.groups if group.indicator == id_) for id_ in entry.indicators
    }
    width = max(map(len, counts))
    for id_, count in counts.items():
        phrases = f"{count} phrases" if count else "no phrases"
        yield f"  {id_:<{width}}  {phrases:<12}  {book.indicators[id_].description}"
    others = [f"{group.label} ({len(group.phrases)})" for group in file.groups if group.indicator is None]
    yield from _listed("also", [f"phrases without an indicator: {', '.join(others)}"] if others else [])
    yield f"file        signals/{name}.yaml"


def _combination(id_: str) -> Iterator[str]:
    pattern = taxonomy().combination_patterns[id_]
    yield from _head(id_, pattern.name, pattern.description)
    yield f"severity    {pattern.severity}"
    yield f"stages      {len(pattern.stages)}, in this order"
    for number, stage in enumerate(pattern.stages, 1):
        parts = [" or ".join(stage.indicators), *(f"no {absent}" for absent in stage.absent), stage.condition or ""]
        yield f"  {number}  {stage.name.replace('_', ' ')}: {', '.join(part for part in parts if part)}"


def _pathway(id_: str) -> Iterator[str]:
    book = taxonomy()
    pathway = book.sabotage_pathways[id_]
    yield from _head(id_, pathway.name, pathway.description)
    yield f"frequency   {pathway.frequency}; complexity {pathway.complexity}; severity {pathway.severity}"
    yield f"source      {pathway.source}"
    yield "indicators  in any order; one of them alone means little"
    for indicator in pathway.indicators:
        yield f"  {indicator}  {book.indicators[indicator].description}"


def _constraint(id_: str) -> Iterator[str]:
    limit = taxonomy().hard_constraints[id_]
    yield from _head(id_, limit.name, limit.description)
    yield "judge       a judge may name it; a phrase only routes the message to the deepest reading"
    yield from _phrases([group for group in _files()["hard_constraint"].groups if group.constraint == id_])


def _code(id_: str) -> Iterator[str]:
    code = taxonomy().distress_codes[id_.removeprefix(CODE)]
    yield from _head(id_, code.name, code.description)
    yield "use         a note to the reader at a turn, never a diagnosis"
    conducts = distress_config().conduct.items()
    setting = [name.replace("_", " ") for name, each in conducts if id_.removeprefix(CODE) in (*each.codes, *each.also)]
    yield f"set by      {', '.join(setting) or 'no rule here: the source of the codes names no mechanism for it'}"


def _mechanism(name: str) -> Iterator[str]:
    (_, description), *rest = mechanism(name)
    yield from _head(name, f"mechanism: {names('mechanisms')[name]}", description)
    for head, text in rest:
        yield fill(text, WIDTH, initial_indent=f"{head:<12}", subsequent_indent=" " * 12)


def _label(name: str) -> Iterator[str]:
    yield f"{name}  label of phrases"
    for group in label(name):
        yield f"phrases     {len(group.phrases)} of {group.of} in {group.file}; {CAVEAT}"
        yield from (f"  {phrase}" for phrase in group.phrases)


_EXPLAINED = {
    "dimensions": _dimension,
    "traits": _trait,
    "indicators": _indicator,
    "combinations": _combination,
    "pathways": _pathway,
    "constraints": _constraint,
    "codes": _code,
    "mechanisms": _mechanism,
    "labels": _label,
}
KINDS = tuple(_EXPLAINED)


def _head(id_: str, name: str, description: str) -> Iterator[str]:
    yield f"{id_}  {name.replace('_', ' ')}"
    yield fill(description, WIDTH)


def _listed(head: str, items: list[str]) -> Iterator[str]:
    for place, item in enumerate(items):
        yield f"{'' if place else head:<12}{item}"


def _phrases(groups: list[PhraseGroup]) -> Iterator[str]:
    for group in groups:
        yield f"phrases     {len(group.phrases)} with the label “{group.label}”; {CAVEAT}"
        yield from (f"  {phrase}" for phrase in group.phrases)


def _shape_name(book: Taxonomy, shape: str) -> str:
    entry = book.combination_patterns.get(shape) or book.sabotage_pathways[shape]
    return entry.name.replace("_", " ")


@cache
def _files() -> dict[str, PhraseFile]:
    return {file.trait: file for file in (read(path, PhraseFile) for path in signal_files())}


class LabelledPhrases(NamedTuple):
    """The phrases of one group under a label: their file, their indicator or trait there, and the words themselves."""

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
    """(Heading, text) of each paragraph about a mechanism."""
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
        else:
            yield "evidence", "a judge's reading, with its words"
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
