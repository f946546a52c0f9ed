"""SHA-256 of texts."""

from __future__ import annotations

import hashlib


def text_hash(text: str) -> str:
    """SHA-256 over a message's text; a lone surrogate is hashed as it stands."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
