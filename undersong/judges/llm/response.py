"""Parses and validates an answer: what can be used, and a count of what cannot; and the JSON schemas of answers."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import msgspec

from undersong.datafiles.taxonomy import taxonomy
from undersong.judges.llm.prompts import MARKS, PromptSet, shipped_prompts
from undersong.models import NEGATIVE_TRAITS, TRAITS, Indicator, Stance, TraitScores

_DECODER = json.JSONDecoder()
MOST_OBJECTS = 50  # places in an answer at which an object is looked for
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})|\\(.)")
_PLAIN = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "/": "/"}
CLAIM = 300  # characters of a claim that are kept
REASON = 200  # characters of a reason that are kept
NEGATIVE = tuple(trait for trait in TRAITS if trait in NEGATIVE_TRAITS)


class UnusableError(ValueError):
    """An answer that cannot be used; the text says why in words of ours, for the repair and for the state."""


class Answer(NamedTuple):
    """What an answer says, checked; ``rejected`` counts by kind what was dropped or is missing.

    ``traits`` has all twelve; None = does not apply to this message. ``reasons``: negative trait marked above 0 → why.
    """

    traits: TraitScores
    indicators: tuple[Indicator, ...]
    mechanisms: tuple[Indicator, ...]
    acts: tuple[Indicator, ...]
    stance: Stance | None
    reasons: dict[str, str]
    rejected: dict[str, int]


class Confirmation(NamedTuple):
    """The answer to ``confirm``: yes only with a quote from every message that was shown."""

    yes: bool
    quotes: tuple[str, ...]
    confidence: float
    rejected: dict[str, int]


def checked(text: str, message: str, control: str, prompts: PromptSet | None = None) -> Answer:
    """The answer, as far as it holds.

    Raises UnusableError where it is no JSON object, where a trait has neither a mark from 0 to 4 nor null, and where
    the control question is answered wrongly: then the model may have followed the transcript instead of us. Unknown
    ids, quotes that are not in the message and values out of range are dropped and counted, and so are reasons for
    marks that need none, and marks without their reason; a code fence and unknown keys are passed over.
    """
    prompts, rejected = prompts or shipped_prompts(), Counter[str]()
    value = answer_object(text)
    check_control(value, control)
    quotes = _QuoteChecker(message, prompts.limits.quote_characters, rejected)
    traits = _traits(value.get("traits"), prompts.limits.always_marked, rejected)
    return Answer(
        traits=traits,
        indicators=_seen(value, "indicators", "id", _asked_ids(), quotes),
        mechanisms=_seen(value, "mechanisms", "id", prompts.offered, quotes),
        acts=_seen(value, "acts", "act", prompts.acts.keys(), quotes),
        stance=_stance(value.get("stance"), rejected),
        reasons=_reasons(value, traits, rejected),
        rejected=dict(sorted((+rejected).items())),
    )


def confirmed(text: str, messages: tuple[str, ...], control: str, prompts: PromptSet | None = None) -> Confirmation:
    """The answer to ``confirm``; a yes that cannot quote each message is a no, and counted. Raises UnusableError."""
    prompts, rejected = prompts or shipped_prompts(), Counter[str]()
    value = answer_object(text)
    check_control(value, control)
    if value.get("answer") not in ("yes", "no"):
        raise UnusableError("the answer is neither yes nor no")
    by_message: dict[int, str] = {}
    for item in _items(value, "quotes", rejected):
        number = item.get("message")
        if isinstance(number, int) and 1 <= number <= len(messages):
            quote = _QuoteChecker(messages[number - 1], prompts.limits.quote_characters, rejected).verbatim(
                item.get("quote")
            )
            if quote is not None:
                by_message.setdefault(number, quote)
    affirmed, shown = value["answer"] == "yes", len(by_message) == len(messages)
    rejected["unproven_yes"] += affirmed and not shown
    quotes = tuple(by_message[number] for number in sorted(by_message)) if affirmed and shown else ()
    sure = _confidence(value.get("confidence"), rejected) or 0.0
    return Confirmation(affirmed and shown, quotes, sure, dict(sorted((+rejected).items())))


@cache
def _asked_ids() -> frozenset[str]:
    return frozenset(each.id for each in taxonomy().asked_of_a_judge())


class _QuoteChecker:
    """Checks quotes against a message; what is not there word for word is rejected."""

    def __init__(self, message: str, most: int, rejected: Counter[str]) -> None:
        self._message, self._most, self.rejected = message, most, rejected

    def verbatim(self, quote: Any) -> str | None:
        """The quote as it stands in the message, or None, counted."""
        if not isinstance(quote, str) or not quote.strip():
            self.rejected["quote_missing"] += 1
            return None
        if len(quote) > self._most:
            self.rejected["quote_too_long"] += 1
            return None
        words = verbatim(quote, self._message)
        self.rejected["quote_not_in_message"] += words is None
        return words


def verbatim(quote: str, message: str) -> str | None:
    """The quote as it stands in a message, None where it does not; copied escapes and outer blanks are forgiven."""
    return next((text for text in (quote, quote.strip(), _unescaped(quote)) if text and text in message), None)


def answer_object(text: str) -> dict[str, Any]:
    """The JSON object of an answer: all of it, or the one object with an answer to the control question within it."""
    value = _decoded(text)
    if isinstance(value, dict):
        return value
    answers = [each for each in map(_decoded, _objects_in(text)) if isinstance(each, dict) and "control" in each]
    if len(answers) != 1:
        raise UnusableError("it is not one JSON object" if text.strip() else "it is empty")
    return answers[0]


def _decoded(text: str) -> Any:
    """The value of a JSON text, whole numbers as integers however they are written; None for what is none."""
    try:
        return _whole(msgspec.json.decode(text.encode("utf-8", "surrogatepass")))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def _objects_in(text: str) -> Iterator[str]:
    """The outermost JSON objects in a text, as behind a sentence or in a code fence."""
    place = text.find("{")
    for _ in range(MOST_OBJECTS):
        if place < 0:
            return
        try:
            _, end = _DECODER.raw_decode(text, place)
        except (ValueError, RecursionError):
            end = place + 1
        else:
            yield text[place:end]
        place = text.find("{", end)


def _whole(value: Any) -> Any:
    """A value of JSON with 3 for 3.0."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, list):
        return [_whole(each) for each in value]
    if isinstance(value, dict):
        return {key: _whole(each) for key, each in value.items()}
    return value


def check_control(value: Mapping[str, Any], control: str) -> None:
    """Raises UnusableError where the control question is answered wrongly."""
    if value.get("control") != control:
        raise UnusableError("the control question is answered wrongly")


def _traits(value: Any, always_marked: Sequence[str], rejected: Counter[str]) -> TraitScores:
    """Scores from 0 to 1, None where a trait does not apply; a null that was not offered is counted."""
    if not isinstance(value, dict):
        raise UnusableError("traits are missing")
    marks: dict[str, int | None] = {trait: _mark(trait, value) for trait in TRAITS}
    rejected["null_not_offered"] += sum(marks[trait] is None for trait in always_marked)
    return {trait: None if mark is None else mark / MARKS for trait, mark in marks.items()}


def _mark(trait: str, value: Mapping[str, Any]) -> int | None:
    mark = value.get(trait, "")
    if mark is None or (isinstance(mark, int) and not isinstance(mark, bool) and 0 <= mark <= MARKS):
        return mark
    raise UnusableError(f"{trait} has neither an integer from 0 to {MARKS} nor null")


def _reasons(value: Mapping[str, Any], traits: Mapping[str, float | None], rejected: Counter[str]) -> dict[str, str]:
    """Trait → reason, of negative traits that are marked above 0; the first one of each."""
    marked = [trait for trait in NEGATIVE if traits[trait]]
    reasons: dict[str, str] = {}
    for item in _items(value, "reasons", rejected):
        trait, reason = item.get("trait"), item.get("reason")
        if trait not in marked or trait in reasons or not isinstance(reason, str) or not reason.strip():
            rejected["reason_superfluous"] += 1
            continue
        rejected["reason_too_long"] += len(reason) > REASON
        reasons[trait] = reason.strip()[:REASON]
    rejected["reason_missing"] += len(marked) - len(reasons)
    return {trait: reasons[trait] for trait in marked if trait in reasons}


def _seen(value: Mapping[str, Any], name: str, key: str, allowed: Any, quotes: _QuoteChecker) -> tuple[Indicator, ...]:
    """Entries with a known id and a quote that stands in the message; of several with one id the first."""
    accepted: dict[str, Indicator] = {}
    for item in _items(value, name, quotes.rejected):
        if item.get(key) not in allowed:
            quotes.rejected["unknown_id"] += 1
            continue
        quote = quotes.verbatim(item.get("quote"))
        sure = _confidence(item["confidence"], quotes.rejected) if "confidence" in item else None
        if quote is not None and item[key] not in accepted:
            accepted[item[key]] = Indicator(id=item[key], confidence=sure, quote=quote)
    return tuple(accepted.values())


def _items(value: Mapping[str, Any], name: str, rejected: Counter[str]) -> Iterator[dict[str, Any]]:
    entries = value.get(name)
    if not isinstance(entries, list):
        rejected["list_missing"] += 1
        return
    for item in entries:
        if isinstance(item, dict) and all(isinstance(each, str | int) for each in item.values()):
            yield item
        else:
            rejected["malformed"] += 1


def _confidence(value: Any, rejected: Counter[str]) -> float | None:
    if isinstance(value, bool) or value not in CONFIDENCE:
        rejected["out_of_range"] += 1
        return None
    return float(value) / CONFIDENCE[-1]


def _stance(value: Any, rejected: Counter[str]) -> Stance | None:
    if not isinstance(value, dict) or value.get("position") not in STANCES:
        rejected["stance"] += 1
        return None
    claim = value.get("claim")
    return Stance(position=value["position"], claim=claim[:CLAIM] if isinstance(claim, str) else "")


def _unescaped(quote: str) -> str:
    """A quote that was copied with the escapes of its JSON string, as some models do."""
    return _ESCAPE.sub(_character, quote)


def _character(match: re.Match[str]) -> str:
    return chr(int(match[1], 16)) if match[1] else _PLAIN.get(match[2], match[0])


MOST_INDICATORS, MOST_MECHANISMS, MOST_ACTS = 8, 4, 4
QUOTE, LONGEST_CLAIM, LONGEST_REASON = (
    200,
    120,
    120,
)  # characters; grammars of local servers enforce them, hosted ones are only told
CONFIDENCE = [1, 2, 3, 4]
STANCES = ["holds", "concedes", "neutral"]


@cache
def answer_schema(*, lengths: bool) -> dict[str, Any]:
    """The answer to a question about one message: evidence first, then reasons, then the marks that follow from them.

    Marks are enumerations, since no server enforces the bounds of a number. A mark that may be null is an ``anyOf``,
    which both vendors and the grammars of local servers take; Anthropic allows at most 16 of them in a schema.
    ``lengths``: with limits on strings and lists, which grammars of local servers enforce and the hosted interfaces
    refuse to be given.
    """
    prompts = shipped_prompts()
    mechanisms = [name for name, each in prompts.mechanisms.items() if not each.only_confirm]
    indicators = [each.id for each in taxonomy().asked_of_a_judge()]
    quote = text_schema(QUOTE, lengths)
    reason = object_schema(trait=_names(NEGATIVE), reason=text_schema(LONGEST_REASON, lengths))
    return object_schema(
        control=_names(prompts.limits.control),
        indicators=list_schema(_seen_schema("id", indicators, quote), MOST_INDICATORS, lengths),
        mechanisms=list_schema(_seen_schema("id", mechanisms, quote), MOST_MECHANISMS, lengths),
        acts=list_schema(object_schema(quote=quote, act=_names(prompts.acts)), MOST_ACTS, lengths),
        reasons=list_schema(reason, len(NEGATIVE), lengths),
        traits=object_schema(**{trait: _mark_schema(trait not in prompts.limits.always_marked) for trait in TRAITS}),
        stance=object_schema(position=_names(STANCES), claim=text_schema(LONGEST_CLAIM, lengths)),
    )


@cache
def confirm_schema(*, lengths: bool) -> dict[str, Any]:
    """The answer to ``confirm``."""
    quoted = object_schema(message={"type": "integer", "enum": [1, 2]}, quote=text_schema(QUOTE, lengths))
    return object_schema(
        control=_names(shipped_prompts().limits.control),
        answer=_names(("yes", "no")),
        quotes=list_schema(quoted, 2, lengths),
        confidence={"type": "integer", "enum": CONFIDENCE},
    )


def object_schema(**properties: Any) -> dict[str, Any]:
    """An object with exactly these properties, in this order."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def list_schema(items: dict[str, Any], most: int, lengths: bool) -> dict[str, Any]:
    """A list; its longest length where the server is told lengths."""
    return {"type": "array", "items": items} | ({"maxItems": most} if lengths else {})


def text_schema(most: int, lengths: bool) -> dict[str, Any]:
    """A text; its longest length in characters where the server is told lengths."""
    return {"type": "string"} | ({"maxLength": most} if lengths else {})


def _names(names: Iterable[str]) -> dict[str, Any]:
    return {"type": "string", "enum": list(names)}


def _mark_schema(nullable: bool) -> dict[str, Any]:
    mark = {"type": "integer", "enum": list(range(MARKS + 1))}
    return {"anyOf": [mark, {"type": "null"}]} if nullable else mark


def _seen_schema(key: str, names: list[str], quote: dict[str, Any]) -> dict[str, Any]:
    return object_schema(quote=quote, **{key: _names(names)}, confidence={"type": "integer", "enum": CONFIDENCE})
