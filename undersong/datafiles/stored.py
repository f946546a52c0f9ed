"""What is made of the package's own files, stored beside Python's bytecode, so that programs make it once."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any, TypeVar

import msgspec

PACKAGE: Path = Path(__file__).parents[1]
_CODE = (".py", ".pyc", ".lark")
_DIGEST = 32  # bytes of a SHA-256
T = TypeVar("T")


def stored(name: str, source: bytes, kind: Any, make: Callable[[], T]) -> T:
    """What ``make`` returns: a value of ``kind`` that depends on ``source`` and on the code of this package alone.

    One file a name in the ``__pycache__`` of this module, or under PYTHONPYCACHEPREFIX: plain values, no code. As with
    Python's own files: what does not fit ``source``, ``kind`` or the code is made again, and so is what is damaged;
    nothing is written under PYTHONDONTWRITEBYTECODE, nor where the folder cannot be written.
    """
    file = folder() / f"{name}.{sys.implementation.cache_tag}"
    key = b"\0".join((_code(), repr(kind).encode(), hashlib.sha256(source).digest()))
    with contextlib.suppress(OSError, msgspec.MsgspecError):
        content = file.read_bytes()
        if content[:_DIGEST] == hashlib.sha256(key + content[_DIGEST:]).digest():
            value: T = msgspec.msgpack.decode(content[_DIGEST:], type=kind)
            return value
    value = make()
    if not sys.dont_write_bytecode:
        content = msgspec.msgpack.encode(value)
        write_whole(file, hashlib.sha256(key + content).digest() + content)
    return value


def folder() -> Path:
    """Where the bytecode of this module lies."""
    return Path(cache_from_source(__file__)).parent


def write_whole(target: Path, content: bytes) -> None:
    """Write a file as a whole or not at all, and leave nothing lying about; another process may do the same."""
    draft = target.with_name(f"{target.name}.{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(content)
        draft.replace(target)
    except OSError:  # a full disk, or a folder that cannot be written: the value is made again next time
        with contextlib.suppress(OSError):
            draft.unlink()


@cache
def _code() -> bytes:
    """The version, and time and size of every file of code, as Python tells by them whether its bytecode fits."""
    version = str(getattr(sys.modules[__name__.partition(".")[0]], "__version__", ""))
    return hashlib.sha256("\n".join((version, msgspec.__version__, *sorted(_stamps(PACKAGE)))).encode()).digest()


def _stamps(place: Path | str) -> Iterator[str]:
    with contextlib.suppress(OSError), os.scandir(place) as entries:  # within an archive: the version tells
        for entry in entries:
            if entry.name.endswith(_CODE):
                status = entry.stat()
                yield f"{entry.path} {status.st_mtime_ns} {status.st_size}"
            elif entry.is_dir() and entry.name != "__pycache__":
                yield from _stamps(entry.path)
