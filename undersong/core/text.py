"""Counts and names in words, and the hashes of texts and values."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

TURNS = 6  # turns that a sentence names


def text_hash(text: str) -> str:
    """SHA-256 over a message's text; a lone surrogate is hashed as it stands."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def json_hash(value: object) -> str:
    """SHA-256 over the JSON of a value, the keys of its objects in order."""
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """``1 message``, ``2,460 messages``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {plural or noun + 's'}"


def turn_number(position: int) -> int:
    """The number of a turn for people, who count from 1; a position in data counts from 0."""
    return position + 1


def turn_at(position: int) -> str:
    """``turn 4`` for position 3."""
    return f"turn {turn_number(position)}"


def in_words(parts: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def turns_listed(turns: Sequence[int]) -> str:
    """``turn 3``, ``turns 3 and 5``, ``40 turns from 3 to 90``."""
    if len(turns) == 1:
        return f"{turn_at(turns[0])}"
    if len(turns) > TURNS:
        return f"{counted(len(turns), 'turn')} from {turn_number(turns[0])} to {turn_number(turns[-1])}"
    return f"turns {in_words([str(turn_number(each)) for each in turns])}"


def escaped_name(name: str) -> str:
    """A name with a slash as %2F and a percent sign as %25, so that a slash can join two of them."""
    return name.replace("%", "%25").replace("/", "%2F") if "/" in name or "%" in name else name


def plain_name(escaped: str) -> str:
    """The name that ``escaped_name`` was given."""
    return escaped.replace("%2F", "/").replace("%25", "%")


def mechanism_name(name: str) -> str:
    """``false_promise`` → ``false promise``."""
    return name.replace("_", " ")


def shortened(title: str, most: int) -> str:
    """At most ``most`` characters and the mark of a cut, which is between two words."""
    return title if len(title) <= most else f"{title[:most].rsplit(' ', 1)[0]} …"
