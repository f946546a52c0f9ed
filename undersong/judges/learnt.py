"""Which messages a trained judge learnt from, as hashes: figures on those messages say nothing about it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from undersong.errors import JudgeError

FILE = "learnt_from.txt"
HEAD = "undersong learnt_from 1"
DIGITS = 16  # of a SHA-256, as many as tell some million messages apart
_DIGEST = re.compile(rf"[0-9a-f]{{{DIGITS}}}")


def digest(text: str) -> str:
    """The first digits of the SHA-256 of a message's text, whatever its letter case and white space.

    >>> digest("Be  kind. ") == digest("be kind.") != digest("be kind")
    True
    """
    plain = " ".join(text.casefold().split())
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]


def dump(texts: Iterable[str]) -> bytes:
    """The bytes of the file: a head, then the hashes in order, one a line."""
    return "\n".join([HEAD, *sorted({digest(text) for text in texts}), ""]).encode("ascii")


def load(folder: Path) -> frozenset[str] | None:
    """The hashes in the directory of a model, None where it does not say; raises JudgeError where they are broken."""
    path = folder / FILE
    try:
        head, *lines = path.read_text("ascii").splitlines() or [""]
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise JudgeError(f"cannot be read: {error}", where=str(path), remedy="train the judge again") from error
    if head != HEAD:
        raise JudgeError(f"does not begin with '{HEAD}'", where=f"{path}:1", remedy="train the judge again")
    for number, line in enumerate(lines, 2):
        if not _DIGEST.fullmatch(line):
            what = f"is no hash of {DIGITS} digits"
            raise JudgeError(what, where=f"{path}:{number}", remedy="train the judge again")
    return frozenset(lines)
