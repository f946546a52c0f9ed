"""What an agent says is done: fixes, passing tests, acts such as "I have sent it", in the agent's own voice."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Literal, NamedTuple

from undersong.models import Message, Scan
from undersong.verdict.books import mechanisms
from undersong.verdict.prose import clause_before, prose, sentence, sentences
from undersong.verdict.words import Claims, claims_book, pattern

Kind = Literal["fix", "tests", "works", "done", "act"]
MOST = 40  # claims of a message that are kept
LOOKED = 400  # sentences of a message with a claim's word that are looked at
AHEAD = 1000  # characters after a claim in which the agent may say that it is about to see for itself
_WORD = re.compile(r"[a-z]+")
FLAGS = re.IGNORECASE | re.MULTILINE


class Claim(NamedTuple):
    """A claim at ``start:end`` of a message; ``acts`` are the kinds of act that its participle may mean.

    ``hedged``: "should work now". ``provisional``: the same message goes on to see for itself.
    """

    start: int
    end: int
    kind: Kind
    acts: tuple[str, ...] = ()
    hedged: bool = False
    provisional: bool = False


class Grammar(NamedTuple):
    """The patterns of ``claims.yaml``, compiled."""

    forms: tuple[tuple[str, re.Pattern[str]], ...]
    fix: re.Pattern[str]
    acts: dict[str, tuple[str, ...]]
    unsaid: re.Pattern[str]
    provisional: re.Pattern[str]
    admits: re.Pattern[str]
    continues: re.Pattern[str]
    form: re.Pattern[str]
    again: re.Pattern[str]
    complaint: re.Pattern[str]
    triggers: frozenset[str]


def claims(message: Message, scan: Scan) -> tuple[Claim, ...]:
    """The claims of a message in order, overlapping ones once."""
    text = prose(message, scan)
    kept: list[Claim] = []
    for claim in sorted(_found(text), key=lambda each: (each.start, -each.end, each.kind == "act")):
        if len(kept) < MOST and (not kept or claim.start >= kept[-1].end):
            kept.append(claim)
    return tuple(kept)


def admits(text: str) -> re.Match[str] | None:
    """Where a message admits a failure or takes a claim back."""
    return grammar().admits.search(text)


def goes_on(text: str) -> bool:
    """Whether a message after a failure goes on with it."""
    return grammar().continues.search(text) is not None


def of_form(text: str) -> bool:
    """Whether a change of comments or layout is the work that is spoken of."""
    return grammar().form.search(text) is not None


def complains(text: str) -> bool:
    """Whether somebody says that a thing is still wrong."""
    return grammar().complaint.search(text) is not None


def asks_again(text: str) -> bool:
    """Whether a user only asks to see the code once more."""
    return grammar().again.search(text) is not None and not complains(text)


def goes_back(text: str) -> bool:
    """Whether an agent says that it goes back to what was there before: it promises nothing new."""
    rule = mechanisms().same_hash
    return _says(text, rule.goes_back, rule.not_back)


def asks_back(text: str) -> bool:
    """Whether a person asks to have back what was there before."""
    rule = mechanisms().same_hash
    return _says(text, rule.asks_back, rule.not_asked)


def _says(text: str, forms: tuple[str, ...], denial: str) -> bool:
    """Whether one of some forms stands in a text, not denied before in its clause."""
    denied = pattern((denial,))
    return any(
        not denied.search(clause_before(text, sentence(text, *match.span())[0], match.start()))
        for match in pattern(forms).finditer(text)
    )


@cache
def grammar() -> Grammar:
    """The shipped claims, compiled."""
    book = claims_book()
    words: dict[str, list[str]] = {}
    for act, group in book.acts.items():
        for past in group.past:
            words.setdefault(past, []).append(act)
    return Grammar(
        forms=tuple(
            (kind, re.compile("|".join(_filled(form, book) for form in forms), FLAGS))
            for kind, forms in book.forms.items()
        ),
        fix=re.compile(rf"\b(?:{_either(book.fix)})\b", FLAGS),
        acts={past: tuple(acts) for past, acts in words.items()},
        unsaid=re.compile(book.unsaid, FLAGS),
        provisional=re.compile(book.provisional, FLAGS),
        admits=re.compile("|".join(_filled(each, book) for each in book.admits), FLAGS),
        continues=re.compile(book.continues, FLAGS),
        form=re.compile(book.form, FLAGS),
        again=re.compile(book.again, FLAGS),
        complaint=re.compile(book.complaint, FLAGS),
        triggers=frozenset(
            word for each in (*book.fix, *words, *book.states, *book.triggers) for word in _WORD.findall(each)[-1:]
        ),
    )


def _filled(form: str, book: Claims) -> str:
    acts = [past for group in book.acts.values() for past in group.past]
    adverbs = f"(?:(?:{_either(book.adv)})[ ]){{0,3}}"
    slots = {"{adv}": adverbs, "{fix}": _either(book.fix)}
    slots["{past}"] = f"(?:{_either((*book.fix, *acts))})"
    slots["{states}"] = f"(?:{_either(book.states)})"
    for slot, filling in slots.items():
        form = form.replace(slot, filling)
    return form.replace("['’]", "'")


def _either(words: Sequence[str]) -> str:
    longest_first = sorted(set(words), key=lambda word: (-len(word), word))
    return "|".join(re.escape(word).replace(r"\ ", " ") for word in longest_first)


def _found(text: str) -> Iterator[Claim]:
    found, looked = grammar(), 0
    for first, last in sentences(text):
        said = text[first:last]
        if said.endswith("?") or found.triggers.isdisjoint(_WORD.findall(said.lower())):
            continue
        looked += 1
        if looked > LOOKED:
            return
        for kind, shape in found.forms:
            for match in shape.finditer(said):
                if not found.unsaid.search(clause_before(said, 0, match.start())):
                    yield _claim(kind, match, first, text, found)


def _claim(kind: str, match: re.Match[str], first: int, text: str, found: Grammar) -> Claim:
    place = (first + match.start(), first + match.end())
    provisional = found.provisional.search(text, place[1], place[1] + AHEAD) is not None
    if kind == "past":
        said = match[0].lower()
        if found.fix.search(said):
            return Claim(*place, "fix", ("change",), provisional=provisional)
        words = [past for past in found.acts if said.endswith(past) or f"{past} " in f"{said} "]
        acts = tuple(dict.fromkeys(act for past in words for act in found.acts[past]))
        return Claim(*place, "act", acts, provisional=provisional)
    if kind == "hedged":
        return Claim(*place, "fix", hedged=True, provisional=provisional)
    known: dict[str, Kind] = {"tests": "tests", "works": "works", "done": "done"}
    return Claim(*place, known[kind], provisional=provisional)
