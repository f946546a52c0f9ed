"""Stories that were asked for: there the people of the story speak, and not the agent that writes them."""

from __future__ import annotations

import re

from undersong.verdict.words import pattern, roleplay_config

_SPEECH = re.compile(r"\"[^\"\n]{1,2000}\"|“[^“”\n]{1,2000}”")


def asks_for_a_story(text: str) -> bool:
    """Whether somebody asks that a story be written or told."""
    return pattern((roleplay_config().asked,)).search(text) is not None


def without_speech(text: str) -> str:
    """The text with blanks in place of what stands in quotation marks, so that every place stays the same."""
    return _SPEECH.sub(lambda match: " " * len(match[0]), text)


def is_speech(text: str) -> bool:
    """Whether people in quotation marks speak for so large a part that a signal of the whole is theirs."""
    quoted = sum(len(found[0]) for found in _SPEECH.finditer(text))
    return quoted >= roleplay_config().share * max(len(text), 1)
