"""A model as one small file: a line with name and version, a line with a checksum, then packed JSON and arrays.

Nothing in such a file is executed, and the same model gives the same bytes.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import msgspec

from undersong.errors import JudgeError

T = TypeVar("T")


def pack(magic: bytes, version: int, meta: msgspec.Struct, arrays: bytes) -> bytes:
    """The bytes of a model file; ``version`` is of the file's layout."""
    body = zlib.compress(msgspec.json.encode(meta) + b"\n" + arrays, 9)
    return b"%s %d\n%s\n%s" % (magic, version, hashlib.sha256(body).hexdigest().encode(), body)


def unpack(data: bytes, magic: bytes, version: int, largest: int, kind: str) -> tuple[bytes, bytes]:
    """The JSON and the arrays of a model file of ``kind``; at most ``largest`` bytes are unpacked.

    Raises ValueError or zlib.error where the bytes are not such a file, of another version, or damaged.
    """
    head, _, rest = data.partition(b"\n")
    if not head.startswith(magic):
        raise ValueError(f"it is not a file of {kind}")
    if head != b"%s %d" % (magic, version):
        raise ValueError(f"its version is {head[len(magic) :].decode(errors='replace').strip()}, not {version}")
    checksum, _, body = rest.partition(b"\n")
    if checksum != hashlib.sha256(body).hexdigest().encode():
        raise ValueError("it is damaged (its checksum does not agree)")
    meta, _, arrays = zlib.decompressobj().decompress(body, largest).partition(b"\n")
    return meta, arrays


def read_model(path: Path, parse: Callable[[bytes], T], remedy: str) -> tuple[T, str]:
    """The model in a file and the SHA-256 of its bytes; raises JudgeError where it is missing, broken or other."""
    try:
        data = path.read_bytes()
        return parse(data), hashlib.sha256(data).hexdigest()
    except OSError as error:
        what = f"the model cannot be read: {error.strerror}"
        raise JudgeError(what, where=str(path), remedy=remedy) from error
    except (ValueError, zlib.error, msgspec.MsgspecError) as error:
        raise JudgeError(f"the model cannot be used: {error}", where=str(path), remedy=remedy) from error


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
