"""Compiled templates, kept beside Python's own bytecode, so that a program compiles each template once and for all."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from collections.abc import Callable, Iterable
from importlib.util import cache_from_source
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import jinja2
from jinja2.bccache import Bucket

from undersong import __version__
from undersong.datafiles.stored import write_whole


class TemplateCache(jinja2.BytecodeCache):
    """One file a template in the ``__pycache__`` of this module, or under PYTHONPYCACHEPREFIX.

    As with Python's own files: what does not fit the template, the versions, or the modules that ``functions`` come
    from is compiled again; nothing is written under PYTHONDONTWRITEBYTECODE, nor where the folder cannot be written.
    ``name`` tells environments apart that compile a template differently. ``functions`` are those that may run while a
    template is compiled: the filters, and what finalizes an output.
    """

    def __init__(self, name: str, functions: Iterable[Callable[..., Any]]) -> None:
        self.folder = Path(cache_from_source(__file__)).parent
        self._name = name
        self._versions = "|".join((__version__, jinja2.__version__, *sorted(_stamps(functions))))

    def get_cache_key(self, name: str, filename: str | None = None) -> str:
        """The name of the file: one for each template in each environment."""
        place = hashlib.sha256(str(filename).encode()).hexdigest()[:12]
        return f"{self._name}-{name}-{place}".replace("/", "-")

    def get_source_checksum(self, source: str) -> str:
        """What a stored file must have been made from."""
        return hashlib.sha256(f"{self._versions}|{source}".encode()).hexdigest()

    def load_bytecode(self, bucket: Bucket) -> None:
        """What is stored for a template, if it still fits."""
        with contextlib.suppress(OSError, EOFError, ValueError, UnpicklingError):
            bucket.bytecode_from_string(self._file(bucket).read_bytes())

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Write a file as a whole or not at all; another process may do the same."""
        if not sys.dont_write_bytecode:
            write_whole(self._file(bucket), bucket.bytecode_to_string())

    def _file(self, bucket: Bucket) -> Path:
        return self.folder / f"{bucket.key}.{sys.implementation.cache_tag}"


def _stamps(functions: Iterable[Callable[..., Any]]) -> set[str]:
    """Path, time and size of each of our own modules that functions come from."""
    modules = {str(getattr(function, "__module__", "")) for function in functions}
    files = {getattr(sys.modules.get(name), "__file__", None) for name in modules if name.startswith("undersong.")}
    return {_stamp(file) for file in files if file}


def _stamp(file: str) -> str:
    try:
        status = os.stat(file)
    except OSError:  # within an archive: the version tells
        return file
    return f"{file} {status.st_mtime_ns} {status.st_size}"
