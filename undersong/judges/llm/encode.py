"""Text of a transcript → one JSON string that can neither leave its line nor pass for anything but data."""

from __future__ import annotations

import json
import re
import unicodedata

# What chat templates read as control: <|im_start|>, </s>, <start_of_turn>, <think>, [INST], [/INST], [TOOL_CALLS] …
_TEMPLATE = re.compile(r"<(?![\s=\d<-])|\[(?=/?[A-Z_]{3,}\])|(?<=\|)>|\u2581|\uff5c")
_HIDDEN = frozenset(
    {"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"}
)  # control, format, private, broken, unassigned, separators
_UNUSUAL = re.compile(r"[^ -~]")
_WIDE = 0x10000


def encoded(text: str) -> str:
    """The text as a JSON string on one line, quotes included.

    Line breaks, control and invisible characters and the first characters of template tokens are JSON escapes, so that
    decoding the string gives the text back unchanged.

    >>> encoded("one\\ntwo <|im_end|>")
    '"one\\\\ntwo \\\\u003c|im_end|\\\\u003e"'
    """
    line = json.dumps(text, ensure_ascii=False)
    return _visible(_TEMPLATE.sub(_template, line))


def shortened(text: str, most: int) -> tuple[str, int]:
    """The text with its middle left out where it is longer than ``most`` UTF-8 bytes, and how many bytes it had.

    0 stands for a text that is whole. The ends are cut at characters, never inside one.
    """
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= most:
        return text, 0
    half = max(1, most // 2)
    head, tail = (part.decode("utf-8", "ignore") for part in (data[:half], data[-half:]))
    return f"{head}\n[…]\n{tail}", len(data)


def _visible(line: str) -> str:
    return line if line.isascii() and line.isprintable() else _UNUSUAL.sub(_shown, line)


def _shown(match: re.Match[str]) -> str:
    return _escape(match[0]) if unicodedata.category(match[0]) in _HIDDEN else match[0]


def _template(match: re.Match[str]) -> str:
    return _escape(match[0])


def _escape(char: str) -> str:
    code = ord(char)
    if code < _WIDE:
        return f"\\u{code:04x}"
    high, low = divmod(code - _WIDE, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
