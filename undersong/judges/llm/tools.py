"""What tools were asked and what they answered, as lines of a data block: evidence beside the words of a message."""

from __future__ import annotations

import json
from typing import NamedTuple

from undersong.judges.llm.book import shipped_prompts
from undersong.judges.llm.encode import encoded, shortened
from undersong.models import Message, ToolCall, ToolResult
from undersong.wording import counted


class ToolLines(NamedTuple):
    """The lines, and how many calls and results are left out or shortened in them."""

    lines: tuple[str, ...]
    cut: int


def tools_of(message: Message) -> ToolLines:
    """The calls of a message, and its results that are not its text anyway.

    Of more than ``tools`` of them (``reading.yaml``) the last ones are shown; of an input or a result of more than
    ``tool_bytes`` the middle is left out.
    """
    results = [each for each in message.tool_results if each.text not in message.text]
    used: list[ToolCall | ToolResult] = [*message.tool_calls, *results]
    last = used[-shipped_prompts().limits.tools :]
    lines = [_line(each) for each in last]
    gone = len(used) - len(last)
    before = (
        (f"  Tools: {counted(gone, 'earlier call or result', 'earlier calls and results')} left out\n",) if gone else ()
    )
    return ToolLines((*before, *(line for line, _ in lines)), gone + sum(cut for _, cut in lines))


def _line(used: ToolCall | ToolResult) -> tuple[str, bool]:
    """The line, and whether it is shortened."""
    if isinstance(used, ToolCall):
        text = (
            used.input
            if isinstance(used.input, str)
            else json.dumps(used.input, ensure_ascii=False, separators=(",", ":"))
        )
        head = f"  Tool call: {encoded(used.name)} "
    else:
        text, head = used.text, f"  Tool result{', an error' if used.is_error else ''}: "
    shortened_text, size = shortened(text, shipped_prompts().limits.tool_bytes)
    words = shipped_prompts().words.shortened.format(bytes=f"{size:,}").rstrip() if size else ""
    return f"{head}{encoded(shortened_text)}{words}\n", bool(size)
