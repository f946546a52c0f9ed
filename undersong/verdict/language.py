"""Whether a conversation is in English, by its words without content: phrases and scores know no other language."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache

from undersong.core.text import counted
from undersong.datafiles.work_rules import SessionRules
from undersong.datafiles.yaml_loader import RULES, read
from undersong.models import Conversation, Problem

OTHER_SCRIPT = "another script"
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_OTHER_SCRIPT = re.compile("[\u0250-\U0010ffff]")  # below are Latin letters: Basic, Latin-1, Extended-A and -B


class LanguagesConfig(SessionRules, frozen=True, kw_only=True):
    """``rules/languages.yaml``: see the comments there."""

    words: int
    least: float
    letters: float
    messages: int
    characters: int
    english: str
    languages: dict[str, str]


@cache
def languages_config() -> LanguagesConfig:
    """The shipped words; raises RuleError with file and line."""
    return read(RULES / "languages.yaml", LanguagesConfig)


@cache
def _stop_words() -> dict[str, frozenset[str]]:
    return {name: frozenset(words.split()) for name, words in languages_config().languages.items()}


@cache
def _english() -> frozenset[str]:
    return frozenset(languages_config().english.split())


def other_language(conversation: Conversation) -> str | None:
    """The language that a conversation is mostly in; None for English, and where there are too few words."""
    config = languages_config()
    spoken = [message.text for message in conversation.messages if message.role not in ("tool", "system")]
    step = max(1, len(spoken) // config.messages)
    words = _WORD.findall(" ".join(text[: config.characters] for text in spoken[::step][: config.messages]).lower())
    letters = sum(map(len, words))
    foreign = len(_OTHER_SCRIPT.findall("".join(words)))
    if letters >= config.words and foreign >= config.letters * letters:
        return OTHER_SCRIPT
    if len(words) < config.words:
        return None
    counts = Counter(words)
    shares = {name: sum(counts[word] for word in stop & counts.keys()) for name, stop in _stop_words().items()}
    english = sum(counts[word] for word in _english() & counts.keys())
    name = max(shares, key=lambda language: shares[language])
    return name if shares[name] > english and shares[name] >= config.least * len(words) else None


def language_note(languages: Iterable[str], conversations: int) -> Problem | None:
    """One line for the conversations that are not in English, of so many; None where there are none."""
    counts = Counter(languages)
    if not counts:
        return None
    names = ", ".join(
        f"{counts[name]} in {name}" for name in sorted(counts, key=lambda language: (-counts[language], language))
    )
    verb = "is" if counts.total() == 1 else "are"
    what = (
        f"{counts.total()} of {counted(conversations, 'conversation')} {verb} mostly not in English ({names}): scores, "
        "signals and phrases do not apply there, and what was not found says nothing"
    )
    return Problem(what=what, where="language", remedy="read them with an LLM judge (`--judge`)", kind="note")
