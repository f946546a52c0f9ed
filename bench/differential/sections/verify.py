"""Every report that was written, verified by the version that wrote it and by the other one; so are stores read."""

from __future__ import annotations

import shutil
from pathlib import Path

from bench.differential.bench import Bench, Side


def reports(side: Side) -> list[Path]:
    """The report folders of all sections, as paths inside the folder of runs."""
    runs = side.work / "runs"
    return sorted(path.parent.relative_to(runs) for path in runs.glob("*/*/manifest.json"))


def verify(bench: Bench, writer: Side) -> None:
    """Verify what ``writer`` wrote, in a copy under the same names, so that both versions have the same to say."""
    bench.folder.mkdir(parents=True, exist_ok=True)
    bench.take("samples")
    folders = reports(writer)
    for path in folders:
        shutil.copytree(writer.work / "runs" / path, bench.folder / path)
    bench.many([["verify", str(path)] for path in folders])
    bench.many([["verify", str(path), "samples"] for path in folders if path.name in ("undersong-report", "redacted")])
    bench.many([["verify", str(path), "--digest", "0123456789abcdef"] for path in folders[:3]])
    _tampered(bench, folders[:3])
    _stores(bench, writer)


def _tampered(bench: Bench, folders: list[Path]) -> None:
    """A report with one byte changed, and one with a file gone."""
    for path in folders:
        page = bench.folder / path / "forensic_audit_report.md"
        page.write_bytes(page.read_bytes().replace(b"e", b"E", 1))
        (bench.folder / path / "report.html").unlink()
    bench.many([["verify", str(path)] for path in folders])


def _stores(bench: Bench, writer: Side) -> None:
    """A store that the writer left is read, and goes on."""
    for name in ("a.db", "swept.db"):
        source = writer.work / "runs" / "store" / name
        if source.exists():
            shutil.copy(source, bench.folder / name)
            bench.undersong("store", "check", "--store", name)
            bench.undersong("store", "export", "-", "--store", name)
            bench.undersong("sweep", "--store", name, "--draws", "19")
            bench.store(name)
