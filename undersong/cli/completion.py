"""``undersong completion``: the script that makes a shell complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from undersong.cli.help import examples

SHELLS = ("bash", "zsh", "fish")


@click.command(
    "completion",
    **examples(
        ('eval "$(undersong completion bash)"', "in ~/.bashrc"),
        ('eval "$(undersong completion zsh)"', "in ~/.zshrc"),
        ("undersong completion fish | source", "in ~/.config/fish/config.fish"),
    ),
)
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print the script that completes commands, options and their values in a shell.

    A file for a package: `undersong completion bash > undersong`, in the shell's folder of completions.
    """
    from undersong.cli import cli

    kind = get_completion_class(shell)
    assert kind is not None, shell  # SHELLS are those of click
    click.echo(kind(cli, {}, "undersong", "_UNDERSONG_COMPLETE").source())
