"""The output formats of ``--format``: each adds its files to the report folder."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import msgspec

from undersong.datafiles.yaml_loader import did_you_mean
from undersong.errors import UsageError
from undersong.models import Case
from undersong.report.finding_view import RuleWords
from undersong.report.render import otlp, tables
from undersong.report.render.sarif import sarif

# what --format writes beside the pages
FORMATS: dict[str, tuple[str, ...]] = {
    "json": ("report.json",),
    "jsonl": ("results.jsonl",),
    "sarif": ("report.sarif",),
    "parquet": (tables.MESSAGES, tables.RESULTS, *(f"{name}.parquet" for name in tables.TABLES)),
    "otlp": ("events.otlp.jsonl",),
    "csv": tuple(f"{name}.csv" for name in tables.TABLES),
}


def check_formats(formats: Iterable[str]) -> None:
    """Raise UsageError for an unknown format, or one whose library is missing, before any work is done."""
    for name in formats:
        if name not in FORMATS:
            raise UsageError(f"unknown format '{name}'", where="--format", remedy=did_you_mean(name, list(FORMATS)))
        if name == "parquet":
            tables.require()


def formats_of(names: Collection[str]) -> tuple[str, ...]:
    """The formats whose files are among ``names``."""
    return tuple(each for each, files in FORMATS.items() if set(files) & set(names))


def write_exports(
    formats: Iterable[str], case: Case, evaluations: Path, folder: Path, rules: Mapping[str, RuleWords]
) -> None:
    """Write the files of each format; ``evaluations`` are the rows, ``rules`` the words of the patterns by hash."""
    for format_name in sorted(set(formats)):
        (target, *_) = (folder / name for name in FORMATS[format_name])
        if format_name == "json":
            target.write_bytes(msgspec.json.format(msgspec.json.encode(case), indent=1) + b"\n")
        elif format_name == "jsonl":
            target.write_bytes(b"".join(msgspec.json.encode(result) + b"\n" for result in tables.results(case)))
        elif format_name == "sarif":
            target.write_text(json.dumps(sarif(case, rules), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        elif format_name == "otlp":
            target.write_bytes(otlp.lines(case))
        elif format_name == "csv":
            tables.write_csv(case, folder)
        else:
            tables.write_tables(case, evaluations, folder)
