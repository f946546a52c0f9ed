"""Counts and names in words, and the hash of a text."""

from __future__ import annotations

import hashlib


def text_hash(text: str) -> str:
    """SHA-256 over a message's text; a lone surrogate is hashed as it stands."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """``1 message``, ``2,460 messages``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {plural or noun + 's'}"


def mechanism_name(name: str) -> str:
    """``false_promise`` → ``false promise``."""
    return name.replace("_", " ")
