"""Optional packages: asked for where they are needed, and named with the extra that brings them."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from undersong.errors import UsageError


def require(module: str, extra: str, *, where: str) -> ModuleType:
    """Import a module of an optional package; raises UsageError that names the extra where it is not installed."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or module.partition(".")[0] != error.name.partition(".")[0]:
            raise  # a module that is there lacks another one
        what = f"the package {error.name} is not installed"
        raise UsageError(what, where=where, remedy=f"pip install 'undersong[{extra}]'") from error
