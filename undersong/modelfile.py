"""A model as one small file: a line with name and version, a line with a checksum, then packed JSON and arrays.

Nothing in such a file is executed, and the same model gives the same bytes.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
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
