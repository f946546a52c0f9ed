"""LLM judges against the repository's own server, with faults: reports, stores, and every request."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bench.differential.bench import Bench
from bench.differential.wire import served

PRICES = ("--price-in", "3", "--price-out", "15")


def judge(bench: Bench) -> None:
    """Every way to ask; the sides take turns, since both ask at one address."""
    bench.take("samples", "chats", "faults.jsonl", "batch.jsonl", "labels.jsonl")
    for provider in ("openai", "anthropic"):
        _faults(bench, provider)
        _batches(bench, provider)
    _tiers(bench)
    _limits(bench)
    _replayed(bench)
    _measured(bench)
    _streams(bench)


def address(bench: Bench, provider: str, model: str = "m") -> str:
    """``--judge`` for the server."""
    return f"{provider}:{model}@http://127.0.0.1:{bench.plan.port}" + ("/v1" if provider == "openai" else "")


@contextmanager
def asked(bench: Bench) -> Iterator[None]:
    """A fresh server; what it was asked is a record of the last step in the block."""
    with served(bench.plan.server, bench.plan.port) as recorder:
        yield
    bench.record("requests", "\n".join(recorder.requests()).encode())


def _audit(bench: Bench, out: str, *arguments: str) -> None:
    bench.audit(out, *arguments, unordered=True)


def _faults(bench: Bench, provider: str) -> None:
    spec = ("--judge", address(bench, provider), *PRICES)
    with asked(bench):
        _audit(bench, f"faults-{provider}", "faults.jsonl", *spec, "--all", "--no-chance")
    if provider == "openai" and not bench.plan.quick:  # what failed is asked again
        with asked(bench):
            _audit(bench, f"faults-{provider}", "faults.jsonl", *spec, "--all", "--no-chance")
    with asked(bench):
        _audit(bench, f"samples-{provider}", "samples", *spec, "--double-check", "50", "--draws", "99")


def _batches(bench: Bench, provider: str) -> None:
    """Handed over, then collected."""
    with asked(bench):
        for _ in range(3):
            _audit(
                bench,
                f"batch-{provider}",
                "batch.jsonl",
                "--judge",
                address(bench, provider),
                *PRICES,
                "--batch",
                "--all",
            )


def _tiers(bench: Bench) -> None:
    """A judge for each tier, and questions that confirm what the session shows."""
    small, large = address(bench, "openai", "small"), address(bench, "anthropic", "large")
    tiers = f"focused={small},deep={large},deep_with_context={address(bench, 'openai', 'best+high')}"
    with asked(bench):
        _audit(bench, "tiers", "samples", "chats", "--judge", tiers, *PRICES, "--redact", "--format", "json")
    both = f"focused={small},deep={address(bench, 'openai', 'best+high')}"  # the server's batches are of one provider
    with asked(bench):
        for _ in range(3):
            _audit(bench, "tiers-batch", "samples", "--judge", both, *PRICES, "--batch")


def _limits(bench: Bench) -> None:
    """A budget and a number of requests that do not last; one at a time, so that the same are left."""
    spec = ("--judge", address(bench, "openai"), *PRICES, "--concurrency", "1")
    with asked(bench):
        _audit(bench, "calls", "samples", *spec, "--max-calls", "7")
    with asked(bench):
        _audit(bench, "budget", "samples", *spec, "--budget", "4")
    with asked(bench):
        bench.undersong("plan", "samples", *spec[:-2], "--store", "calls.db", "--json")
    if not bench.plan.quick:  # it is patient
        bench.undersong("audit", "samples", "--judge", "openai:m@http://127.0.0.1:9/v1", "--out", "nobody")


def _replayed(bench: Bench) -> None:
    """Answers that were paid, as a file, asked again."""
    spec = address(bench, "openai")
    bench.undersong("judge", "export", "--judge", spec, "--store", "samples-openai.db", "--out", "paid.replay")
    lines = (bench.folder / "paid.replay").read_bytes().splitlines() if (bench.folder / "paid.replay").exists() else []
    bench.record("paid.replay", b"\n".join(sorted(lines)))
    with asked(bench):
        _audit(bench, "replayed", "samples", "--judge", "replay:paid.replay", "--no-chance")


def _measured(bench: Bench) -> None:
    """How far a judge can be relied on."""
    for verb in ("repeat", "context", "framing"):
        with asked(bench):
            spec = ("--judge", address(bench, "openai"), *PRICES, "--store", f"{verb}.db", "--sample", "12")
            bench.undersong("judge", verb, "samples", *spec, "--json")
            bench.store(f"{verb}.db", unordered=True)
    with asked(bench):
        own = ("--judge", address(bench, "anthropic"), *PRICES, "--store", "repeat.db")
        bench.undersong("judge", "validate", "labels.jsonl", *own)
        bench.store("repeat.db", unordered=True)
    bench.undersong("judge", "validate", "labels.jsonl", "--judge", "offline", "--store", "own.db", "--json")


def _streams(bench: Bench) -> None:
    """Evaluate, and watch, by the server's judge."""
    spec = ("--judge", address(bench, "openai"), *PRICES)
    with asked(bench):
        bench.undersong("evaluate", "samples", *spec, "--store", "evaluated.db", "--out", "rows.jsonl")
        bench.file("rows.jsonl")
    with asked(bench):
        lines = (bench.folder / "chats" / "jsonl" / "harbour.jsonl").read_bytes()
        bench.undersong("watch", "-", *spec, "--store", "watched.db", "--all", stdin=lines)
        bench.store("watched.db", unordered=True)
