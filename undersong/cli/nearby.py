"""What could be read here: conversations in this folder, and where coding assistants and browsers keep theirs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple, NoReturn

import click

from undersong.core.sanitize import one_line
from undersong.core.text import counted

WRONG_USE = 2  # exit code
MOST_FILES = 200  # of a folder whose first bytes are looked at
SHOWN = 12  # lines
LOGS = ((".claude/projects", "Claude Code sessions"), (".codex/sessions", "Codex CLI rollouts"))  # below the home
DOWNLOADS = "Downloads"


class Readable(NamedTuple):
    """Something to read: the path as one would type it, what it holds, and how many files."""

    path: str
    title: str
    files: int = 1


def show_readable(command: str) -> NoReturn:
    """Say what a command without a path could read, and end as after wrong use."""
    places = list(islice(readable_here(Path.cwd(), Path.home()), SHOWN))
    if not places:
        click.echo(f"Give a file or a folder: undersong {command} PATH. Nothing that can be read is in this folder.")
        click.echo(
            "`undersong formats` lists what can be read, and how to export it is in the recipes of the documents."
        )
        raise SystemExit(WRONG_USE)
    click.echo(f"Give a file or a folder. undersong {command} could read here:\n")
    width = max(len(one_line(place.path, 60)) for place in places)
    for place in places:
        many = f", {counted(place.files, 'file')}" if place.files > 1 else ""
        click.echo(f"  undersong {command} {one_line(place.path, 60):<{width}}  {place.title}{many}")
    raise SystemExit(WRONG_USE)


def readable_here(folder: Path, home: Path) -> Iterator[Readable]:
    """What is in a folder and its folders, the logs of coding assistants, and exports among the downloads."""
    yield from _exports(folder, "")
    for child in sorted(_children(folder)):
        if child.is_dir() and not child.name.startswith("."):
            titles = [place.title for place in _exports(child, "")]
            if titles:
                several = f"{titles[0]} and other formats" if len(set(titles)) > 1 else titles[0]
                yield Readable(shlex.quote(f"{child.name}/"), several, len(titles))
    for place, title in LOGS:
        files = sum(1 for _ in islice((home / place).rglob("*.jsonl"), 10_000)) if (home / place).is_dir() else 0
        if files:
            yield Readable(f"~/{place}", title, files)
    if folder != home / DOWNLOADS:
        downloads = _exports(home / DOWNLOADS, f"~/{DOWNLOADS}/")
        yield from (place for place in downloads if place.path.rstrip("'").endswith(".zip"))


def _exports(folder: Path, prefix: str) -> Iterator[Readable]:
    """The files of a folder that are of a known format."""
    from undersong.formats.sources import SUFFIXES

    endings = {ending for ending in SUFFIXES if ending != ".md"}  # of a project that is documents, as a rule
    files = (path for path in sorted(_children(folder)) if path.suffix.lower() in endings and path.is_file())
    for path in islice(files, MOST_FILES):
        if title := format_title(path):
            yield Readable(prefix + shlex.quote(path.name), title)


def _children(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def format_title(path: Path) -> str:
    """What a file holds, by its first bytes; "" where that is no known format."""
    from undersong.errors import UndersongError
    from undersong.formats import detect
    from undersong.formats.sources import OpenInput

    try:
        with OpenInput(path, path.name) as opened:
            for source in islice(opened.sources(path.stem), 20):
                try:
                    if (form := detect(source)) is not None:
                        return form.title
                except UndersongError:
                    continue
    except UndersongError:
        return ""
    return ""
