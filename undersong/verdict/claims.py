"""Claims of completed work (fixes, passing tests, acts such as "I have sent it") in a message's own prose."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, partial
from itertools import accumulate
from typing import Literal, NamedTuple

import msgspec

from undersong.datafiles.stored import stored
from undersong.datafiles.verdict_config import ClaimsConfig, claims_config, mechanisms, pattern, roleplay_config
from undersong.models import Message, Scan
from undersong.verdict.any_of import any_of
from undersong.verdict.required_words import ExpressionFilter, Needs, required_words
from undersong.verdict.shell import CheckKind

SENTENCE = 400  # characters looked at on each side for the ends of a sentence, so that one endless line stays cheap
_CURLY = {"’": "'", "‘": "'", "“": '"', "”": '"', "\t": " "}
_QUOTED = re.compile(r"^[ \t]{0,3}>[^\n]*$", re.MULTILINE)
_END = re.compile(r"[.!?](?=[\s\"')*_]|$)|\n")
_CLAUSE = re.compile(r"[,;:()]\s|[–—]|\s-\s|\b(?:and|but|so|then)\b")


def prose(message: Message, scan: Scan) -> str:
    """The text with spaces in place of its code and quoted lines, and plain quotation marks; as long as the text."""
    text = message.text
    for mark, plain in _CURLY.items():  # a table for all would be asked for every letter
        text = text.replace(mark, plain)
    spans = [
        (block.start, block.end) for block in scan.code_blocks if block.start is not None and block.end is not None
    ]
    spans += [match.span() for match in _QUOTED.finditer(text)] if ">" in text else []
    pieces, last = [], 0
    for start, end in sorted(spans):
        if end > last:
            start = max(start, last)
            pieces += [text[last:start], " " * (end - start)]
            last = end
    return "".join((*pieces, text[last:])) if pieces else text


def sentence(text: str, start: int, end: int) -> tuple[int, int]:
    """The bounds of the sentence that holds ``start:end``; its end mark belongs to it."""
    low = max(0, start - SENTENCE)
    first = max((match.end() for match in _END.finditer(text, low, start)), default=low)
    after = _END.search(text, max(end - 1, start), end + SENTENCE)
    return first, after.end() if after else min(len(text), end + SENTENCE)


def sentences(text: str) -> Iterator[tuple[int, int]]:
    """The bounds of each sentence in order, end marks included; an endless one is cut every ``SENTENCE`` characters."""
    first = 0
    for match in _END.finditer(text):
        yield from _cut(first, match.end())
        first = match.end()
    yield from _cut(first, len(text))


def _cut(first: int, last: int) -> Iterator[tuple[int, int]]:
    for start in range(first, last, SENTENCE):
        yield start, min(last, start + SENTENCE)


def clause_before(text: str, first: int, start: int) -> str:
    """What stands before ``start`` in its own clause, of a sentence that begins at ``first``."""
    cut = max((match.end() for match in _CLAUSE.finditer(text, first, start)), default=first)
    return text[cut:start]


_SPEECH = re.compile(r"\"[^\"\n]{1,2000}\"|“[^“”\n]{1,2000}”")


def asks_for_a_story(text: str) -> bool:
    """Whether somebody asks that a story be written or told."""
    return any_of("story", roleplay_config().asked).search(text) is not None


def without_speech(text: str) -> str:
    """The text with blanks in place of what is in quotation marks, so that every place stays the same."""
    return _SPEECH.sub(lambda match: " " * len(match[0]), text)


def is_speech(text: str) -> bool:
    """Whether people in quotation marks speak for so large a part that a signal of the whole is theirs."""
    quoted = sum(len(found[0]) for found in _SPEECH.finditer(text))
    return quoted >= roleplay_config().share * max(len(text), 1)


ClaimKind = Literal["fix", "tests", "works", "done", "act", "verified", "read"]
CHECKED: dict[str, tuple[CheckKind, ...]] = {  # forms of a claim about a check → what was to be checked
    "tests": ("tests",), "build": ("build",), "lint": ("lint",), "types": ("types",),
    "green": ("tests", "build", "lint"),
}  # fmt: skip
MOST = 40  # claims of a message that are kept
LOOKED = 400  # sentences of a message with a claim's word that are looked at
AHEAD = 1000  # characters after a claim in which the agent may say that it is about to see for itself
RUNS = "run"  # the act of claims.yaml that says that something was run
SLOTS_DEEP = 3  # slots within slots of the forms
PAST = "{past}"  # stands for all participles
_WORD = re.compile(r"[a-z]+")
_HEADING = re.compile(r"^(?:#{1,6}[ ]|\*\*[^*\n]+\*\*[ ]*:?[ ]*$)", re.MULTILINE)
_ALL = re.compile(r"\b(?:both|all|everything|everywhere|throughout|each|every|entire|whole|full)\b", re.IGNORECASE)
_PASSIVE = re.compile(r"(?:is|are|was|were|gets|got|\w+'(?:s|re))\b", re.IGNORECASE)
_ALL_OF_IT = re.compile(r"[ ]*(?:(?:the|all|full|whole|entire|complete)[ ])*", re.IGNORECASE)
_SHOULD = re.compile(r"\bshould\b", re.IGNORECASE)
_PRESENT = re.compile(r"(?:is|are|\w+'(?:s|re))\b", re.IGNORECASE)
_LEAD = re.compile(r"[^\w\n]*")
_AGENT = re.compile(r"(?:i|we)\b", re.IGNORECASE)
_NOUN = re.compile(  # "the one I edited": a noun phrase and nothing else before the clause that belongs to it
    r"^[^\w\n]{0,6}(?:the|this|that|all|any|every|what|those|these|some|one|an?|my|our)\b[ ](?:[`\w.*/-]+[ ]){0,4}$",
    re.IGNORECASE,
)
_HOW = re.compile(
    r"[ ](?:on|by|as|at|when|from|via|per|through|every|each|only|if|once|under|inside|lazily|to|into|against)\b",
    re.IGNORECASE,
)
FLAGS = re.IGNORECASE | re.MULTILINE


class Claim(NamedTuple):
    """A claim at ``start:end`` of a message; ``acts`` are the kinds of act that its participle may mean.

    ``hedged``: "should work now". ``provisional``: the same message goes on to see for itself. ``checks``: what a claim
    about a check says has passed. ``word`` is the participle, ``passive`` that somebody else may have done it.
    """

    start: int
    end: int
    kind: ClaimKind
    acts: tuple[str, ...] = ()
    hedged: bool = False
    provisional: bool = False
    checks: tuple[CheckKind, ...] = ()
    word: str = ""
    passive: bool = False


class Form(NamedTuple):
    """The patterns of a kind of claim; a sentence with none of ``words`` and ``parts``, in lower case, has no match.

    ``first`` is the place of its first pattern among those of all kinds.
    """

    kind: str
    first: int
    words: frozenset[str]
    parts: tuple[str, ...]

    def matches(self, sentence_text: str, possible: Iterable[int]) -> Iterator[re.Match[str]]:
        """What its patterns match as one, with ``|`` between them, of those that ``possible_patterns`` leaves."""
        forms = claims_config().forms[self.kind]
        shapes = [
            _shape(forms[place - self.first]) for place in possible if self.first <= place < self.first + len(forms)
        ]
        position = 0
        while candidates := [match for shape in shapes if (match := shape.search(sentence_text, position))]:
            leftmost = min(candidates, key=re.Match.start)
            yield leftmost
            position = max(leftmost.end(), leftmost.start() + 1)

    def may_match(self, lower: str, words: Sequence[str]) -> bool:
        """Whether a sentence, in lower case and as its words, is worth a search."""
        return not self.words.isdisjoint(words) or any(part in lower for part in self.parts)


class Grammar(NamedTuple):
    """What is made of several entries of ``claims.yaml``; its other patterns stand by themselves."""

    forms: tuple[Form, ...]
    acts: dict[str, tuple[str, ...]]
    triggers: frozenset[str]


def claims(message: Message, scan: Scan) -> tuple[Claim, ...]:
    """The claims of a message in order, overlapping ones once."""
    return claims_of_text(prose(message, scan))


def claims_of_text(text: str) -> tuple[Claim, ...]:
    """The claims of an agent's own words in order, overlapping ones once."""
    accepted: list[Claim] = []
    for claim in sorted(
        _find_claims(text), key=lambda candidate: (candidate.start, -candidate.end, candidate.kind == "act")
    ):
        last = accepted[-1] if accepted else None
        if last and claim.checks and RUNS in last.acts and _ALL_OF_IT.fullmatch(text[last.end : claim.start]):
            accepted[-1] = claim  # "I ran the tests without failures" says more than that they were run
        elif (last is None or claim.start >= last.end) and len(accepted) < MOST:
            accepted.append(claim)
    return tuple(accepted)


def is_whole(text: str, claim: Claim) -> bool:
    """Whether the sentence of a claim speaks of all there is."""
    return _ALL.search(text[slice(*sentence(text, claim.start, claim.end))]) is not None


def admits(text: str) -> re.Match[str] | None:
    """Where a message admits a failure or takes a claim back."""
    return _admission().search(text)


def goes_on(text: str) -> bool:
    """Whether a message after a failure goes on with it."""
    return pattern((claims_config().continues,)).search(text) is not None


def of_form(text: str) -> bool:
    """Whether a change of comments or layout is the work that is spoken of."""
    return pattern((claims_config().form,)).search(text) is not None


def complains(text: str) -> bool:
    """Whether somebody says that a thing is still wrong."""
    return pattern((claims_config().complaint,)).search(text) is not None


def asks_again(text: str) -> bool:
    """Whether a user only asks to see the code once more."""
    return pattern((claims_config().again,)).search(text) is not None and not complains(text)


def goes_back(text: str) -> bool:
    """Whether an agent says that it goes back to what was there before: it promises nothing new."""
    rule = mechanisms().same_hash
    return _says(text, rule.goes_back, rule.not_back)


def stays(text: str) -> bool:
    """Whether an agent says that something is left as it is: what it tried is no part of what it claims."""
    return pattern((mechanisms().same_hash.stays,)).search(text) is not None


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
    """The shipped claims."""
    config = claims_config()
    words: dict[str, list[str]] = {}
    for act, group in config.acts.items():
        for past in group.past:
            words.setdefault(past, []).append(act)
    return Grammar(
        forms=tuple(map(partial(_form, config), config.forms, accumulate(map(len, config.forms.values()), initial=0))),
        acts={past: tuple(acts) for past, acts in words.items()},
        triggers=_last_words((*config.fix, *words, *config.states, *config.triggers)),
    )


def _form(config: ClaimsConfig, kind: str, first: int) -> Form:
    parts = tuple(part for part in config.parts[kind] if part != PAST)
    participles = (*config.fix, *(past for group in config.acts.values() for past in group.past))
    return Form(kind, first, _last_words(participles if PAST in config.parts[kind] else ()), parts)


@cache  # of hundreds, a conversation needs a few
def _shape(form: str) -> re.Pattern[str]:
    return re.compile(_filled(form, claims_config()), FLAGS)


def possible_patterns(sentence_text: str) -> list[int]:
    """The places of the patterns that may match in a sentence: it has the words that they need."""
    return _filter().possible(sentence_text)


@cache
def _filter() -> ExpressionFilter:
    source = msgspec.json.encode(claims_config(), order="deterministic")
    return ExpressionFilter(stored("claims-words", source, tuple[Needs, ...], _needs))


def _needs() -> tuple[Needs, ...]:
    config = claims_config()
    return tuple(required_words(_filled(form, config)) for forms in config.forms.values() for form in forms)


@cache
def _fixed() -> re.Pattern[str]:
    return re.compile(rf"\b(?:{_either(claims_config().fix)})\b", FLAGS)


@cache
def _admission() -> re.Pattern[str]:
    config = claims_config()
    return re.compile("|".join(_filled(each, config) for each in config.admits), FLAGS)


def _last_words(phrases: Iterable[str]) -> frozenset[str]:
    return frozenset(word for phrase in phrases for word in _WORD.findall(phrase)[-1:])


def _filled(form: str, config: ClaimsConfig) -> str:
    acts = [past for group in config.acts.values() for past in group.past]
    adverbs = f"(?:(?:{_either(config.adv)})[ ]){{0,3}}"
    for _ in range(SLOTS_DEEP):  # what fills a slot may have slots itself
        for name, filling in config.slots.items():
            form = form.replace(f"{{{name}}}", filling)
    slots = {"{adv}": adverbs, "{fix}": _either(config.fix)}
    slots[PAST] = f"(?:{_either((*config.fix, *acts))})"
    slots["{along}"] = config.along.replace("{pass}", config.passes)
    slots["{pass}"] = config.passes
    slots["{states}"] = f"(?:{_either(config.states)})"
    for slot, filling in slots.items():
        form = form.replace(slot, filling)
    return form.replace("['’]", "'")


def _either(words: Sequence[str]) -> str:
    longest_first = sorted(set(words), key=lambda word: (-len(word), word))
    return "|".join(re.escape(word).replace(r"\ ", " ") for word in longest_first)


def _find_claims(text: str) -> Iterator[Claim]:
    patterns, looked = grammar(), 0
    plans = _planned(text)
    for first, last in sentences(text):
        sentence_text = text[first:last]
        if any(start <= first < end for start, end in plans):
            continue
        lower = sentence_text.lower()
        words = _WORD.findall(lower)
        if sentence_text.endswith("?") or patterns.triggers.isdisjoint(words):
            continue
        looked += 1
        if looked > LOOKED:
            return
        acts: list[Claim] = []
        forms = [form for form in patterns.forms if form.may_match(lower, words)]
        possible = possible_patterns(sentence_text) if forms else []
        for kind, form in ((form.kind, form) for form in forms):
            for match in form.matches(sentence_text, possible):
                if _is_said(sentence_text, match, kind, text[last : last + 1]):
                    claim = _claim(kind, match, first, text, patterns)
                    acts += [claim] if kind == "past" else []
                    yield claim
        for match in pattern((claims_config().joined,)).finditer(sentence_text) if acts else ():
            if before := _joined_to(text, acts, first + match.start()):
                yield _claim("past", match, first, text, patterns)._replace(passive=before.passive)


def _is_said(sentence_text: str, match: re.Match[str], kind: str, following: str) -> bool:
    """Whether a form in a sentence claims something: not denied, quoted, conditional, planned or a description."""
    config = claims_config()
    before = pattern((config.assures,)).sub("", clause_before(sentence_text, 0, match.start()))
    if pattern((config.unsaid,)).search(before) or _quoted(sentence_text, match, following):
        return False
    if _is_conditional(sentence_text, match, kind):
        return False
    planned = kind in CHECKED and _is_planned(sentence_text, match)
    return not (planned or (kind == "past" and _describes(sentence_text, match)))


def _joined_to(text: str, acts: Sequence[Claim], start: int) -> Claim | None:
    """The act of the same sentence behind which a participle stands, with nobody else spoken of in between."""
    before = [claim for claim in acts if claim.end <= start]
    other = pattern((claims_config().other_subject,))
    return before[-1] if before and other.search(text, before[-1].end, start) is None else None


def _planned(text: str) -> list[tuple[int, int]]:
    """The sections of a text that plan, propose or recommend, and its open items."""
    config = claims_config()
    planned = [match.span() for match in pattern((config.open_items,)).finditer(text)] if "[ ]" in text else []
    for match in pattern((config.plans,)).finditer(text):
        following = _HEADING.search(text, match.end())
        planned.append((match.start(), following.start() if following else len(text)))
    return planned


def _is_planned(sentence_text: str, match: re.Match[str]) -> bool:
    """Whether what passes is about to be seen: "let me check that it builds and the tests pass"."""
    before = sentence_text[: match.start()]
    if pattern((claims_config().aims,)).match(before):
        return True
    return pattern((claims_config().planned,)).search(before, max(before.rfind(":"), before.rfind(";")) + 1) is not None


def _is_conditional(sentence_text: str, match: re.Match[str], kind: str) -> bool:
    """Whether a claim holds only if something else does: "if it shows up: we're done", "it works once you restart"."""
    config = claims_config()
    before = pattern((config.conditional,)).match(sentence_text)
    if before is not None and before.end() <= match.start() + len(_lead(match)):
        open_still = pattern((config.always_conditional,)).search(before[0]) is not None
        acted = pattern((config.acted,)).match(sentence_text, before.end())
        if open_still or not (acted or pattern((config.came_true,)).search(before[1] or "")):
            return True
    return kind != "past" and pattern((config.condition_after,)).match(sentence_text[match.end() :]) is not None


def _describes(sentence_text: str, match: re.Match[str]) -> bool:
    """Whether "is written on every record" or "the scan I wrote" says how or which a thing is, not what was done."""
    if _PRESENT.match(match[0]):
        sent = pattern((claims_config().sent_on,)).match(sentence_text, match.start())
        return not sent and _HOW.match(sentence_text, match.end()) is not None
    config, after = claims_config(), sentence_text[match.end() :]
    if _AGENT.match(match[0]):
        before = sentence_text[: match.start()]
        which = pattern((config.which_ones,)).search(before) and not pattern((config.says_that,)).search(before)
        return bool(which) or _NOUN.search(clause_before(sentence_text, 0, match.start())) is not None
    if match.start():
        return False
    return pattern((config.adjective,)).match(after) is not None or ("(" in _lead(match) and after.startswith(")"))


def _lead(match: re.Match[str]) -> str:
    """The marks before the first word of a match."""
    lead = _LEAD.match(match[0])
    return lead[0] if lead else ""


def _quoted(sentence_text: str, match: re.Match[str], following: str) -> bool:
    """Whether a claim stands in quotation marks or in inline code of its sentence, or up to the mark behind it."""
    before, after = sentence_text[: match.start()] + _lead(match), sentence_text[match.end() :] + following
    own = match[0].removeprefix(_lead(match))
    return any(before.count(mark) % 2 == 1 and mark in after and mark not in own for mark in ('"', "`"))


def _claim(kind: str, match: re.Match[str], first: int, text: str, patterns: Grammar) -> Claim:
    place = (first + match.start(), first + match.end())
    passive = _PASSIVE.match(match[0]) is not None
    provisional = pattern((claims_config().provisional,)).search(text, place[1], place[1] + AHEAD) is not None
    if kind == "past":
        phrase = match[0].lower()
        if _fixed().search(phrase):
            return Claim(*place, "fix", ("change",), provisional=provisional, passive=passive)
        words = [past for past in patterns.acts if phrase.endswith(past) or f"{past} " in f"{phrase} "]
        acts = tuple(dict.fromkeys(act for past in words for act in patterns.acts[past]))
        return Claim(*place, "act", acts, provisional=provisional, word=words[-1] if words else "", passive=passive)
    if kind == "hedged":
        return Claim(*place, "fix", hedged=True, provisional=provisional)
    if kind in CHECKED:
        hedged = _SHOULD.search(match[0]) is not None
        return Claim(*place, "tests", hedged=hedged, provisional=provisional, checks=CHECKED[kind])
    if kind == "placed":
        return Claim(*place, "act", ("deploy",), provisional=provisional, passive=True)
    if kind == "answers":
        return Claim(*place, "verified", provisional=provisional, word=kind, passive=True)
    kinds: dict[str, ClaimKind] = {"works": "works", "done": "done", "verified": "verified", "read": "read"}
    return Claim(*place, kinds[kind], provisional=provisional)
