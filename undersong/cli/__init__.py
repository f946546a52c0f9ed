"""The command line: one module per verb, loaded when it is called."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Mapping
from importlib import import_module
from io import TextIOWrapper
from types import FrameType

import click

from undersong import __version__
from undersong.cli.help import WIDEST, HelpContext, examples
from undersong.core.sanitize import visible
from undersong.errors import UndersongError

COMMANDS = {  # heading → command → what it is for; `undersong --help` shows this table and imports no command
    "From conversations to a report": {
        "audit": "Read, scan, evaluate, detect, and write a report.",
        "plan": "Messages, tokens and cost per tier, before anything is spent.",
        "claims": "What agents say of their work, held against the session; a check for CI and hooks.",
        "leads": "Where to look first: agents by what was counted.",
        "review": "What a person decides of findings: next, set, stats, export.",
        "explain": "A message: hits, tier and why, scores. A finding: its rows.",
        "verify": "Check a report folder against its manifest.",
        "sign": "Sign a report with an SSH key.",
    },
    "Step by step, and while it happens": {
        "scan": "Free signals and routes: one JSON row per message.",
        "evaluate": "Scores by a judge: one JSON row per message.",
        "detect": "Patterns over rows of scores: one JSON finding per line.",
        "watch": "Findings while messages or rows are written, as JSON lines.",
        "serve": "A web page and an HTTP API over a store: look, decide, drop a file.",
    },
    "Judges": {
        "judges": "Who could judge on this machine, at what price, and what is known of them.",
        "judge": "Check, measure or train a judge, or export the answers that were paid for.",
        "prices": "What judges charge; --update takes a list of your own.",
    },
    "Histories over time": {
        "store": "What a store holds: info, check, export, import, merge, forget.",
        "sweep": "Patterns over all agents of a store that changed since the last sweep.",
        "agents": "The agents of a store: messages, scores, findings.",
        "agent": "One agent: history, findings, balance, targets, beside the others.",
        "mcp": "Serve a store to assistants over the Model Context Protocol.",
    },
    "What can be read and looked for": {
        "config": "Which settings hold here, and which file sets them.",
        "formats": "List the input formats.",
        "rules": "List, show, check and test the rules.",
        "schemas": "JSON Schemas of every file and of what --json prints.",
    },
    "This installation": {
        "doctor": "Try whether it works, and what is missing for what.",
        "completion": "The script that makes bash, zsh or fish complete commands and options.",
    },
}
VERBS = tuple(name for commands in COMMANDS.values() for name in commands)
# no setting is about these
SETTLED = (
    "config",
    "doctor",
    "completion",
    "formats",
    "judges",
    "prices",
    "rules",
    "explain",
    "leads",
    "claims",
    "mcp",
    "schemas",
)
BROKEN_PIPE = 141  # 128 + SIGPIPE, as a shell reports a reader that went away
CRASHED = 70  # EX_SOFTWARE of sysexits.h
INTERRUPTED = 130  # 128 + SIGINT


class _ReaderGoneError(Exception):
    """The reader of the output went away; click would end with 1, which says "findings"."""


class Verbs(click.Group):
    """A group that imports a verb's module when it is asked for."""

    context_class = HelpContext

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The verbs in the order of the help."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """The command of a verb, None for an unknown one."""
        if cmd_name not in VERBS:
            return None
        command: click.Command = import_module(f"undersong.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The verb and its arguments; a file or folder in place of a verb is audited."""
        first = args[0]
        if first in VERBS or first.startswith("-"):
            return super().resolve_command(ctx, args)
        if os.path.exists(first):
            return "audit", self.get_command(ctx, "audit"), args
        import difflib

        near = difflib.get_close_matches(first, VERBS, n=1)
        hint = f"did you mean 'undersong {near[0]}'?" if near else "'undersong --help' lists the commands."
        raise click.UsageError(
            f"'{visible(first)}' is no command, and no file or folder of that name is here; {hint}", ctx
        )

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - as above
        """Write the commands under their headings."""
        for heading, commands in COMMANDS.items():
            with formatter.section(heading):
                formatter.write_dl(list(commands.items()))

    def invoke(self, ctx: click.Context) -> object:
        """Run the verb; click must not see that the reader went away."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise _ReaderGoneError from error


@click.group(
    cls=Verbs,
    invoke_without_command=True,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": WIDEST},
    **examples(
        ("undersong conversations.zip", "a report on an export of ChatGPT or Claude; short for undersong audit"),
        ("undersong audit ~/.claude/projects", "did the coding assistant tell the truth?"),
        ("undersong audit", "without a path: what could be read here"),
        ("undersong audit --help", "the options, in groups"),
    ),
)
@click.option("--version", is_flag=True, help="Show the version.")
@click.option("--json", "as_json", is_flag=True, help="With --version: all that a report of a defect needs.")
@click.pass_context
def cli(ctx: click.Context, version: bool, as_json: bool) -> None:
    """Find in conversations what no single message shows.

    Exit codes: 0 done, 1 a gate such as --fail-on did not hold, 2 wrong use, 3 an input could not be read, 4 the
    judge or the store failed (what was done is written).
    """
    if version:
        _show_version(as_json)
        ctx.exit()
    if ctx.invoked_subcommand is None:
        ctx.fail("Missing command.")
    _apply_settings(ctx)


def _show_version(as_json: bool) -> None:
    if not as_json:
        click.echo(f"undersong, version {__version__}")
        return
    import json

    from undersong.core.environment import facts

    click.echo(json.dumps(facts(), indent=2))


def _apply_settings(ctx: click.Context) -> None:
    """Make the settings of this folder the defaults of the command, and say which they are."""
    from pathlib import Path

    from undersong.cli.configuration import defaults_of, settings_here, settings_of

    name = ctx.invoked_subcommand or ""
    command = cli.get_command(ctx, name) if name not in SETTLED else None
    parameters = {parameter.name or "" for parameter in command.params} if command is not None else set()
    settings = settings_of(settings_here(Path.cwd()), name, parameters) if parameters else ()
    if settings:
        ctx.default_map = {name: defaults_of(settings)}
        listed = ", ".join(f"{setting.key} {setting.value}" for setting in settings)
        click.echo(visible(f"settings: {listed} (see `undersong config`)"), err=True)


def wants_color(environment: Mapping[str, str]) -> bool | None:
    """False where the user wants no colour (no-color.org); None: where the output is a terminal."""
    return False if environment.get("NO_COLOR") or environment.get("TERM") == "dumb" else None


def _end_like_an_interrupt() -> None:
    """Have SIGTERM do what Ctrl-C does: a scheduler's stop loses no more than a person's."""

    def interrupt(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - as the system calls it
        handler = signal.getsignal(signal.SIGINT)  # asyncio has one of its own
        if not callable(handler):  # a job in the background ignores Ctrl-C
            raise KeyboardInterrupt
        handler(signal.SIGINT, frame)

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, interrupt)


def main() -> None:
    """Run the command line and end the process with its exit code."""
    os.umask(0o077)  # whatever is written may quote private messages
    try:
        _end_like_an_interrupt()
        code = _outcome()
        _ignore_signals()
    except KeyboardInterrupt:  # before the command began, or while it was said how it ended
        _ignore_signals()
        code = INTERRUPTED
    _forget_interrupt()
    sys.exit(code)


def _forget_interrupt() -> None:
    """Have ``python -m`` end with the exit code, whatever code a Ctrl-C met.

    CPython notes a KeyboardInterrupt that leaves code made from a string, as the class of a named tuple is, and kills
    itself by SIGINT at the end although it was caught; the next such code takes the note away.
    """
    exec("")


def _ignore_signals() -> None:
    """The work has ended: a signal that comes while the interpreter closes must not change how it is told."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)


def _outcome() -> int:
    """Run the command line, say what went wrong, and give the exit code."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # many small products: more threads only wait for one another
    for stream in (sys.stdout, sys.stderr):  # a name in an export may hold what the terminal's encoding lacks
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = cli.main(standalone_mode=False, color=wants_color(os.environ))
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
    return code if isinstance(code, int) else 0
