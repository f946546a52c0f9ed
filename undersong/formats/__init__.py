"""The input formats: one module and one table line each, in the order in which they are tried."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import NamedTuple, Protocol, cast

from undersong.datafiles.yaml_loader import did_you_mean
from undersong.errors import UsageError
from undersong.formats.sniff import FormatSample
from undersong.formats.sources import TextSource
from undersong.models import Conversation, InputFile, Problem

Item = Conversation | Problem | InputFile


class FormatReader(Protocol):
    """What a module of a format gives. Both work on hostile input: a wrong record is a Problem, never an exception
    other than InputError."""

    def sniff(self, sample: FormatSample) -> bool:
        """Whether the start of an input is of this format."""
        ...

    def read(self, source: TextSource) -> Iterator[Item]:
        """Conversations or parts of them, in source order, not settled; Problems; an InputFile per companion file."""
        ...


class Format(NamedTuple):
    """A line of the table: ``name`` as in ``--from``, ``detected`` says by what content it is known."""

    name: str
    title: str
    module: str
    detected: str

    def reader(self) -> FormatReader:
        """The module of this format."""
        return cast(FormatReader, import_module(f"undersong.formats.{self.module}"))


FORMATS: tuple[Format, ...] = (
    Format("chatgpt", "ChatGPT data export (ZIP or JSON)", "chatgpt", "a 'mapping' of nodes"),
    Format("claude", "Claude.ai data export (ZIP or JSON)", "claude", "'chat_messages'"),
    Format("gemini", "Gemini Apps activity of Google Takeout (JSON)", "gemini", "a 'header' that names Gemini"),
    Format("claude-code", "Claude Code sessions (folder or JSONL)", "claude_code", "'sessionId' and 'uuid' in lines"),
    Format("codex", "Codex CLI rollouts (JSONL)", "codex", "'type' and 'payload' in lines"),
    Format("moltbook", "Moltbook posts with comments (JSON)", "moltbook", "posts with 'comments'"),
    Format("session", "Session JSON, version 1", "session", "'session' and 'turns'"),
    Format("sharegpt", "ShareGPT conversations (JSON or JSONL)", "sharegpt", "'conversations' of 'from' and 'value'"),
    Format("jsonl", "Messages as JSON Lines (our own)", "jsonl", "'text' with 'author', 'agent_id' or 'role'"),
    Format("openai", "OpenAI or Anthropic chat messages (JSON or JSONL)", "openai", "'role' and 'content'"),
    Format("text", "Plain-text transcript", "text", "lines such as 'User: …' and 'Assistant: …'"),
)
ALIASES = {"mpc-es": "session"}


def format_by_name(name: str) -> Format:
    """The format of ``--from NAME``; raises UsageError for an unknown name."""
    wanted = ALIASES.get(name, name)
    for candidate in FORMATS:
        if candidate.name == wanted:
            return candidate
    names = [each.name for each in FORMATS] + list(ALIASES)
    raise UsageError(f"unknown format '{name}'", remedy=did_you_mean(name, names))


def detect(source: TextSource) -> Format | None:
    """The first format of the table that knows the start of the input; raises InputError for what is not text."""
    sample = FormatSample(source)
    return next((each for each in FORMATS if each.reader().sniff(sample)), None)
