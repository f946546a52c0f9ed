"""What of code is substance: the same code without its comments, and without white space that says nothing."""

from __future__ import annotations

import hashlib
from pathlib import PurePosixPath

from undersong.scan.rules import CommentRule

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
