"""A store as Parquet files, for DuckDB, Polars, Spark and the like; written thread by thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from undersong.core.batches import batches
from undersong.models import Message, Row
from undersong.rows.arrow import (
    CLAIMS,
    EVALUATIONS,
    FINDINGS,
    LEADS,
    MESSAGES,
    REVIEWS,
    claims_table,
    evaluations_table,
    findings_table,
    leads_table,
    messages_table,
    reviews_table,
)
from undersong.stores.protocol import Store
from undersong.stores.reviewing import keeps

ROWS = 20_000  # rows of a group, as many as are held at once
T = TypeVar("T")


REVIEWED: dict[str, tuple[pa.Schema, Callable[[Iterable[Any]], pa.Table]]] = {
    "leads": (LEADS, leads_table),
    "claims": (CLAIMS, claims_table),
    "reviews": (REVIEWS, reviews_table),
}


def export(store: Store, folder: Path) -> dict[str, int]:
    """Write a file for each kind of thing that the store keeps; returns how many rows each has.

    A file appears whole or not at all. Raises OSError where the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    return {
        "findings": _write(folder, "findings", FINDINGS, store.findings(), findings_table),
        "evaluations": _write(folder, "evaluations", EVALUATIONS, _rows(store), evaluations_table),
        "messages": _write(folder, "messages", MESSAGES, _messages(store), messages_table),
    } | {
        name: _write(folder, name, schema, getattr(store, name)(), table)
        for name, (schema, table) in REVIEWED.items()
        if keeps(store, name)
    }


def _rows(store: Store) -> Iterator[Row]:
    judges = [judge.judge_hash for judge in store.judges()]
    for name in store.threads():
        for judge in judges:
            yield from store.thread(name, judge)


def _messages(store: Store) -> Iterator[Message]:
    for name in store.conversations():
        yield from store.conversation(name)[0].messages


def _write(folder: Path, name: str, schema: pa.Schema, items: Iterable[T], table: Callable[[Sequence[T]], Any]) -> int:
    partial, written = folder / f".{name}.partial", 0
    try:
        partial.touch(mode=0o600)  # it may quote private messages
        with pq.ParquetWriter(partial, schema, compression="zstd") as writer:
            for group in batches(items, ROWS):
                writer.write_table(table(group))
                written += len(group)
        partial.replace(folder / f"{name}.parquet")
    finally:
        partial.unlink(missing_ok=True)
    return written
