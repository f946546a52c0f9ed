"""The corpus, the planted sets, and random rules over random rows."""

from __future__ import annotations

from bench.differential.bench import Bench

OFF_BY_DEFAULT = (
    "alignment_faking_literal", "con_game_literal", "darvo_literal", "intermittent_reward_literal",
    "love_bombing_literal", "sandbagging_literal", "love_bombing_slow", "darvo_slow", "con_game_slow",
)  # fmt: skip


def corpus(bench: Bench) -> None:
    """Scan, evaluate and audit generated messages."""
    bench.take("corpus.jsonl", "long.jsonl")
    bench.undersong("scan", "corpus.jsonl", "--out", "scan.jsonl", "--threads", "threads.jsonl")
    bench.file("scan.jsonl", "threads.jsonl")
    bench.undersong("scan", "long.jsonl", "--out", "two.jsonl", "--processes", "2", "--no-text")
    bench.file("two.jsonl")
    bench.undersong("evaluate", "long.jsonl", "--out", "rows.jsonl")
    bench.file("rows.jsonl", "rows.jsonl.bands.json")
    bench.undersong("detect", "rows.jsonl", "--draws", "99")
    bench.audit("report", "corpus.jsonl", "--format", "jsonl")
    if not bench.plan.quick:
        bench.audit("all", "long.jsonl", "--all", "--recall", "0.9", "--format", "parquet", "--draws", "99")


def planted(bench: Bench) -> None:
    """Detect in rows with real scores, with chance and without, also rules that are off by default."""
    bench.take("planted")
    sets = sorted(path.stem for path in (bench.folder / "planted").glob("*.jsonl"))
    for name in sets[:1] if bench.plan.quick else sets:
        bench.undersong("detect", f"planted/{name}.jsonl", "--out", f"{name}.findings", "--draws", "199")
        bench.file(f"{name}.findings")
    for name in sets:
        named = [word for rule in OFF_BY_DEFAULT for word in ("--rule", rule)]
        bench.undersong("detect", f"planted/{name}.jsonl", "--no-chance", *named)
        bench.undersong("detect", f"planted/{name}.jsonl", "--no-chance", "--fail-on", "high")


def rules(bench: Bench) -> None:
    """Detect with random rules: all of a batch over its rows, every tenth batch with chance, too."""
    bench.take("random")
    for number, folder in enumerate(sorted((bench.folder / "random").iterdir())):
        own = ("--rules", f"random/{folder.name}/rules")
        chance = () if number % 10 else ("--draws", "19", "--seed", "3")
        bench.undersong("detect", f"random/{folder.name}/rows.jsonl", *own, *(chance or ("--no-chance",)))
        if number % 20 == 0:
            rule = sorted((folder / "rules").iterdir())[0].stem
            bench.undersong("rules", "check", *own)
            bench.undersong("rules", "list", *own)
            bench.undersong("rules", "explain", rule, f"random/{folder.name}/rows.jsonl", *own)
