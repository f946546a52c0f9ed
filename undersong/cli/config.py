"""``undersong config``: which settings hold here, and which file sets them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click

from undersong.cli.configuration import PARAMETERS, Setting, own_file, project_file, settings_here
from undersong.cli.help import examples
from undersong.cli.options import echo


@click.command("config", **examples(("undersong config", "what holds in this folder, and from where")))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(as_json: bool) -> None:
    """Show the settings that hold here, each with its file.

    They come from undersong.toml or [tool.undersong] of pyproject.toml, in this folder or above it in its repository,
    and from your own undersong.toml. An option of a command goes before both.
    """
    settings = settings_here(Path.cwd())
    if as_json:
        click.echo(json.dumps({each.key: {"value": each.value, "from": str(each.source)} for each in settings}))
        return
    echo(_lines(settings))


def _lines(settings: tuple[Setting, ...]) -> Iterator[str]:
    by_key = {setting.key: setting for setting in settings}
    width = max(map(len, PARAMETERS))
    for key in PARAMETERS:
        setting = by_key.get(key)
        value, source = (json.dumps(setting.value), str(setting.source)) if setting else ("-", "the command's default")
        yield f"{key:<{width}}  {value:<32}  {source}"
    yield ""
    yield f"of this project: {project_file(Path.cwd()) or 'none'}"
    yield f"your own:        {own_file()}{'' if own_file().is_file() else ' (not there)'}"
