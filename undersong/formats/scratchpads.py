"""Thinking between tags in the text of a message, as in ``<scratchpad>…</scratchpad>``, told from speech."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

import msgspec

from undersong.models import Conversation, Message, Role

TAGS = (
    "scratchpad", "scratchpad_reasoning", "scratch_pad", "thinking", "think", "thought", "thoughts", "reasoning",
    "inner_monologue", "internal_monologue", "inner_thoughts", "private_reasoning", "hidden_reasoning",
    "chain_of_thought", "cot",
)  # fmt: skip
AGENTS: frozenset[Role] = frozenset({"assistant", "agent"})  # a person who writes such a tag says it
FENCE = "```"


@cache
def _block() -> re.Pattern[str]:
    """A block that begins the text or a line: one within a sentence is talked about."""
    return re.compile(rf"(?is)(?:\A|(?<=\n))[ \t]*<({'|'.join(TAGS)})>(.*?)</\1>[ \t]*\n?")


def with_thinking(part: Conversation) -> tuple[Conversation, int]:
    """The part with what its agents wrote between such tags as their thinking, and of how many messages that is."""
    messages = list(part.messages)
    changed = 0
    for place, message in enumerate(messages):
        if "</" in message.text and message.role in AGENTS:
            messages[place] = parted = _parted(message)
            changed += parted is not message
    return (msgspec.structs.replace(part, messages=tuple(messages)), changed) if changed else (part, 0)


def _parted(message: Message) -> Message:
    """Blocks in fenced code are an example of something and stay; so does a tag that is never closed."""
    speech, thoughts, at = list[str](), list[str](), 0
    while match := _block().search(message.text, at):
        speech.append(message.text[at : match.start()])
        if "".join(speech).count(FENCE) % 2:
            speech.append(match[0])
        else:
            thoughts.append(match[2].strip())
        at = match.end()
        if at == match.start():
            break
    if not thoughts:
        return message
    text = "".join((*speech, message.text[at:])).strip()
    return msgspec.structs.replace(message, text=text, thinking=_joined([message.thinking, *thoughts]))


def _joined(thoughts: Sequence[str]) -> str:
    return "\n\n".join(thought for thought in thoughts if thought)
