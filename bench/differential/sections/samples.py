"""Every verb over the small samples: outputs, options, help, and what wrong use is answered with."""

from __future__ import annotations

import json
import re

from bench.differential.bench import Bench

FORMATS = ("json", "jsonl", "sarif", "parquet")
CHATS = (
    "chatgpt", "claude", "claude-code", "codex", "gemini", "jsonl", "moltbook", "openai", "session", "sharegpt", "text",
)  # fmt: skip
VERBS = (
    "audit", "plan", "scan", "evaluate", "detect", "watch", "verify", "formats", "rules", "judge", "explain", "store",
    "sweep", "agents", "agent",
)  # fmt: skip
KINDS = (
    "patterns", "phrases", "dimensions", "traits", "indicators", "combinations", "pathways", "constraints", "codes",
    "mechanisms", "labels",
)  # fmt: skip
ROWS = b"""\
{"id": "1", "agent": "kira", "target": "bo", "time": "2026-01-01T00:00:00Z", "traits": {"compassion": 0.9, "goodwill": 0.85, "manipulation": 0.1, "fabrication": 0.0}}
{"id": "2", "agent": "kira", "target": "bo", "time": "2026-01-02T00:00:00Z", "traits": {"compassion": 0.85, "goodwill": 0.8, "manipulation": 0.1, "fabrication": 0.0}}
{"id": "3", "agent": "kira", "target": "bo", "time": "2026-01-03T00:00:00Z", "traits": null}
{"id": "4", "agent": "kira", "target": "bo", "time": "2026-01-04T00:00:00Z", "traits": {"compassion": 0.9, "goodwill": 0.8, "manipulation": 0.2, "fabrication": 0.1}}
{"id": "5", "agent": "kira", "target": "bo", "time": "2026-01-05T00:00:00Z", "traits": {"compassion": 0.1, "goodwill": 0.2, "manipulation": 0.7, "fabrication": 0.1}}
"""  # noqa: E501
BAD_ROWS = ROWS + b'{"id": "6"}\nnothing\n{"id": 7, "agent": "bo", "traist": {}, "traits": {"virtu": 2}}\n'


def samples(bench: Bench) -> None:
    """Every verb over the samples."""
    bench.take("samples", "chats", "names.txt", "mutated", "broken_rules")
    (bench.folder / "rows.jsonl").write_bytes(ROWS)
    (bench.folder / "bad.jsonl").write_bytes(BAD_ROWS)
    _audits(bench)
    _files(bench)
    _printed(bench)
    _help(bench)
    _rules(bench)
    _wrong(bench)
    bench.script("library.py", "samples", "chats")
    bench.store("library.db")


def _audits(bench: Bench) -> None:
    """Reports in every format, redacted, and with every option that changes what is read."""
    bench.undersong("audit", "samples")
    bench.report("undersong-report")
    bench.store()
    bench.undersong("audit", "samples")
    bench.report("undersong-report")
    every = [word for name in FORMATS for word in ("--format", name)]
    bench.audit("chats-report", "chats", *every, "--json")
    options: dict[str, tuple[str, ...]] = {
        "redacted": ("--redact", "--format", "json"),
        "one-name": ("--redact-name", "kira_x", *every),
        "names": ("--redact", "--redact-names", "names.txt"),
        "share": ("--budget-share", "0.3", "--seed", "7", "--json"),
        "double": ("--double-check", "50", "--no-chance", "--all"),
        "some": ("--only", "invoice*", "--since", "2026-01-01", "--fail-on", "low"),
    }
    for name in FORMATS:
        options[name] = ("--format", name, "--recall", "0.9")
    for name, words in options.items() if not bench.plan.quick else list(options.items())[:5]:
        bench.audit(name, "samples", *words)
    for name in CHATS if not bench.plan.quick else ("claude-code", "session"):
        bench.audit(f"of-{name}", f"chats/{name}", "--from", name, "--draws", "99", "--block", "2")


def _files(bench: Bench) -> None:
    """What scan, evaluate and detect write into files and read from pipes."""
    bench.undersong("scan", "samples", "chats", "--out", "scan.jsonl", "--threads", "threads.jsonl")
    bench.undersong("evaluate", "samples", "chats", "--out", "scored.jsonl", "--store", "scored.db")
    bench.file("scan.jsonl", "threads.jsonl", "scored.jsonl", "scored.jsonl.bands.json")
    bench.store("scored.db")
    bench.undersong("detect", "-", stdin=ROWS)
    bench.undersong("scan", "-", stdin=(bench.folder / "chats" / "jsonl" / "harbour.jsonl").read_bytes())
    bench.undersong("scan", "samples", "--engine", "hyperscan", "--no-text")
    bench.undersong("scan", "chats", "--processes", "2", "--signals", "phrases,threads")


def _printed(bench: Bench) -> None:
    """Whatever only prints."""
    commands = [
        ["--version"], ["formats"], ["agents"], ["agents", "--json"], ["agents", "--min-evaluations", "3"],
        ["plan", "samples"], ["plan", "chats", "--json"], ["plan", "samples", "--all", "--budget-share", "0.5"],
        ["plan", "samples", "--judge", "anthropic:claude-sonnet-4-5", "--json"],
        ["plan", "chats", "--judge", "openai:m", "--price-in", "3", "--price-out", "15", "--budget", "0.001"],
        ["evaluate", "samples", "--no-text"], ["evaluate", "chats", "--all", "--recall", "0.95"],
        ["detect", "rows.jsonl"], ["detect", "rows.jsonl", "--rule", "love_bombing", "--draws", "99", "--block", "2"],
        ["detect", "rows.jsonl", "--rule", "love_bombing_literal", "--no-chance", "--fail-on", "low"],
        ["detect", "scored.jsonl"], ["detect", "bad.jsonl"], ["detect", "rows.jsonl", "--rule", "nosuch"],
        ["rules", "explain", "love_bombing", "rows.jsonl"], ["rules", "explain", "darvo", "rows.jsonl"],
        ["rules", "explain", "love_bombing", "rows.jsonl", "--agent", "kira", "--target", "bo"],
        ["rules", "explain", "con_game", "scored.jsonl"],
        *(["scan", f"chats/{name}", "--from", name] for name in CHATS),
        *(["scan", path.relative_to(bench.folder).as_posix()] for path in sorted((bench.folder / "mutated").iterdir())),
    ]  # fmt: skip
    bench.many(commands)
    agents = sorted({json.loads(line)["agent"] for line in bench.many([["agents", "--json"]])[0].splitlines()})
    ids = sorted(set(re.findall(r'"message_id":"([^"]+)"', (bench.folder / "scored.jsonl").read_text("utf-8"))))
    ids += sorted({json.loads(line)["id"] for line in (bench.folder / "scored.jsonl").read_text("utf-8").splitlines()})
    bench.many([["agent", name, *words] for name in agents for words in ([], ["--json"])])
    bench.many([["explain", name, "--store", "chats-report.db"] for name in ids])
    bench.many([["explain", name] for name in ids[:20]])


def _help(bench: Bench) -> None:
    """The help of every verb, and of every verb within one."""
    groups = bench.many([["--help"], *([verb, "--help"] for verb in VERBS)])
    inner = []
    for verb, text in zip(VERBS, groups[1:], strict=True):
        listed = text.decode().partition("\nCommands:\n")[2]
        inner += [[verb, name, "--help"] for name in re.findall(r"^  ([a-z-]+)  ", listed, re.MULTILINE)]
    bench.many(inner)


def _rules(bench: Bench) -> None:
    """The rules, the taxonomy, and what is said of broken rules."""
    lists = bench.many([["rules", "list"], *(["rules", "list", "--kind", kind] for kind in KINDS)])
    ids = sorted({line.split()[0].decode() for text in lists for line in text.splitlines() if line.strip()})
    bench.many([["rules", "show", name] for name in (ids[::4] if bench.plan.quick else ids)])
    bench.undersong("rules", "schema")
    bench.undersong("rules", "check")
    bench.undersong("rules", "test")
    broken = sorted(path.name for path in (bench.folder / "broken_rules").iterdir())
    for verb in ("check", "list", "test"):
        bench.many([["rules", verb, "--rules", f"broken_rules/{name}"] for name in broken])
    bench.many([["detect", "rows.jsonl", "--rules", f"broken_rules/{name}"] for name in broken])


def _wrong(bench: Bench) -> None:
    """Wrong use, and files that are not there or hold something else."""
    bench.many([
        [], ["nosuch"], ["audit"], ["audit", "missing"], ["audit", "samples", "--from", "nosuch"],
        ["scan", "names.txt"],
        ["audit", "samples", "--budget-share", "2"], ["audit", "samples", "--judge", "nosuch"],
        ["audit", "samples", "--judge", "offline:missing"], ["audit", "samples", "--judge", "anthropic:m"],
        ["audit", "samples", "--judge", "openai:m+huge"], ["audit", "samples", "--judge", "replay:missing"],
        ["audit", "samples", "--out", "samples"], ["audit", "samples", "--since", "yesterday"],
        ["audit", "samples", "--store", "names.txt"], ["audit", "samples", "--rules", "missing"],
        ["audit", "samples", "--double-check", "101"], ["audit", "samples", "--redact-names", "missing"],
        ["scan", "samples", "--signals", "phrases,nosuch"], ["scan", "samples", "--engine", "nosuch"],
        ["evaluate", "samples", "--judge", "focused=offline"], ["detect", "missing"], ["detect", "names.txt"],
        ["rules", "show", "love_bombin"], ["rules", "test", "nosuch"], ["rules", "explain", "nosuch", "rows.jsonl"],
        ["explain", "nosuch"], ["agent", "nosuch"], ["agents", "--store", "missing.db"], ["verify", "missing"],
        ["verify", "samples"], ["sweep", "--store", "missing.db"], ["watch", "missing", "--no-follow"],
        ["watch", "chats/text/chat.txt", "--no-follow"], ["store", "info", "--store", "missing.db"],
        ["store", "check", "--store", "names.txt"], ["judge", "train", "names.txt", "--out", "trained"],
        ["judge", "validate", "names.txt", "--judge", "offline"], ["judge", "export", "--judge", "nosuch"],
    ])  # fmt: skip
