"""The JSON schema of an answer, in the dialect that a server understands."""

from __future__ import annotations

from functools import cache
from typing import Any

from undersong.judges.llm.book import MARKS, shipped_prompts
from undersong.models import TRAITS
from undersong.taxonomy import taxonomy

MOST_INDICATORS, MOST_MECHANISMS, MOST_ACTS = 12, 4, 4
QUOTE, LONGEST_CLAIM = 200, 120  # characters; grammars of local servers enforce them, hosted ones are only told
CONFIDENCE = [1, 2, 3, 4]
STANCES = ["holds", "concedes", "neutral"]


@cache
def answer_schema(*, lengths: bool) -> dict[str, Any]:
    """The answer to a question about one message.

    Marks are enumerations, since no server enforces the bounds of a number. ``lengths``: with limits on strings and
    lists, which grammars of local servers enforce and the hosted interfaces refuse to be given.
    """
    prompts = shipped_prompts()
    mechanisms = [name for name, each in prompts.mechanisms.items() if not each.only_confirm]
    indicators = [each.id for each in taxonomy().asked_of_a_judge()]
    quote = _text(QUOTE, lengths)
    return _object(
        control={"type": "string", "enum": list(prompts.limits.control)},
        traits=_object(**{trait: {"type": "integer", "enum": list(range(MARKS + 1))} for trait in TRAITS}),
        indicators=_list(_seen("id", indicators, quote), MOST_INDICATORS, lengths),
        mechanisms=_list(_seen("id", mechanisms, quote), MOST_MECHANISMS, lengths),
        acts=_list(_object(act={"type": "string", "enum": list(prompts.acts)}, quote=quote), MOST_ACTS, lengths),
        stance=_object(position={"type": "string", "enum": STANCES}, claim=_text(LONGEST_CLAIM, lengths)),
    )


@cache
def confirm_schema(*, lengths: bool) -> dict[str, Any]:
    """The answer to ``confirm``."""
    quoted = _object(message={"type": "integer", "enum": [1, 2]}, quote=_text(QUOTE, lengths))
    return _object(
        control={"type": "string", "enum": list(shipped_prompts().limits.control)},
        answer={"type": "string", "enum": ["yes", "no"]},
        quotes=_list(quoted, 2, lengths),
        confidence={"type": "integer", "enum": CONFIDENCE},
    )


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(items: dict[str, Any], most: int, lengths: bool) -> dict[str, Any]:
    return {"type": "array", "items": items} | ({"maxItems": most} if lengths else {})


def _text(most: int, lengths: bool) -> dict[str, Any]:
    return {"type": "string"} | ({"maxLength": most} if lengths else {})


def _seen(key: str, names: list[str], quote: dict[str, Any]) -> dict[str, Any]:
    return _object(
        **{key: {"type": "string", "enum": names}}, quote=quote, confidence={"type": "integer", "enum": CONFIDENCE}
    )
