"""The families of harm in which findings are grouped, read from ``groups.yaml``."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

from undersong import rulebook

OTHER = "Other patterns"


class HarmGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A family and the names of what belongs to it."""

    title: str
    names: tuple[str, ...]


class HarmGroups(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``groups.yaml``."""

    why: str
    groups: dict[str, HarmGroup]


@cache
def groups() -> HarmGroups:
    """The shipped families."""
    return rulebook.read(Path(__file__).parent / "groups.yaml", HarmGroups)


@cache
def titles() -> tuple[str, ...]:
    """The titles in their order, what stands in no family last."""
    return (*(group.title for group in groups().groups.values()), OTHER)


@cache
def group_of(name: str) -> str:
    """The title of the family of a pattern, mechanism, flag or smoking gun."""
    return next((group.title for group in groups().groups.values() if name in group.names), OTHER)
