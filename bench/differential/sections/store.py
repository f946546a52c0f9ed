"""The store: tables, exports, imports, merges, sweeps, and forgetting."""

from __future__ import annotations

import json

from bench.differential.bench import Bench


def store(bench: Bench) -> None:
    """Everything that a store is asked for."""
    bench.take("samples", "chats", "planted", "corpus.jsonl")
    lines = (bench.folder / "corpus.jsonl").read_bytes().splitlines(keepends=True)
    (bench.folder / "some.jsonl").write_bytes(b"".join(lines[:400]))
    bench.audit("a", "samples", "chats", "--no-chance")
    bench.audit("b", "some.jsonl", "chats/jsonl", "--no-chance", "--all")
    _looked_at(bench, "a.db")
    _moved(bench)
    _swept(bench)
    _forgotten(bench)


def _looked_at(bench: Bench, name: str) -> None:
    bench.many([["store", verb, "--store", name] for verb in ("info", "check", "migrate")])
    bench.undersong("store", "export", "-", "--store", name)
    bench.undersong("store", "export", f"{name}.parquet", "--format", "parquet", "--store", name)
    bench.report(f"{name}.parquet")


def _moved(bench: Bench) -> None:
    """One store's content in another."""
    bench.undersong("store", "export", "a.export", "--store", "a.db")
    bench.undersong("store", "import", "a.export", "--store", "c.db")
    bench.store("c.db")
    bench.undersong("store", "merge", "b.db", "--store", "c.db")
    bench.store("c.db")
    bench.undersong("store", "merge", "b.db", "missing.db", "--store", "c.db")
    bench.undersong("evaluate", "samples", "--out", "rows.jsonl")
    bench.undersong("store", "import", "rows.jsonl", "--store", "c.db")
    bench.store("c.db")
    _looked_at(bench, "c.db")
    bench.undersong("store", "sync", "bolt://127.0.0.1:9", "--store", "c.db")
    bench.undersong("store", "seed", "--store", "c.db")


def _swept(bench: Bench) -> None:
    """Rows with real scores in a store, swept again and again."""
    first = sorted((bench.folder / "planted").glob("*.jsonl"))[0]
    rows = first.read_bytes().splitlines(keepends=True)
    rows = rows[: bench.plan.size(6_000, 30_000)]
    for name, part in (("early", rows[: len(rows) // 2]), ("late", rows[len(rows) // 2 :])):
        (bench.folder / f"{name}.jsonl").write_bytes(b"".join(part))
        bench.undersong("store", "import", f"{name}.jsonl", "--store", "swept.db")
        bench.undersong("sweep", "--store", "swept.db", "--draws", "99", "--emerging")
        bench.store("swept.db")
    bench.undersong("sweep", "--store", "swept.db")
    again = bench.undersong("sweep", "--store", "swept.db", "--again", "--json", "--no-chance", "--no-slow")
    bench.undersong("sweep", "--store", "a.db", "--min-evaluations", "2", "--fail-on", "low")
    exported = bench.undersong("store", "export", "-", "--store", "swept.db")
    _listed(bench, exported + again)


def _listed(bench: Bench, exported: bytes) -> None:
    """Agents and findings of the swept store."""
    ids = sorted(set(_values(exported, "finding_id")))
    agents = sorted(set(_values(exported, "agent")))
    shown = bench.plan.size(6, 60)
    bench.many([["agents", "--store", "swept.db", *words] for words in ([], ["--json"])])
    bench.many([["agent", name, "--store", "swept.db"] for name in agents[:shown]])
    bench.many([["agent", name, "--json", "--store", "swept.db"] for name in agents[:shown]])
    bench.many([["explain", name, "--store", "swept.db"] for name in ids[:shown]])


def _values(lines: bytes, key: str) -> list[str]:
    """The values of a key, wherever it stands in JSON lines."""
    values: list[str] = []

    def note(pairs: list[tuple[str, object]]) -> dict[str, object]:
        values.extend(value for name, value in pairs if name == key and isinstance(value, str))
        return dict(pairs)

    for line in lines.splitlines():
        if line.startswith(b"{"):
            json.loads(line, object_pairs_hook=note)
    return values


def _forgotten(bench: Bench) -> None:
    """An agent and a conversation leave, and do not come back."""
    bench.undersong("store", "forget", "kira_x", "--store", "c.db")
    bench.store("c.db")
    bench.undersong("store", "forget", "invoice-session", "--kind", "conversation", "--store", "c.db")
    bench.undersong("store", "forget", "nobody", "--store", "c.db")
    bench.store("c.db")
    bench.undersong("store", "merge", "a.db", "--store", "c.db")
    bench.undersong("store", "check", "--store", "c.db")
    bench.undersong("store", "info", "--store", "c.db")
    bench.store("c.db")
    bench.audit("after", "samples", "--no-chance")
