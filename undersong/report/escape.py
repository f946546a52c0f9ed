"""Escaping for reports: foreign text stays verbatim for the reader and without effect in Markdown."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from itertools import pairwise

from undersong.core.sanitize import one_line, visible
from undersong.core.text import escaped_name, plain_name

LABEL = 120  # characters of a name or id in a line
_BACKTICKS = re.compile(r"`+")
_SPECIAL = re.compile(r"[\\`*_{}\[\]<>#|~&$]")
_STARTS = re.compile(r"^(?:[-+=]|\d+(?=[.)](?:\s|$)))")  # what would begin a list or underline a heading
_CODE = re.compile(r"(\[CODE-[A-O]: [A-Za-z /-]+\])")
_LINKS = re.compile(r"(?i)(?<=:)//|(?<=www)\.|@")
_SPARKS = "▁▂▃▄▅▆▇█"


def shown(text: str) -> str:
    """Text for a block: invisible and control characters made visible, line ends as line feeds."""
    return visible(text.replace("\r\n", "\n"))


def label(text: str, width: int = LABEL) -> str:
    """A name, id or path on one line, never empty."""
    return one_line(text, width) or "(empty)"


def fenced(text: str) -> str:
    """A Markdown code block that ``text`` cannot close: its fence is longer than any run of backticks inside."""
    body = shown(text)
    fence = "`" * max(3, 1 + max(map(len, _BACKTICKS.findall(body)), default=0))
    return f"{fence}text\n{body}\n{fence}"


def code(text: str, width: int = LABEL) -> str:
    """A Markdown code span for a foreign name; in a table use ``cell``."""
    body = label(text, width)
    ticks = "`" * (1 + max(map(len, _BACKTICKS.findall(body)), default=0))
    pad = " " if body[0] == "`" or body[-1] == "`" else ""
    return f"{ticks}{pad}{body}{pad}{ticks}"


def cell(text: str, width: int = LABEL) -> str:
    """The same in the cell of a table, where a bar would end the cell even in a code span.

    GitHub and editors show ``\\|`` there as a bar; other renderers may show the backslash, and keep the cell whole.
    """
    return code(text, width).replace("|", "\\|")


def plain(text: str) -> str:
    """A sentence in Markdown in which nothing is markup, a link or a mention.

    A distress code is a code span, so that a search in the file finds it as it is written: ``[CODE-A: …]``.
    """
    parts = _CODE.split(" ".join(visible(text).split()))  # odd ones are codes: letters, spaces and slashes alone
    return "".join(f"`{part}`" if n % 2 else _escaped(part, begins=n == 0) for n, part in enumerate(parts))


def _escaped(text: str, *, begins: bool) -> str:
    escaped = _SPECIAL.sub(r"\\\g<0>", text)
    linkless = _LINKS.sub(lambda match: {"//": "\\//", ".": "\\.", "@": "`@`"}[match[0]], escaped)
    if not begins:
        return linkless
    return _STARTS.sub(lambda match: f"\\{match[0]}" if match[0] in "-+=" else f"{match[0]}\\", linkless)


def moment(time: datetime | None, *, zone: bool = True) -> str:
    """A message time to the minute, with its own offset."""
    if time is None:
        return "no time"
    if not zone:
        return f"{time:%Y-%m-%d %H:%M}"
    offset = "UTC" if time.utcoffset() in (None, timedelta(0)) else time.strftime("%z")
    return f"{time:%Y-%m-%d %H:%M} {offset}"


def period(first: datetime | None, last: datetime | None, *, zone: bool = True) -> str:
    """From the first to the last message time."""
    if first is None or last is None:
        return "no message times"
    start, end = moment(first, zone=zone), moment(last, zone=zone)
    return start if first == last else f"{start} – {end}"


def own_name(agent: str, conversation: str) -> str:
    """The name of an agent inside its own conversation, as it wrote there: without the conversation before it.

    >>> own_name("a%2Fb/orion%2F7b", "a/b")
    'orion/7b'
    """
    own = agent.removeprefix(f"{escaped_name(conversation)}/")
    return agent.removeprefix(f"{conversation}/") if own == agent else plain_name(own)


def first_upper(text: str) -> str:
    """The text as the beginning of a sentence."""
    return text[:1].upper() + text[1:]


def sparkline(values: list[int], top: int = 100, width: int = 60) -> str:
    """Values 0 to ``top`` as bars, the lowest of each stretch where there are more than ``width``."""
    if not values:
        return ""
    columns = min(width, len(values))
    edges = [len(values) * column // columns for column in range(columns + 1)]
    lows = [min(values[start:end]) for start, end in pairwise(edges)]
    return "".join(_SPARKS[min(len(_SPARKS) - 1, low * len(_SPARKS) // (top + 1))] for low in lows)
