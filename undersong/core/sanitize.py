"""Make control, direction and invisible characters of hostile text visible."""

from __future__ import annotations

import re

# C0 and C1 controls, DEL, line separators, zero-width and direction controls, tags, surrogates, interlinear marks
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def visible(text: str) -> str:
    """The text with every such character written as ⟦U+001B⟧; line feeds and tabs stay."""
    return _INVISIBLE.sub(lambda match: f"⟦U+{ord(match[0]):04X}⟧", text)


def title_line(text: str, width: int = 80) -> str:
    """The same for a title, which is cut between two words."""
    line = one_line(text, 4 * width)
    return line if len(line) <= width else f"{line[:width].rsplit(' ', 1)[0]} …"


def one_line(text: str, width: int = 80) -> str:
    """The text made visible, on one line, cut to ``width`` characters with an ellipsis."""
    line = " ".join(visible(text[: width * 4]).split())
    return line if len(line) <= width else line[: width - 1] + "…"
