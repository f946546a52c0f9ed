"""Loops that numba compiles where it is installed and there is enough to do; else they run as they are."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from functools import cache, cached_property
from importlib.util import find_spec
from types import FunctionType
from typing import Any, TypeAlias, cast

ENOUGH = 20_000  # elements of work below which compiling, or even loading, takes longer than the loop itself
LITTLE = 300  # elements below which even code that is at hand gains nothing
_OPTIONS = {"error_model": "numpy"}  # no loop divides by 0; one that need not watch for it takes some rows at once
Loop: TypeAlias = Callable[..., Any]


class Kernel:
    """A loop over arrays, compiled on the first call that is worth it; both ways give the same."""

    def __init__(self, function: Loop) -> None:
        self.source = self.plain = function
        self.__doc__ = function.__doc__

    def otherwise(self, function: Loop) -> Loop:
        """Do it in another way where nothing is compiled: many rows at once, in place of a loop over them."""
        self.plain = function
        return function

    @cached_property
    def compiled(self) -> Loop:
        """The machine code, kept on disk between runs; the kernels that it calls are compiled with it."""
        numba = importlib.import_module("numba")
        source = cast(FunctionType, self.source)
        namespace = {
            name: _machine(source.__globals__[name]) for name in source.__code__.co_names if name in source.__globals__
        }
        function = FunctionType(source.__code__, namespace, source.__name__, source.__defaults__)
        function.__qualname__, function.__module__ = source.__qualname__, source.__module__
        try:
            return numba.njit(cache=True, **_OPTIONS)(function)  # type: ignore[no-any-return]
        except RuntimeError:  # no folder can be written to keep it in
            return numba.njit(**_OPTIONS)(function)  # type: ignore[no-any-return]

    def __call__(self, *arguments: Any) -> Any:
        """The loop as it is: for other kernels that run as they are."""
        return self.plain(*arguments)

    @property
    def ready(self) -> bool:
        """Whether it has been compiled, or loaded, by now."""
        return "compiled" in vars(self)

    def at(self, size: int) -> Loop:
        """The function to call for so much work; what has been compiled is used for less, too."""
        return self.compiled if self.ready or machine(size) else self.plain


def _machine(value: Any) -> Any:
    return value.compiled if isinstance(value, Kernel) else value


def kernel(function: Loop) -> Kernel:
    """Mark a loop over arrays; of its module's names it may use constants and other kernels."""
    return Kernel(function)


def machine(size: int, *kernels: Kernel) -> bool:
    """Whether so much work is left to machine code; less of it, where these ``kernels`` have been compiled already."""
    at_hand = size >= LITTLE and bool(kernels) and all(each.ready for each in kernels)
    return (size >= ENOUGH or at_hand) and installed()


@cache
def installed() -> bool:
    """Whether numba is there and may be used."""
    return allowed() and find_spec("numba") is not None


def allowed() -> bool:
    """Whether machine code may be made: it is switched off with UNDERSONG_PLAIN=1."""
    return os.environ.get("UNDERSONG_PLAIN", "") in ("", "0")
