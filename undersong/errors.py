"""The exceptions that undersong raises on purpose.

    UndersongError
    ├── UsageError        a wrong option or argument            exit code 2
    ├── InputError        an input cannot be read               exit code 3
    │   ├── RecordError   one record of it cannot be read       reported, the rest goes on
    │   └── NothingReadError  no message of any input could be read   exit code 3
    ├── RuleError         a rule, phrase or routing file is wrong   exit code 2
    ├── JudgeError        a judge or its backend failed         exit code 4
    └── StoreError        the store cannot be read or written   exit code 4

Every message says what is wrong, where, and what to do about it. ``UndersongWarning`` is no error: it goes through
``warnings``.
"""

from __future__ import annotations

from typing import Any


class UndersongError(Exception):
    """Base of all errors: ``where`` is a file and place, ``remedy`` says what to do."""

    exit_code = 2

    def __init__(self, what: str, *, where: str = "", remedy: str = "") -> None:
        self.what, self.where, self.remedy = what, where, remedy
        super().__init__(what, where, remedy)

    def __reduce__(self) -> tuple[Any, ...]:  # out of another process as it was raised there
        return _again, (type(self), self.what, self.where, self.remedy)

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        return f"{place}{self.what}" + (f"; {self.remedy}" if self.remedy else "")


class UndersongWarning(UserWarning):
    """What a caller of the library should know about a result that stands all the same: what was not read, and why."""


def _again(kind: type[UndersongError], what: str, where: str, remedy: str) -> UndersongError:
    return kind(what, where=where, remedy=remedy)


class UsageError(UndersongError):
    """An option or argument makes no sense."""

    exit_code = 2


class InputError(UndersongError):
    """An input file cannot be read at all, or not to its end."""

    exit_code = 3


class RecordError(InputError):
    """One record of an input cannot be read; the caller reports it and goes on."""


class NothingReadError(InputError):
    """No message could be read of any input: there is no result, which is another thing than an empty one.

    ``problems`` are the Problems that say of each input why.
    """

    problems: tuple[Any, ...] = ()


class RuleError(UndersongError):
    """A rule file is wrong; ``where`` is ``file:line``. ``also`` are further faults that were found with it."""

    exit_code = 2
    also: tuple[RuleError, ...] = ()


class JudgeError(UndersongError):
    """A judge or its backend failed as a whole (one failed message is an Evaluation, not an error)."""

    exit_code = 4


class StoreError(UndersongError):
    """The store cannot be read or written."""

    exit_code = 4
