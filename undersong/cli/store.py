"""``undersong store``: what a store holds, whether it holds together, and its way into another one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from undersong.cli.options import (
    DEFAULT_STORE,
    NOT_EVERYTHING_READ,
    check_existing,
    check_targets,
    existing_store,
    output,
    show_problems,
)
from undersong.core.sanitize import one_line, visible
from undersong.core.text import counted
from undersong.errors import InputError, UsageError
from undersong.models import Problem, Row, encode
from undersong.stores.addresses import without_password
from undersong.stores.protocol import Store, open_store

if TYPE_CHECKING:
    from undersong.stores.transfer import ExportRecord, ImportCounts

PLACE = "A file, postgresql://USER@HOST/DATABASE or bolt://HOST:PORT."
STORE = click.option("--store", "address", default=DEFAULT_STORE, show_default=True, metavar="FILE|URL", help=PLACE)
DAMAGED = 4


@click.group("store")
def command() -> None:
    """A store keeps conversations, scores, agent histories and findings: one SQLite file, PostgreSQL or Neo4j."""


@command.command("info")
@STORE
def info(address: str) -> None:
    """Where the store is, and how much it holds."""
    with existing_store(address) as store:
        judges = store.judges()
        lines = store.facts() | {name: f"{number:,}" for name, number in store.counts().items()}
        for judge in judges:
            agents = counted(len(store.agents(judge.judge_hash)), "agent")
            number = f"{counted(judge.rows, 'row')} of {agents}"
            lines[f"judge {judge.judge or '(unnamed)'}"] = f"{number} ({judge.judge_hash[:16]}…)"
        if store.keeps_reviews:
            lists = {"leads": store.leads(), "claims": store.claims(), "reviews": store.reviews()}
            lines |= {name: f"{sum(1 for _ in items):,}" for name, items in lists.items()}
        lines["changes"] = f"{store.changes():,}"
        lines["forgotten"] = f"{len(store.tombstones()):,}"
    _table(lines)


@command.command("check")
@click.option("--digest", metavar="HEX", help="What a check printed before: is this still the same content?")
@STORE
def check(address: str, digest: str | None) -> None:
    """Read everything and say what does not hold together or is not as it was stored; exit code 4 if anything.

    A file's rows are compared with seals that every write of undersong renews, its packed histories and its index of
    words with the rows that they are made from. A graph has no seals, since anybody's queries may write there, and who
    can run undersong can seal again what they changed in a file: keep the digest that is printed somewhere else, and
    name it with --digest.
    """
    from undersong.stores.integrity import problems

    check_existing(address)
    number = 0
    with open_store(address, read_only=True) as store, store.repeatable_read():
        for problem in problems(store, digest):
            number += 1
            click.echo(visible(problem))
        content = store.digest() if not number else None
    place = without_password(address)
    words = f"{counted(number, 'problem')} in {place}" if number else f"{place} holds together"
    click.echo(words, err=bool(number))
    if content is not None:
        click.echo(f"digest {content}")
    elif not number:
        click.echo("not compared with what was stored: this store has neither seals nor a digest")
    raise SystemExit(DAMAGED if number else 0)


@command.command("migrate")
@STORE
def migrate(address: str) -> None:
    """Bring a store of an older version up to date; its content stays."""
    with existing_store(address, read_only=False) as store:
        _table(store.facts())


@command.command("export")
@click.argument("target", metavar="FILE|-|DIR")
@click.option(
    "--format", "kind", type=click.Choice(["jsonl", "parquet", "csv", "scout"]), default="jsonl", show_default=True
)
@STORE
def export(target: str, kind: str, address: str) -> None:
    """Write the whole content as JSON Lines, which `undersong store import` reads, or as tables into a folder.

    parquet: findings, evaluations, messages, leads, claims and reviews, for DuckDB, Polars and the like. csv: without
    evaluations and messages, for a spreadsheet. scout: the conversations with their findings, as a transcript database
    of Inspect Scout.
    """
    from undersong.stores.transfer import export_records

    check_existing(address)
    check_targets([address], target)
    if kind != "jsonl":
        _export_tables(kind, Path(target), address)
        return
    with existing_store(address) as store, output(target) as lines:
        for record in export_records(store):
            lines.write(encode(record) + b"\n")


def _export_tables(kind: str, folder: Path, address: str) -> None:
    try:
        with existing_store(address) as store:
            written = _tables(kind, store, folder)
    except ModuleNotFoundError as error:
        what = f"{kind} needs the package {error.name}"
        raise UsageError(what, where="--format", remedy="pip install 'undersong[parquet]'") from error
    except OSError as error:
        what = f"cannot be written: {error.strerror}"
        raise UsageError(what, where=str(folder), remedy="choose another folder") from error
    for name, rows in written.items():
        click.echo(f"{folder / name}: {counted(rows, 'row')}")


def _tables(kind: str, store: Store, folder: Path) -> dict[str, int]:
    """Write the tables of a format; file → its rows."""
    if kind == "csv":
        from undersong.stores.csv_tables import export_csv

        return {f"{name}.csv": rows for name, rows in export_csv(store, folder).items()}
    if kind == "scout":
        from undersong.bridges.scout_export import FILE, export_scout

        return {FILE: export_scout(store, folder)}
    from undersong.stores.parquet import export

    return {f"{name}.parquet": rows for name, rows in export(store, folder).items()}


@command.command("import")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@STORE
def import_(files: tuple[str, ...], address: str) -> None:
    """Put exports of stores, or rows as `undersong evaluate` writes them, into a store; - is standard input."""
    from undersong.stores.transfer import import_records

    problems: list[Problem] = []
    with open_store(address) as store:
        for name in files:
            with _opened(name) as lines:
                _say(name, import_records(store, _records(lines, name, problems), datetime.now(UTC)))
    show_problems(problems)
    raise SystemExit(NOT_EVERYTHING_READ if problems else 0)


@command.command("merge")
@click.argument("sources", nargs=-1, required=True, metavar="FILE|URL...")
@STORE
def merge(sources: tuple[str, ...], address: str) -> None:
    """Put the content of other stores into this one; of two versions of a conversation the longer one stands."""
    from undersong.stores.transfer import export_records, import_records

    for name in sources:
        check_existing(name)
    with open_store(address) as store:
        for name in sources:
            with open_store(name, read_only=True) as source:
                _say(name, import_records(store, export_records(source), datetime.now(UTC)))


@command.command("sync")
@click.argument("url", metavar="URL")
@STORE
def sync(url: str, address: str) -> None:
    """Bring a Neo4j database up to what this store holds: bolt://HOST:PORT. The same again changes nothing."""
    from undersong.stores.transfer import export_records, import_records

    with existing_store(address) as store, open_store(url) as target:
        _say(without_password(url), import_records(target, export_records(store), datetime.now(UTC)))


@command.command("seed")
@STORE
def seed(address: str) -> None:
    """Put the taxonomy (traits, indicators) and the patterns into a Neo4j database, under the graph's names."""
    with open_store(address) as store:
        store.seed()
    click.echo(f"{without_password(address)} holds the taxonomy and the patterns")


@command.command("forget")
@click.argument("name", metavar="AGENT|CONVERSATION")
@click.option("--kind", type=click.Choice(["agent", "conversation"]), help="Which, where a name is both.")
@STORE
def forget_(name: str, kind: str | None, address: str) -> None:
    """Remove all private text of an agent or a conversation for good; only a hash of the name stays.

    What was forgotten does not come back by an audit, an import or a merge. Reports that were written stay as they are.
    """
    from undersong.stores.erasure import forget

    with existing_store(address, read_only=False) as store:
        tombstone = forget(store, name, datetime.now(UTC), kind)  # type: ignore[arg-type]  # click's Choice
    extent = f"{counted(tombstone.messages, 'message')} of one {tombstone.kind}"
    click.echo(f"forgotten: {extent} ({tombstone.digest[:16]}…)")


def _records(lines: BinaryIO, name: str, problems: list[Problem]) -> Iterator[ExportRecord]:
    """The records of an export, or one made of the rows of each conversation."""
    from undersong.rows.binary import with_event_times
    from undersong.rows.jsonl import read_rows
    from undersong.stores.transfer import ThreadRecord, read_records

    first = lines.readline()
    every = chain([first], lines)
    if b'"undersong-store"' in first[:100]:
        yield from read_records(every, name)
        return
    threads: dict[str, list[Row]] = {}
    for item in read_rows(every, name=name):
        if isinstance(item, Row):
            threads.setdefault(item.conversation, []).append(item)
        else:
            problems.append(item)
    yield from (ThreadRecord(id=each, rows=tuple(with_event_times(threads[each]))) for each in sorted(threads))


def _opened(name: str) -> nullcontext[BinaryIO] | BinaryIO:
    if name == "-":
        return nullcontext(sys.stdin.buffer)
    try:
        return Path(name).open("rb")
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=name) from error


def _say(name: str, taken: ImportCounts) -> None:
    parts = [counted(taken.threads, "conversation"), counted(taken.rows, "row"), counted(taken.findings, "finding")]
    parts += [counted(taken.leads, "lead")] if taken.leads else []
    parts += [counted(taken.reviews, "review")] if taken.reviews else []
    parts += [f"{taken.older} kept as they were"] if taken.older else []
    parts += [f"{taken.forgotten} left out, forgotten before"] if taken.forgotten else []
    click.echo(f"{name}: {', '.join(parts)}")


def _table(lines: dict[str, str]) -> None:
    width = max(map(len, lines))
    for name, value in lines.items():
        click.echo(f"{one_line(name):<{width}}  {value}")
