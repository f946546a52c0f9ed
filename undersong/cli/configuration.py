"""Settings of a project or a person: ``undersong.toml`` or ``[tool.undersong]``, as defaults of the commands' options.

A project's file may come from somebody else, as with a repository that is looked into. So it cannot name a judge that
starts a program or sends conversations to an address of its choice; a person's own file can.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import click
import msgspec

from undersong.errors import UsageError
from undersong.models import Level

FILE, PYPROJECT, TABLE = "undersong.toml", "pyproject.toml", "tool.undersong"
UNSAFE = ("command", "file", "replay")  # judges that start a program or touch files of somebody's choice


class SettingsTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of the tables of the file; a key that is not set is None."""


class BudgetSettings(SettingsTable, frozen=True, kw_only=True):
    """``[budget]``: what a judge may cost and how much is read, as --budget, --max-calls and so on."""

    usd: float | None = None
    calls: int | None = None
    share: float | None = None
    recall: float | None = None
    max_failed: float | None = None


class GateSettings(SettingsTable, frozen=True, kw_only=True):
    """``[gates]``: when an audit ends with exit code 1."""

    fail_on: Level | Literal["bypass"] | None = None
    fail_confidence: float | None = None
    fail_under: int | None = None
    fail_on_unassessed: bool | None = None
    fail_on_unread: bool | None = None


class RedactionSettings(SettingsTable, frozen=True, kw_only=True):
    """``[redaction]``: what a report masks."""

    mask: bool | None = None
    names: list[str] | None = None
    names_file: str | None = None


class Settings(SettingsTable, frozen=True, kw_only=True):
    """The whole file."""

    judge: str | None = None
    rules: str | None = None
    budget: BudgetSettings = BudgetSettings()
    gates: GateSettings = GateSettings()
    redaction: RedactionSettings = RedactionSettings()


class Setting(NamedTuple):
    """One key that is set: its name in the file, its value, and the file that sets it."""

    key: str
    value: Any
    source: Path


PARAMETERS = {  # key → the parameters of the commands that it is the default of
    "judge": ("judge",),
    "rules": ("rules", "folder"),
    "budget.usd": ("budget",),
    "budget.calls": ("max_calls",),
    "budget.share": ("budget_share",),
    "budget.recall": ("recall",),
    "budget.max_failed": ("max_failed",),
    "gates.fail_on": ("fail_on",),
    "gates.fail_confidence": ("fail_confidence",),
    "gates.fail_under": ("fail_under",),
    "gates.fail_on_unassessed": ("fail_on_unassessed",),
    "gates.fail_on_unread": ("fail_on_unread",),
    "redaction.mask": ("redact",),
    "redaction.names": ("masked",),
    "redaction.names_file": ("names_file",),
}
PASSED_OVER = {"watch": ("judge",)}  # a watch of rows has no judge, and one of messages spends without an end
WITHOUT_SESSIONS = ("detect", "sweep")  # they see scores, and no check that could be passed by
PATHS = ("rules", "redaction.names_file")  # relative to the folder of their file


def settings_here(folder: Path, own: Path | None = None) -> tuple[Setting, ...]:
    """The settings that hold in a folder: those of its project before those of the person.

    The project's file is looked for in the folder and above it, up to the root of a repository, and nowhere above the
    folder where there is none. Raises UsageError that names file and key.
    """
    personal = own or own_file()
    settings: dict[str, Setting] = {}
    if personal.is_file():
        settings |= {setting.key: setting for setting in _settings(personal, trusted=True)}
    project = project_file(folder)
    if project is not None and project != personal:
        settings |= {setting.key: setting for setting in _settings(project, trusted=False)}
    return tuple(settings[key] for key in PARAMETERS if key in settings)


def settings_of(settings: tuple[Setting, ...], command: str, parameters: set[str]) -> tuple[Setting, ...]:
    """The settings that a command with these parameters has an option for."""
    if command in WITHOUT_SESSIONS:
        settings = tuple(each for each in settings if (each.key, each.value) != ("gates.fail_on", "bypass"))
    passed_over = PASSED_OVER.get(command, ())
    return tuple(each for each in settings if each.key not in passed_over and parameters & set(PARAMETERS[each.key]))


def defaults_of(settings: tuple[Setting, ...]) -> dict[str, Any]:
    """Parameter → value, for every command alike; one that lacks a parameter does not look for it."""
    return {name: setting.value for setting in settings for name in PARAMETERS[setting.key]}


def own_file() -> Path:
    """The person's own file, there or not: in the folder of the user's configuration."""
    return Path(click.get_app_dir("undersong")) / FILE


def project_file(folder: Path) -> Path | None:
    """The nearest file with settings, in the folder or above it within its repository."""
    folder = folder.absolute()
    root = next((each for each in (folder, *folder.parents) if (each / ".git").exists()), folder)
    for place in (folder, *folder.parents):
        if (place / FILE).is_file():
            return place / FILE
        if (place / PYPROJECT).is_file() and _table(place / PYPROJECT) is not None:
            return place / PYPROJECT
        if place == root:
            return None
    return None


def _settings(path: Path, *, trusted: bool) -> Iterator[Setting]:
    table = _table(path)
    _refuse_unknown(table, Settings, str(path), "")
    try:
        settings = msgspec.convert(table, Settings)
    except msgspec.ValidationError as error:
        raise UsageError(str(error), where=str(path), remedy="see docs/configuration.md") from error
    if not trusted and settings.judge is not None:
        _refuse_unsafe(settings.judge, path)
    for key in PARAMETERS:
        value: Any = settings
        for name in key.split("."):
            value = getattr(value, name)
        if value is not None:
            yield Setting(key, str(path.parent / value) if key in PATHS else value, path)


def _table(path: Path) -> Any:
    """The settings in a file; None where pyproject.toml has none."""
    try:
        whole = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"is not valid TOML: {error}", where=str(path), remedy="correct it or move it away") from error
    if path.name != PYPROJECT:
        return whole
    tool = whole.get("tool")
    return tool.get("undersong") if isinstance(tool, dict) else None


def _refuse_unknown(table: Any, kind: type[SettingsTable], where: str, prefix: str) -> None:
    """Raise UsageError for a key that is none, with the nearest that is."""
    from undersong.datafiles.yaml_loader import did_you_mean

    fields = {field.name: field.type for field in msgspec.structs.fields(kind)}
    for key, value in table.items() if isinstance(table, dict) else ():
        if key not in fields:
            raise UsageError(f"unknown key '{prefix}{key}'", where=where, remedy=did_you_mean(key, list(fields)))
        if isinstance(fields[key], type) and issubclass(fields[key], SettingsTable):
            _refuse_unknown(value, fields[key], where, f"{prefix}{key}.")


def _refuse_unsafe(judge: str, path: Path) -> None:
    named = {part.strip().partition("=")[2] or part.strip() for part in judge.split(",")}
    if "@" in judge or any(name.partition(":")[0] in UNSAFE for name in named):
        what = f"the judge '{judge}' starts a program, reads files or sends conversations to an address of its choice"
        remedy = f"name it with --judge, or in your own {own_file()}"
        raise UsageError(what, where=str(path), remedy=remedy)
