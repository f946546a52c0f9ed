"""Findings, leads, claims and reviews of a store as CSV files, for spreadsheets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from undersong.rows.flat import (
    CLAIM,
    FINDING,
    LEAD,
    REVIEW,
    claim_record,
    csv_text,
    finding_record,
    lead_record,
    review_record,
)
from undersong.stores.protocol import Store
from undersong.stores.reviewing import keeps

TABLES: dict[str, tuple[Sequence[str], Callable[[Any], dict[str, Any]]]] = {
    "findings": (FINDING, finding_record),
    "leads": (LEAD, lead_record),
    "claims": (CLAIM, claim_record),
    "reviews": (REVIEW, review_record),
}


def export_csv(store: Store, folder: Path) -> dict[str, int]:
    """Write a file for each of these that the store keeps; returns how many rows each has.

    Raises OSError where the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = {}
    for name, (columns, record_of) in TABLES.items():
        if name == "findings" or keeps(store, name):
            written[name] = _write(folder / f"{name}.csv", columns, map(record_of, getattr(store, name)()))
    return written


def table_text(name: str, items: Iterable[Any]) -> str:
    """One of the TABLES as text, for a spreadsheet."""
    columns, record_of = TABLES[name]
    return "\ufeff" + "".join(csv_text(columns, map(record_of, items)))


def _write(path: Path, columns: Sequence[str], records: Iterable[dict[str, Any]]) -> int:
    """Write a table whole or not at all; returns its rows."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("w", encoding="utf-8-sig", newline="") as file:
            written = sum(1 for line in csv_text(columns, records) if file.write(line))
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return written - 1  # the first line is the header
