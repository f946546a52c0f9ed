"""``undersong doctor``: does this installation work, and what is missing for what?"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import click

from undersong.cli.help import examples
from undersong.cli.options import echo
from undersong.core.environment import Requirement, requirements
from undersong.errors import UndersongError

FREE_BYTES = 1 << 30  # of the temporary folder: what an audit of a million messages was seen to use, rounded up
FAILED = 4
EXTRAS = {  # extra → what it is for
    "llm": "judges of Anthropic, OpenAI and servers that speak like them",
    "parquet": "Parquet files, to_frame",
    "neo4j": "stores in Neo4j",
    "postgres": "stores in PostgreSQL",
    "fast": "detection several times as fast",
    "zstd": "logs of Inspect AI as .eval",
    "train": "judges of your own",
    "inspect": "a scorer for Inspect, a scanner for Scout",
    "mcp": "a server for assistants that speak MCP",
    "otlp": "events for OpenTelemetry",
    "serve": "pages and an HTTP API",
    "spark": "many machines through Apache Spark",
    "sign": "reports signed with an SSH key",
}


class Check(NamedTuple):
    """A thing that was tried: ``state`` is ``ok``, ``missing`` (an option that is not there) or ``failed``."""

    name: str
    state: str
    detail: str
    remedy: str = ""


@click.command("doctor", **examples(("undersong doctor", "everything that was tried, and what to do about it")))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def command(as_json: bool) -> None:
    """Try this installation: packages, data that ships, SQLite, folders, settings, judges, and one small audit.

    Nothing is sent anywhere; servers at the usual ports of 127.0.0.1 are asked for their models. Exit code 4 where
    something failed that every run needs. `undersong --version --json` is what a report of a defect should have.
    """
    checks = []
    for check in every_check(Path.cwd()):
        checks.append(check)
        if as_json:
            click.echo(json.dumps(check._asdict()))
        else:
            echo(_lines(check))
    failed = [check.name for check in checks if check.state == "failed"]
    if not as_json:
        click.echo(f"\nfailed: {', '.join(failed)}" if failed else "\neverything that a run needs works")
    if failed:
        raise click.exceptions.Exit(FAILED)


def _lines(check: Check) -> Iterator[str]:
    yield f"{check.state:<8} {check.name:<12} {check.detail}"
    if check.remedy:
        yield f"{'':<21} {check.remedy}"


def every_check(folder: Path) -> Iterator[Check]:
    """Each check, in the order in which a run would need it."""
    yield Check("python", "ok", sys.version.split()[0])
    needed = requirements()
    yield _packages(needed)
    yield from _extras(needed)
    trials: tuple[tuple[str, Callable[[], str]], ...] = (
        ("sqlite", _sqlite),
        ("data", _data),
        ("temporary", _temporary),
        ("folder", lambda: _writable(folder)),
        ("settings", lambda: _settings(folder)),
        ("audit", _small_audit),
    )
    for name, trial in trials:
        yield _tried(name, trial)
    yield _judges()


def _tried(name: str, trial: Callable[[], str]) -> Check:
    try:
        return Check(name, "ok", trial())
    except UndersongError as error:
        return Check(name, "failed", f"{error.where}: {error.what}" if error.where else error.what, error.remedy)
    except (OSError, sqlite3.Error, ImportError) as error:
        return Check(name, "failed", f"{type(error).__name__}: {error}", "install undersong again, or report this")


def _packages(needed: tuple[Requirement, ...]) -> Check:
    core = [each for each in needed if not each.extra]
    lacking = [each.package for each in core if each.version is None]
    if lacking:
        return Check("packages", "failed", f"not installed: {', '.join(lacking)}", "pip install undersong")
    return Check("packages", "ok", ", ".join(f"{each.package} {each.version}" for each in core) or "run from a folder")


def _extras(needed: tuple[Requirement, ...]) -> Iterator[Check]:
    for extra in dict.fromkeys(each.extra for each in needed if each.extra):
        lacking = [each.package for each in needed if each.extra == extra and each.version is None]
        purpose = EXTRAS.get(extra, "")
        if lacking:
            yield Check(extra, "missing", purpose, f"pip install 'undersong[{extra}]'")
        else:
            yield Check(extra, "ok", purpose)


def _sqlite() -> str:
    with sqlite3.connect(":memory:") as db:
        db.execute("CREATE VIRTUAL TABLE words USING fts5(text)")
    db.close()
    return f"{sqlite3.sqlite_version}, with full-text search"


def _data() -> str:
    from undersong.patterns.catalog import all_rules
    from undersong.scan import load_book

    load_book()
    return f"{len(all_rules())} rules and the phrases are whole"


def _temporary() -> str:
    folder = tempfile.gettempdir()
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        file.write(b"x")
    free = shutil.disk_usage(folder).free
    if free < FREE_BYTES:
        raise UndersongError(f"{free >> 20} MB are free", where=folder, remedy="make room, or set TMPDIR")
    return f"{free >> 30} GB are free"


def _writable(folder: Path) -> str:
    if not os.access(folder, os.W_OK):
        raise UndersongError("cannot be written", where=str(folder), remedy="use --out with another folder")
    return "a report can be written here"


def _settings(folder: Path) -> str:
    from undersong.cli.configuration import settings_here

    count = len(settings_here(folder))
    return f"{count} set; see `undersong config`" if count else "none set"


def _small_audit() -> str:
    import undersong

    texts = ("The tests fail.", "Fixed, all tests pass now.")
    messages = [{"author": name, "text": text} for name, text in zip(("user", "assistant"), texts, strict=True)]
    _, rows = undersong.audit([{"id": "doctor", "messages": messages}])
    if len(rows) != len(texts):
        raise UndersongError(f"read {len(rows)} of {len(texts)} messages", remedy="please report this")
    return f"{len(texts)} messages were read, scanned and scored"


def _judges() -> Check:
    from undersong.judges.llm.at_hand import judge_command, judges_at_hand

    ready = [judge.judge for judge in judges_at_hand() if judge.ready]
    if ready:
        return Check("judges", "ok", f"ready: {', '.join(ready)}")
    return Check("judges", "missing", "no LLM judge is ready; the offline judge is", judge_command(["audit", "PATH"]))
