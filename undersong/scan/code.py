"""Code in messages: fenced blocks and tool inputs, their hashes, and how much an agent's code changed."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any, Literal, NamedTuple

import msgspec

from undersong.core.text import text_hash
from undersong.datafiles.scan_config import CodeRule, CodeTool, CommentRule
from undersong.models import CodeBlock, Message, ToolCall

FENCES = (b"```", b"~~~")
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
    for line in _FENCE.finditer(text):
        mark, info = line["mark"], line["info"].strip()
        if opened is None:
            if mark[0] == "~" or "`" not in info:
                opened = line
        elif mark[0] == opened["mark"][0] and len(mark) >= len(opened["mark"]) and not info:
            yield Fence(opened.start(), line.end(), opened.end(), line.start(), opened["info"].strip())
            opened = None
    if opened is not None:
        yield Fence(opened.start(), len(text), opened.end(), len(text), opened["info"].strip())


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


class AgentCodeHistory:
    """The code that one agent has written so far in a conversation."""

    def __init__(self, rule: CodeRule) -> None:
        self._hashes: dict[str | None, set[str]] = defaultdict(set)
        self._substances: dict[str | None, set[str | None]] = defaultdict(set)
        self._last: dict[str | None, deque[str]] = defaultdict(lambda: deque(maxlen=rule.compared))

    def change(self, codes: Sequence[ExtractedCode]) -> float | None:
        """How new a message's code is: 0 where every hash is known, 1 where nothing is alike, None without a past.

        Code that differs in comments and white space only is LEAST_CHANGE.

        Blocks are compared with earlier ones of the same path (those without a path with one another), an edit also
        with the code that it replaces. The mean over the blocks that have something to be compared with.
        """
        changes = [change for code in codes if (change := self._change(code)) is not None]
        for code in codes:
            self._hashes[code.block.path].add(code.block.sha256)
            self._substances[code.block.path].add(code.block.substance)
            self._last[code.block.path].append(code.text)
        return round(sum(changes) / len(changes), 4) if changes else None

    def _change(self, code: ExtractedCode) -> float | None:
        path = code.block.path
        if code.block.sha256 in self._hashes[path] or code.old == code.text:
            return 0.0
        if code.block.substance in self._substances[path] or code.block.substance == code.block.replaces:
            return LEAST_CHANGE
        earlier = [*self._last[path], *([] if code.old is None else [code.old])]
        if not earlier:
            return None
        own = pairs_of(code.text)
        return max(LEAST_CHANGE, 1.0 - max(likeness(own, pairs_of(text)) for text in earlier))


def _of_fence(text: str, fence: Fence) -> ExtractedCode:
    words = fence.info.split()
    lang = re.split(r"[:{\s]", words[0], maxsplit=1)[0] if words else ""
    path = _PATH_IN_INFO.search(fence.info)
    code = normalise_code(text[fence.code_start : fence.code_end])
    block = CodeBlock(
        sha256=text_hash(code),
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
    block = CodeBlock(sha256=text_hash(code), kind=tool.kind, path=path, lines=code.count("\n") + 1 if code else 0)
    return ExtractedCode(block, code, None if old is None else normalise_code(old))


def _first_text(arguments: dict[str, Any], keys: Iterable[str]) -> str | None:
    return next((arguments[key] for key in keys if isinstance(arguments.get(key), str)), None)


def _patch_path(patch: str) -> str | None:
    match = _PATH_IN_PATCH.search(patch)
    return match["path"] if match else None


LONGEST = 200_000  # characters of a command that are looked at
_PATCH = re.compile(r"\*\*\* Begin Patch\n.*?(?:\*\*\* End Patch|\Z)", re.DOTALL)
_HERE = re.compile(
    r"(?:cat|tee)\s*(?P<mode>>{0,2})\s*(?P<path>[\w./~-]+)?\s*<<-?\s*['\"]?(?P<end>\w+)['\"]?\s*"
    r"(?:(?P<late>>{1,2})\s*(?P<after>[\w./~-]+))?\n"
)


class ShellWrite(NamedTuple):
    """A file or a patch that a command writes."""

    kind: Literal["write", "patch"]
    code: str
    path: str | None


def command_of(value: Any) -> str:
    """The command line in a tool's input: a string, a list of words, or an object with one of them."""
    if isinstance(value, dict):
        value = next((value[key] for key in ("command", "cmd", "script", "code", "input") if key in value), "")
    if isinstance(value, list):
        return "\n".join(each for each in value if isinstance(each, str))
    return value if isinstance(value, str) else ""


def shell_writes(command: str) -> Iterator[ShellWrite]:
    """What a command line writes, in order; appended text is no version of a file."""
    if len(command) > LONGEST or ("<<" not in command and "*** Begin Patch" not in command):
        return
    for patch in _PATCH.finditer(command):
        yield ShellWrite("patch", patch[0], None)
    at = 0
    while here := _HERE.search(command, at):
        end = re.compile(rf"^\s*{re.escape(here['end'])}\s*$", re.MULTILINE).search(command, here.end())
        stop = end.start() if end else len(command)
        path = here["path"] or here["after"]
        if path and ">>" not in (here["mode"], here["late"]):
            yield ShellWrite("write", command[here.end() : stop], path)
        at = end.end() if end else len(command)


QUOTES = "\"'`"
NO_COMMENTS = CommentRule()


def substance_hash(code: str, lang: str | None, path: str | None, comments: dict[str, CommentRule]) -> str:
    """SHA-256 of normalised code without what does not run.

    Two codes have the same where they differ in comments, blank lines and white space only. ``comments`` are by
    language; the language comes from the fence or from the ending of the path. In an unknown language nothing is
    taken for a comment, and where indentation means something it stays.
    """
    rule = _rule(lang, path, comments)
    normalized = "\n".join(_lines(_without_blocks(code, rule), rule))
    return hashlib.sha256(normalized.encode("utf-8", "surrogatepass")).hexdigest()


def patch_sides(patch: str) -> tuple[str, str]:
    """The code before and after a patch: its context with the removed lines, and with the added ones."""
    before, after = [], []
    for line in patch.split("\n"):
        if line.startswith(("+++", "---", "***", "@@", "diff ", "index ")):
            continue
        mark, code = line[:1], line[1:]
        if mark != "+":
            before.append(code if mark in ("-", " ") else line)
        if mark != "-":
            after.append(code if mark in ("+", " ") else line)
    return "\n".join(before), "\n".join(after)


def _rule(lang: str | None, path: str | None, comments: dict[str, CommentRule]) -> CommentRule:
    ending = PurePosixPath(path).suffix.removeprefix(".").lower() if path else ""
    names = [name for name in (ending, lang) if name]
    return next((rule for name in names for rule in comments.values() if name in rule.names), NO_COMMENTS)


def _without_blocks(code: str, rule: CommentRule) -> str:
    """Code without comments that have an end, where they stand on lines of their own."""
    if rule.opens is None or rule.closes is None or rule.opens not in code:
        return code
    lines: list[str] = []
    inside = False
    for line in code.split("\n"):
        bare = line.strip()
        if not inside and bare.startswith(rule.opens):
            inside = True
            bare = bare.removeprefix(rule.opens)
        elif not inside:
            lines.append(line)
            continue
        if rule.closes in bare:
            inside = False
            rest = bare.partition(rule.closes)[2]
            if rest.strip():
                lines.append(rest)
    return "\n".join(lines)


def _lines(code: str, rule: CommentRule) -> list[str]:
    """The lines with substance; most have no comment and no white space to change, and are not looked at closely."""
    lines = code.split("\n")
    if len("".join(code.split())) < len(code) - code.count(" ") - code.count("\n"):  # other white space
        return [normalized for line in lines if (normalized := _line(line, rule))]
    marks = [mark for mark in rule.marks if mark in code]
    result = []
    for line in lines:
        bare = line.strip(" ")
        if "  " in bare or any([mark in bare for mark in marks]):
            bare = _line(line, rule)
        elif rule.indents and bare:
            bare = line.rstrip(" ")
        if bare:
            result.append(bare)
    return result


def _line(line: str, rule: CommentRule) -> str:
    """One line without its comment; its white space as single spaces, unless a string may hold some."""
    bare = line.strip()
    if any(bare.startswith(mark) for mark in rule.marks) and not bare.startswith(rule.directives):
        return ""
    for mark in rule.marks:
        before, separator, after = bare.partition(f" {mark}")
        if separator and not any(quote in after for quote in QUOTES) and not _open_string(before):
            bare = before.rstrip()
    if not bare:
        return ""
    indent = line[: len(line) - len(line.lstrip())].expandtabs(4) if rule.indents else ""
    return indent + (bare if any(quote in bare for quote in QUOTES) else " ".join(bare.split()))


def _open_string(before: str) -> bool:
    return any(before.count(quote) % 2 for quote in QUOTES)


_TOKEN = re.compile(r"\w+|[^\w\s]")


@lru_cache(maxsize=32)  # a version is compared with several later ones
def pairs_of(code: str) -> Counter[tuple[str, str]]:
    """The bigrams of the tokens, and how often each occurs."""
    return Counter(pairwise(["", *_TOKEN.findall(code), ""]))


def likeness(one: Counter[tuple[str, str]], other: Counter[tuple[str, str]]) -> float:
    """How much of two codes is the same, 0 to 1: the Dice coefficient of their bigrams."""
    return 2.0 * (one & other).total() / (one.total() + other.total())
