"""Code in messages: fenced blocks and tool inputs, their hashes, and how much an agent's code changed."""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import msgspec

from undersong.models import CodeBlock, Message, ToolCall
from undersong.scan.rules import CodeRule, CodeTool
from undersong.scan.shell import command_of, shell_writes
from undersong.scan.speech import Keys
from undersong.scan.substance import patch_sides, substance_hash
from undersong.scan.tokens import likeness, pairs_of

FENCES = (b"```", b"~~~")
_MARKS = tuple(mark.decode() for mark in FENCES)
DIFFS = frozenset({"diff", "patch"})
_FENCE = re.compile(r"^[ \t]*(?P<mark>`{3,}|~{3,})(?P<info>[^\n]*)(?:\n|\Z)", re.MULTILINE)
_PATH_IN_INFO = re.compile(
    r"(?:title|file|filename|path)=[\"']?(?P<named>[^\"'\s]+)|[\s:](?P<bare>[^\s:=\"']*[./][^\s:=\"']+)"
)
_PATH_IN_PATCH = re.compile(r"^(?:\*\*\* (?:Update|Add|Delete) File: |\+\+\+ (?:b/)?)(?P<path>\S+)", re.MULTILINE)
LEAST_CHANGE = 0.001  # of code that differs in comments and white space only: 0.0 is kept for equal hashes


class Fence(NamedTuple):
    """A fenced block: the whole block at ``start:end``, its code at ``code_start:code_end``."""

    start: int
    end: int
    code_start: int
    code_end: int
    info: str


class ExtractedCode(NamedTuple):
    """A block with its normalised code, and the code that it replaces where a tool call says so."""

    block: CodeBlock
    text: str
    old: str | None = None


def fences(text: str) -> Iterator[Fence]:
    """The fenced blocks of a text, ``` and ~~~; an unclosed one goes to the end."""
    if "```" not in text and "~~~" not in text:
        return
    opened: re.Match[str] | None = None
    for line in _fence_lines(text):
        mark, info = line["mark"], line["info"].strip()
        if opened is None:
            if mark[0] == "~" or "`" not in info:
                opened = line
        elif mark[0] == opened["mark"][0] and len(mark) >= len(opened["mark"]) and not info:
            yield Fence(opened.start(), line.end(), opened.end(), line.start(), opened["info"].strip())
            opened = None
    if opened is not None:
        yield Fence(opened.start(), len(text), opened.end(), len(text), opened["info"].strip())


def _fence_lines(text: str) -> Iterator[re.Match[str]]:
    """The lines that begin with a fence: marks are looked for first, which is quicker than looking at every line."""
    line, places = 0, dict.fromkeys(_MARKS, -1)
    while True:
        for mark, place in places.items():
            if place < line:
                position = text.find(mark, line)
                places[mark] = len(text) if position < 0 else position
        first = min(places.values())
        if first == len(text):
            return
        match = _FENCE.match(text, text.rfind("\n", line, first) + 1 or line)
        if match is None:
            after = text.find("\n", first)
            line = len(text) if after < 0 else after + 1
        else:
            yield match
            line = match.end()


def normalise_code(code: str) -> str:
    """Line ends as LF, no trailing space, no blank lines at either end: what the hash is taken over."""
    lines = [line.rstrip() for line in code.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    first = next((at for at, line in enumerate(lines) if line), len(lines))
    last = next((at for at in range(len(lines), first, -1) if lines[at - 1]), first)
    return "\n".join(lines[first:last])


def code_of(message: Message, rule: CodeRule) -> list[ExtractedCode]:
    """The code that a message shows or writes, in order; empty blocks are no code."""
    extracted = [_of_fence(message.text, fence) for fence in fences(message.text)]
    for call in message.tool_calls:
        if call.name in rule.tools:
            codes = _of_call(call, rule.tools[call.name], rule)
        elif call.name in rule.shells:
            codes = _of_command(call)
        else:
            continue
        extracted += [_called(code, call.id) for code in codes]
    return [_with_substance(code, rule) for code in extracted if code.text or code.old]


class _ComparableCode:
    """Code that later code may be compared with; most is not, and its tokens are never counted."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def pairs(self) -> Keys:
        """See ``pairs_of``."""
        return pairs_of(self._text)


class AgentCodeHistory:
    """The code that one agent has written so far in a conversation."""

    def __init__(self, rule: CodeRule) -> None:
        self._hashes: dict[str | None, set[str]] = defaultdict(set)
        self._substances: dict[str | None, set[str | None]] = defaultdict(set)
        self._last: dict[str | None, deque[_ComparableCode]] = defaultdict(lambda: deque(maxlen=rule.compared))

    def change(self, codes: Sequence[ExtractedCode]) -> float | None:
        """How new a message's code is: 0 where every hash is known, 1 where nothing is alike, None without a past.

        Code that differs in comments and white space only is LEAST_CHANGE.

        Blocks are compared with earlier ones of the same path (those without a path with one another), an edit also
        with the code that it replaces. The mean over the blocks that have something to be compared with.
        """
        versions = [_ComparableCode(code.text) for code in codes]
        pairs = zip(codes, versions, strict=True)
        changes = [change for each in pairs if (change := self._change(*each)) is not None]
        for code, version in zip(codes, versions, strict=True):
            self._hashes[code.block.path].add(code.block.sha256)
            self._substances[code.block.path].add(code.block.substance)
            self._last[code.block.path].append(version)
        return round(sum(changes) / len(changes), 4) if changes else None

    def _change(self, code: ExtractedCode, version: _ComparableCode) -> float | None:
        path = code.block.path
        if code.block.sha256 in self._hashes[path] or code.old == code.text:
            return 0.0
        if code.block.substance in self._substances[path] or code.block.substance == code.block.replaces:
            return LEAST_CHANGE
        last = self._last[path]
        if code.old is None and not last:
            return None
        earlier = [each.pairs for each in last]
        if code.old is not None:
            earlier.append(pairs_of(code.old))
        return max(LEAST_CHANGE, 1.0 - max(likeness(version.pairs, pairs) for pairs in earlier))


def _of_fence(text: str, fence: Fence) -> ExtractedCode:
    words = fence.info.split()
    lang = re.split(r"[:{\s]", words[0], maxsplit=1)[0] if words else ""
    path = _PATH_IN_INFO.search(fence.info)
    code = normalise_code(text[fence.code_start : fence.code_end])
    block = CodeBlock(
        sha256=_hash(code),
        lang=lang.lower() or None,
        path=(path["named"] or path["bare"]) if path else None,
        lines=code.count("\n") + 1 if code else 0,
        start=fence.code_start,
        end=fence.code_end,
    )
    return ExtractedCode(block, code)


def _of_call(call: ToolCall, tool: CodeTool, rule: CodeRule) -> list[ExtractedCode]:
    arguments = _decoded(call.input)
    if isinstance(arguments, str):
        return [_of_input(arguments, None, _patch_path(arguments), tool)]
    if not isinstance(arguments, dict):
        return []
    path = _first_text(arguments, rule.paths)
    parts = arguments.get(tool.list) if tool.list else None
    edits = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else [arguments]
    codes = []
    for edit in edits:
        new, old = _first_text(edit, tool.new), _first_text(edit, tool.old)
        if new is not None:
            codes.append(_of_input(new, old, path or _patch_path(new), tool))
    return codes


def _of_command(call: ToolCall) -> list[ExtractedCode]:
    """The files and patches in a shell command."""
    codes = []
    for shell_write in shell_writes(command_of(_decoded(call.input))):
        tool = CodeTool(kind=shell_write.kind, new=())
        codes.append(_of_input(shell_write.code, None, shell_write.path or _patch_path(shell_write.code), tool))
    return codes


def _called(code: ExtractedCode, call: str | None) -> ExtractedCode:
    return code._replace(block=msgspec.structs.replace(code.block, call=call))


def _with_substance(code: ExtractedCode, rule: CodeRule) -> ExtractedCode:
    """The code with the hashes of its substance."""
    block, new, old = code.block, code.text, code.old
    if block.kind == "patch" or block.lang in DIFFS:
        old, new = patch_sides(new)
    hashes = [
        None if side is None else substance_hash(side, block.lang, block.path, rule.comments) for side in (new, old)
    ]
    return code._replace(block=msgspec.structs.replace(block, substance=hashes[0], replaces=hashes[1]))


def _decoded(value: Any) -> Any:
    """A tool's input; arguments that the source left as JSON text are decoded, other text stays text."""
    if not isinstance(value, str) or not value.lstrip().startswith(("{", '"')):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _of_input(new: str, old: str | None, path: str | None, tool: CodeTool) -> ExtractedCode:
    code = normalise_code(new)
    block = CodeBlock(sha256=_hash(code), kind=tool.kind, path=path, lines=code.count("\n") + 1 if code else 0)
    return ExtractedCode(block, code, None if old is None else normalise_code(old))


def _first_text(arguments: dict[str, Any], keys: Iterable[str]) -> str | None:
    return next((arguments[key] for key in keys if isinstance(arguments.get(key), str)), None)


def _patch_path(patch: str) -> str | None:
    match = _PATH_IN_PATCH.search(patch)
    return match["path"] if match else None


def _hash(code: str) -> str:
    return hashlib.sha256(code.encode("utf-8", "surrogatepass")).hexdigest()
