"""The command line: one module per verb, loaded when it is called."""

from __future__ import annotations

import os
import sys
import traceback
from importlib import import_module
from io import TextIOWrapper

import click

from undersong import __version__
from undersong.core.sanitize import visible
from undersong.errors import UndersongError

VERBS = (
    "audit", "plan", "scan", "evaluate", "detect", "watch", "verify", "formats", "rules", "judge", "explain", "leads",
    "store", "sweep", "agents", "agent", "prices",
)  # fmt: skip
BROKEN_PIPE = 141  # 128 + SIGPIPE, as a shell reports a reader that went away
CRASHED = 70  # EX_SOFTWARE of sysexits.h
INTERRUPTED = 130  # 128 + SIGINT


class _ReaderGoneError(Exception):
    """The reader of the output went away; click would end with 1, which says "findings"."""


class Verbs(click.Group):
    """A group that imports a verb's module when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The verbs in the order of the pipeline."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """The command of a verb, None for an unknown one."""
        if cmd_name not in VERBS:
            return None
        command: click.Command = import_module(f"undersong.cli.{cmd_name}").command
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Run the verb; click must not see that the reader went away."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise _ReaderGoneError from error


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="undersong")
def cli() -> None:
    """Find in conversations what no single message shows.

    Exit codes: 0 done, 1 results at or above --fail-on, 2 wrong use, 3 an input could not be read, 4 the judge or
    the store failed (what was done is written).
    """


def main() -> None:
    """Run the command line and end the process with its exit code."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # many small products: more threads only wait for one another
    for stream in (sys.stdout, sys.stderr):  # a name in an export may hold what the terminal's encoding lacks
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = cli.main(standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Exit as error:
        code = error.exit_code
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("undersong: stopped; what was stored is kept, the same command goes on from there", err=True)
        code = INTERRUPTED
    except (_ReaderGoneError, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = BROKEN_PIPE
    except UndersongError as error:
        click.echo(visible(f"undersong: error: {error}"), err=True)
        code = error.exit_code
    except OSError as error:
        click.echo(visible(f"undersong: error: {error.filename or 'output'}: {error.strerror}"), err=True)
        code = 4
    except Exception:  # noqa: BLE001 - the outermost edge: a crash must not look like exit code 1, "findings"
        traceback.print_exc()
        click.echo("undersong: this is a defect; what was stored is kept. Please report the lines above", err=True)
        code = CRASHED
    sys.exit(code if isinstance(code, int) else 0)
