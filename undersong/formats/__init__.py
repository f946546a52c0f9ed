"""The input formats in the order in which they are tried: one module and one table line each, then plug-ins."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from undersong.datafiles.yaml_loader import did_you_mean
from undersong.errors import UndersongError, UsageError
from undersong.formats.json_stream import split
from undersong.formats.sniff import FormatSample
from undersong.formats.sources import SAMPLE, TextSource
from undersong.models import Conversation, InputFile, Problem

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

SIZES = (SAMPLE, 1 << 20, 1 << 25)  # bytes that detection looks at, the last as long as a record may be
GROUP = "undersong.formats"  # of entry points: a name, and a module or object with ``sniff`` and ``read``
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
    """A line of the table: ``name`` as in ``--from``, ``detected`` says by what content it is known, ``export`` how
    people get such a file; ``whole``: its reader gives whole conversations, so that two with one id are two. ``marks``
    are strings of which every such file has one at its start: where none is, the module is not loaded to look at it."""

    name: str
    title: str
    module: str
    detected: str
    export: str = ""
    plugin: EntryPoint | None = None
    whole: bool = False
    marks: tuple[str, ...] = ()

    def knows(self, sample: FormatSample) -> bool:
        """Whether the start of an input is of this format."""
        return (not self.marks or any(mark in sample.text for mark in self.marks)) and self.reader().sniff(sample)

    def reader(self) -> FormatReader:
        """The module of this format; raises UsageError for a plug-in that cannot be loaded."""
        if self.plugin is not None:
            return _PluginReader(self.plugin)
        return cast(FormatReader, import_module(f"undersong.formats.{self.module}"))


class _PluginReader:
    """The reader of an installed package; whatever it raises becomes an error that names the plug-in."""

    def __init__(self, plugin: EntryPoint) -> None:
        self._plugin = plugin
        try:
            self._reader: FormatReader = plugin.load()
        except Exception as error:
            raise UsageError(f"{_described(plugin)} cannot be loaded: {error!r}", remedy=_REMEDY) from error
        for name in ("sniff", "read"):
            if not callable(getattr(self._reader, name, None)):
                raise UsageError(f"{_described(plugin)} has no function '{name}'", remedy=_REMEDY)

    def sniff(self, sample: FormatSample) -> bool:
        try:
            return bool(self._reader.sniff(sample))
        except Exception as error:
            raise self._failed(error) from error

    def read(self, source: TextSource) -> Iterator[Item]:
        try:
            for item in self._reader.read(source):
                if not isinstance(item, Item):
                    raise TypeError(f"read() gave a {type(item).__name__}")
                yield item
        except UndersongError:
            raise
        except Exception as error:
            raise self._failed(error) from error

    def _failed(self, error: Exception) -> UndersongError:
        return UsageError(f"{_described(self._plugin)} failed: {error!r}", remedy=_REMEDY)


_REMEDY = "update or uninstall the package"


def _described(plugin: EntryPoint) -> str:
    package = f" of the package {plugin.dist.name} {plugin.dist.version}" if plugin.dist else ""
    return f"the format plug-in '{plugin.name}'{package}"


FORMATS: tuple[Format, ...] = (
    Format(
        "chatgpt",
        "ChatGPT data export (ZIP or JSON)",
        "chatgpt",
        "a 'mapping' of nodes",
        "Settings, Data controls, Export data; the ZIP comes by mail",
        whole=True,
        marks=('"mapping"',),
    ),
    Format(
        "claude",
        "Claude.ai data export (ZIP or JSON)",
        "claude",
        "'chat_messages'",
        "Settings, Privacy, Export data; the ZIP comes by mail",
        whole=True,
        marks=('"chat_messages"',),
    ),
    Format(
        "gemini",
        "Gemini Apps activity of Google Takeout (JSON)",
        "gemini",
        "a 'header' that names Gemini",
        "takeout.google.com, My Activity, Gemini Apps, format JSON",
        marks=('"header"',),
    ),
    Format(
        "claude-code",
        "Claude Code sessions (folder or JSONL)",
        "claude_code",
        "'sessionId' and 'uuid' in lines",
        "~/.claude/projects",
        marks=('"sessionId"', '"leafUuid"', '"file-history-snapshot"', '"queue-operation"'),
    ),
    Format(
        "codex",
        "Codex CLI rollouts (JSONL)",
        "codex",
        "'type' and 'payload' in lines",
        "~/.codex/sessions, or codex exec --json",
        marks=('"payload"', '"thread.started"', '"item.completed"', '"instructions"'),
    ),
    Format(
        "atif",
        "Agent trajectories (ATIF, JSON)",
        "atif",
        "'steps' with an ATIF 'schema_version'",
        "Harbor and others write trajectory.json for each trial",
        whole=True,
        marks=('"schema_version"',),
    ),
    Format(
        "wildchat",
        "Rows of WildChat or LMSYS-Chat (JSON or JSONL)",
        "wildchat",
        "a 'conversation' beside its id and model",
        "the data set as JSON, JSONL or Parquet from Hugging Face",
        whole=True,
        marks=('"conversation"',),
    ),
    Format(
        "inspect",
        "Inspect AI logs (.eval or JSON)",
        "inspect_log",
        "'eval' and 'plan', or a sample's 'epoch'",
        "the logs/ folder of inspect eval",
        whole=True,
        marks=('"eval"', '"epoch"'),
    ),
    Format(
        "otel",
        "OpenTelemetry or Phoenix traces (JSON or JSONL)",
        "otel",
        "'resourceSpans', or spans with a 'context'",
        "the collector's file exporter as JSON or protobuf, or Phoenix's spans as JSON",
        marks=('"resourceSpans"', '"resourceLogs"', '"trace_id"'),
    ),
    Format(
        "langfuse",
        "Langfuse traces, sessions and observations (JSON or JSONL)",
        "langfuse",
        "observations with a 'traceId' and a type such as GENERATION",
        "a trace's Download JSON, the export button of a table, or the export to blob storage",
        marks=('"traceId"', '"trace_id"', '"sessionId"'),
    ),
    Format(
        "langsmith",
        "LangSmith runs (JSON, JSONL or Parquet)",
        "langsmith",
        "a 'run_type' beside 'inputs'",
        "bulk export, or list_runs of its SDK as JSON",
        marks=('"run_type"',),
    ),
    Format(
        "braintrust",
        "Braintrust logs and experiments (JSON, JSONL or Parquet)",
        "braintrust",
        "a 'root_span_id' or 'span_attributes' beside an 'input'",
        "the download of Logs, an export automation, or its API",
        marks=('"span_id"',),
    ),
    Format(
        "signal",
        "Signal export of chats (main.jsonl)",
        "signal",
        "frames such as 'chatItem' and 'recipient'",
        "Settings, Chats, Export chat history as JSON; give the folder or its main.jsonl",
        marks=('"chatItem"', '"recipientId"', '"recipient"'),
    ),
    Format(
        "telegram",
        "Telegram export (result.json)",
        "telegram",
        "'messages' with 'from_id'",
        "Telegram Desktop: the chat's menu, Export chat history, format JSON",
        marks=('"from_id"', '"actor_id"'),
    ),
    Format(
        "slack",
        "Slack export (ZIP or folder)",
        "slack",
        "messages with a 'ts' such as \"1767348000.000100\"",
        "Settings, Import/Export data, Export; give the ZIP",
        marks=('"ts"', '"profile"', '"members"'),
    ),
    Format(
        "discord",
        "Discord channels of DiscordChatExporter (JSON)",
        "discord",
        "a 'guild' and a 'channel'",
        "DiscordChatExporter, format JSON",
        marks=('"channel"',),
    ),
    Format(
        "cursor",
        "Cursor chats (Markdown), cursor-agent streams",
        "cursor",
        "'Exported on … from Cursor'",
        "the chat's menu, Export; or cursor-agent -p --output-format stream-json",
        marks=('"tool_call"', " from Cursor "),
    ),
    Format(
        "claude-stream",
        "claude -p --output-format stream-json",
        "claude_stream",
        "'session_id' and 'type'",
        "claude -p --output-format stream-json --verbose > FILE",
        marks=('"session_id"',),
    ),
    Format(
        "openhands",
        "OpenHands events (JSON or JSONL)",
        "openhands",
        "'action' with 'args', or 'ActionEvent'",
        "the events folder of a session, or its trajectory download",
        marks=('"args"', '"extras"', '"MessageEvent"', '"ActionEvent"', '"ObservationEvent"'),
    ),
    Format(
        "sweagent",
        "SWE-agent trajectories (.traj)",
        "sweagent",
        "a 'trajectory' of actions",
        "the trajectories/ folder",
        whole=True,
        marks=('"trajectory"',),
    ),
    Format(
        "copilot",
        "GitHub Copilot chats of VS Code (JSON)",
        "copilot",
        "'requests' and 'responderUsername'",
        "the command Chat: Export Chat...",
        whole=True,
        marks=('"requests"',),
    ),
    Format(
        "specstory",
        "SpecStory histories (Markdown)",
        "specstory",
        "lines such as '_**User**_'",
        "the .specstory/history folder",
        marks=("SpecStory", "_**User"),
    ),
    Format(
        "moltbook",
        "Moltbook posts with comments (JSON)",
        "moltbook",
        "posts with 'comments'",
        "a dump of posts with their comments",
        whole=True,
        marks=('"comments"', '"submolt"', '"thread_id"'),
    ),
    Format(
        "session",
        "Session JSON, version 1",
        "session",
        "'session' and 'turns'",
        "written by your own program, see docs/formats.md",
        whole=True,
        marks=('"session"', '"undersong.session"'),
    ),
    Format(
        "sharegpt",
        "ShareGPT conversations (JSON or JSONL)",
        "sharegpt",
        "'conversations' of 'from' and 'value'",
        "the data set as JSON, JSONL or Parquet",
        whole=True,
        marks=('"conversations"',),
    ),
    Format(
        "jsonl",
        "Messages as JSON Lines (our own)",
        "jsonl",
        "'text' with 'author', 'agent_id' or 'role'",
        "written by your own program, see docs/formats.md",
    ),
    Format(
        "openai",
        "OpenAI or Anthropic chat messages (JSON or JSONL)",
        "openai",
        "'role' and 'content'",
        "your own log of requests and answers, a batch file, or training data",
        whole=True,
    ),
    Format(
        "text",
        "Plain-text transcript",
        "text",
        "lines such as 'User: …' and 'Assistant: …'",
        "what you paste into a file; WhatsApp: the chat's menu, Export chat, with or without media",
    ),
)
ALIASES = {"mpc-es": "session"}


@cache
def plugin_formats() -> tuple[Format, ...]:
    """The formats that installed packages add, by name; raises UsageError where one has a name that is taken."""
    from importlib.metadata import entry_points  # here, since it costs a run without plug-ins some milliseconds

    formats: dict[str, Format] = {}
    for plugin in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        if plugin.name in formats or plugin.name in ALIASES or plugin.name in [form.name for form in FORMATS]:
            raise UsageError(f"{_described(plugin)} has the name of another format", remedy=_REMEDY)
        title = _described(plugin).removeprefix("the format ")
        formats[plugin.name] = Format(plugin.name, title, plugin.module, "its own code", plugin=plugin)
    return tuple(formats.values())


def all_formats() -> Iterator[Format]:
    """The table, then the plug-ins, which are looked for only when they are asked for."""
    yield from FORMATS
    yield from plugin_formats()


def format_by_name(name: str) -> Format:
    """The format of ``--from NAME``; raises UsageError for an unknown name."""
    wanted = ALIASES.get(name, name)
    for candidate in all_formats():
        if candidate.name == wanted:
            return candidate
    names = [form.name for form in all_formats()] + list(ALIASES)
    raise UsageError(f"unknown format '{name}'", remedy=did_you_mean(name, names))


def detect(source: TextSource) -> Format | None:
    """The first format that knows the start of the input; raises InputError for what is not text.

    Where none does and it is JSON, more of it is read: a first record can be long before it names what it is.
    """
    for size in SIZES:
        sample = FormatSample(source, size)
        form = next((form for form in all_formats() if form.knows(sample)), None)
        if form is not None or not is_cut(source, size):
            return form
    return None


def is_cut(source: TextSource, size: int) -> bool:
    """Whether the first record of a JSON input goes on beyond its first ``size`` bytes."""
    head = source.head(size)
    if len(head) < size or head.lstrip()[:1] not in (b"{", b"["):
        return False
    return any(piece.fault for piece in islice(split([head], frozenset()), 1))
