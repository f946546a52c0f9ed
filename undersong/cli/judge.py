"""``undersong judge``: train a judge of one's own; one module per command, loaded when it is called."""

from __future__ import annotations

from importlib import import_module

import click

COMMANDS = {"train": "undersong.cli.judge_train"}


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The commands in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """The command of a name, None for an unknown one."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[cmd_name]).command
        return command


@click.group("judge", cls=_Commands, short_help="Train a judge on labels of your own.")
def command() -> None:
    """Train and measure judges."""
