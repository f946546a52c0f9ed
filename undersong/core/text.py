"""Counts and names in words."""

from __future__ import annotations


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """``1 message``, ``2,460 messages``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {plural or noun + 's'}"


def mechanism_name(name: str) -> str:
    """``false_promise`` → ``false promise``."""
    return name.replace("_", " ")
