"""An audit on Spark beside one process: the same bytes, with executors killed; growth; skew.

    python -m bench.spark equal  [--sets talks generated planted] [--messages 200000] [--parts 1 3 17] [--data DIR]
    python -m bench.spark growth [--rows 100000 1000000] [--parts 8]
    python -m bench.spark skew   [--rows 100000] [--messages 20000] [--parts 8]

Two executors in JVMs of their own (``local-cluster[2,1,1024]``). ``equal`` kills one of them (-9) in each step of every
run (``--kill STEP``: in some), while its tasks are active, and compares every byte of rows and findings, and every
outcome, with one process. ``growth`` prints rows a second and CPU seconds of ``detect`` beside one process, without
chance and stability. ``skew`` gives half of all rows to one agent and half of all messages to one conversation. Needs
pyspark and Java 17.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count, islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from bench.corpus import messages as generated_messages
from bench.planted import _lines, rows_of
from undersong import spark
from undersong.arrow import message_batches, row_batches, rows_in
from undersong.formats.ingest import read
from undersong.models import Conversation, Finding, Message, Row, encode
from undersong.patterns.catalog import load_rules
from undersong.patterns.detect import RowSearch
from undersong.patterns.language.compile import PatternRule
from undersong.patterns.significance import ResamplingConfig
from undersong.patterns.significance.confidence import with_confidence
from undersong.patterns.significance.estimate import estimate_significance
from undersong.pipeline.audit import audit
from undersong.pipeline.options import Options

ROOT = Path(__file__).parents[1]
EXECUTORS = "local-cluster[2,1,{memory}]"
LEAST_MEMORY = 1024  # MB of an executor; one that holds all messages in one part needs more
MESSAGES_A_MB = 80
PER_AGENT = 12  # messages of an agent of the generated corpus
SHORT = 2_000  # messages; with fewer the JVMs are hardly warm before they end
SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
SETTLE = 0.2  # seconds that a stage is active before an executor is killed
RULE = """
id: praise_then_price
title: Praise and then a price
level: low
description: For the benchmark, a rule over signals and phrases, which the offline judge gives to any text.
why: The generated corpus holds such sequences, and the shipped rules ask for levels that it cannot give there.
falsepositives: [any]
partition_by: [agent, target]
columns: {praise: 'coalesce(signal("sycophantic_praise"), 0)'}
define:
  PRAISE: 'praise > 0.9 and not flag("reciprocity")'
  PRICE: 'flag("reciprocity")'
pattern: PRAISE{3,} ANY{0,3}? PRICE
within: 100 days
measures: {strength: mean(PRAISE.praise)}
"""


class Run(NamedTuple):
    """What a run gave: rows and findings as bytes, outcomes, and the steps in which an executor was killed."""

    rows: list[bytes]
    findings: list[bytes]
    outcomes: tuple[Any, ...]
    killed: list[str]


class ExecutorKiller:
    """Kills one executor (-9) in each step, once its last stage has tasks at work."""

    def __init__(self, session: SparkSession, steps: Sequence[str]) -> None:
        self._context, self._steps = session.sparkContext, frozenset(steps)
        self.killed: list[str] = []
        self._threads: list[threading.Thread] = []

    def watch(self, step: str) -> None:
        """A step begins: an audit tells of it."""
        if step in self._steps:
            self._threads.append(threading.Thread(target=self._kill, args=(step,), daemon=True))
            self._threads[-1].start()

    def join(self) -> None:
        """Wait until nobody is about to kill."""
        for thread in self._threads:
            thread.join(timeout=5)

    def _kill(self, step: str) -> None:
        tracker = self._context.statusTracker()
        before = set(tracker.getActiveStageIds())
        for _ in range(6000):
            jobs = [tracker.getJobInfo(job) for job in tracker.getActiveJobsIds()]
            last = {max(job.stageIds) for job in jobs if job is not None} - before
            active = [info for each in last if (info := tracker.getStageInfo(each)) is not None and info.numActiveTasks]
            if active:
                time.sleep(SETTLE)
                victims = executors(self._context.applicationId)
                if victims:
                    os.kill(victims[len(self.killed) % len(victims)], signal.SIGKILL)
                    self.killed.append(step)
                return
            time.sleep(0.02)


def executors(application: str) -> list[int]:
    """The processes of this application's executors."""
    names = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if any(b"CoarseGrainedExecutorBackend" in word for word in words) and application.encode() in words:
            names.append(int(path.parent.name))
    return sorted(names)


@contextmanager
def session(folder: Path, *, messages: int, short: bool = False) -> Iterator[SparkSession]:
    """Spark with two executors in JVMs of their own, each with memory for so many ``messages`` in one part; for
    ``short`` work these compile no more than they must."""
    java = " ".join(SHORT_LIVED if short else ())
    memory = max(LEAST_MEMORY, messages // MESSAGES_A_MB)
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "PYTHONWARNINGS": "ignore"}
    os.environ["SPARK_WORKER_DIR"] = str(folder / "work")
    builder = SparkSession.builder.master(EXECUTORS.format(memory=memory)).config(
        "spark.local.dir", str(folder / "local")
    )
    for name, value in (
        ("spark.driver.extraJavaOptions", java), ("spark.executor.extraJavaOptions", java),
        ("spark.ui.enabled", "false"), ("spark.ui.showConsoleProgress", "false"), ("spark.log.level", "OFF"),
        ("spark.task.maxFailures", "10"), ("spark.deploy.maxExecutorRetries", "1000"),
        ("spark.stage.maxConsecutiveAttempts", "20"), ("spark.executor.memory", f"{memory}m"),
        ("spark.executorEnv.OMP_NUM_THREADS", "1"), ("spark.driver.memory", "2g"),
        ("spark.driver.maxResultSize", "4g"), ("spark.sql.shuffle.partitions", "4"),
    ):  # fmt: skip
        builder = builder.config(name, value)
    opened = builder.getOrCreate()
    try:
        yield opened
    finally:
        opened.stop()


def equal(arguments: argparse.Namespace) -> bool:
    """Every set, in every number of parts, with an executor killed in each step."""
    same = True
    few = arguments.messages < SHORT
    with (
        tempfile.TemporaryDirectory(prefix="undersong-spark-") as name,
        session(Path(name), messages=arguments.messages, short=few) as opened,
    ):
        for chosen in arguments.sets:
            prepare: Callable[[argparse.Namespace], Prepared] = globals()[chosen]
            prepared = prepare(arguments)
            path = str(Path(name) / f"{chosen}.parquet")
            pq.write_table(prepared.table, path, row_group_size=5_000)
            for parts in arguments.parts:
                began = time.monotonic()
                steps = [step for step in prepared.steps if arguments.kill is None or step in arguments.kill]
                killer = ExecutorKiller(opened, steps)
                result = prepared.run(opened.read.parquet(path), parts, killer.watch)
                killer.join()
                run = as_bytes(rows_in(result.rows.toArrow().to_batches()), result.findings, result.outcomes)
                result.close()
                verdict = compared(prepared.one, run)
                same &= not verdict and killer.killed == steps
                print(
                    f"{chosen}: {prepared.size:,} messages, {len(run.findings)} findings, {parts} parts, executors "
                    f"killed in {', '.join(killer.killed) or 'no step'}: {verdict or 'equal'} "
                    f"({time.monotonic() - began:.0f} s)",
                    flush=True,
                )
    return same


class Prepared(NamedTuple):
    """A set: its table, how Spark runs it, the steps of that, and what one process gave."""

    table: pa.Table
    size: int
    steps: tuple[str, ...]
    run: Callable[[Any, int, Callable[[str], object]], spark.SparkResult]
    one: Run


def talks(_arguments: argparse.Namespace) -> Prepared:
    """The talks of our own benchmark and the demo: people, agents and coding sessions."""
    paths = [ROOT / "bench" / "talks" / name / "messages.jsonl" for name in ("dev", "test")]
    return of_conversations([*paths, ROOT / "demo" / "network.jsonl", ROOT / "demo" / "conversations"])


def generated(arguments: argparse.Namespace) -> Prepared:
    """A corpus of any size, with sequences that a rule over signals finds."""
    with tempfile.TemporaryDirectory(prefix="undersong-spark-") as name:
        path = Path(name) / "corpus.jsonl"
        with path.open("w", encoding="utf-8") as lines:
            for message in generated_messages(arguments.messages, max(20, arguments.messages // PER_AGENT), 1):
                lines.write(json.dumps(message) + "\n")
        return of_conversations([path])


def of_conversations(paths: list[Path]) -> Prepared:
    """The audit of some files."""
    conversations = [each for each in read(paths) if isinstance(each, Conversation)]
    options = Options(rules=(*load_rules(), *bench_rules()), effort=ResamplingConfig(draws=99, replicas=10))
    case, rows = audit(conversations, options=options)

    def run(frame: Any, parts: int, watch: Callable[[str], object]) -> spark.SparkResult:
        return spark.audit(frame, options, parts=parts, watch=watch)

    one = as_bytes(rows, case.findings, case.outcomes)
    table = pa.Table.from_batches(message_batches(conversations))
    return Prepared(table, case.messages, ("scan", "score", "detect", "weigh"), run, one)


def bench_rules() -> tuple[PatternRule, ...]:
    """The rule of this benchmark."""
    with tempfile.TemporaryDirectory(prefix="undersong-spark-") as name:
        path = Path(name) / "praise_then_price.yaml"
        path.write_text(RULE, encoding="utf-8")
        return load_rules([path])


def planted(arguments: argparse.Namespace) -> Prepared:
    """The planted sets: scored rows with indicators, of many worlds side by side."""
    rows = planted_rows(arguments.data, arguments.worlds)
    rules, effort = load_rules(), ResamplingConfig(draws=99, replicas=10)
    search = RowSearch(rows)
    detection = search.detect(rules)
    weighed = estimate_significance(detection.findings, detection.outcomes, search, rules, effort)
    findings = with_confidence(weighed.findings, rows, rules)

    def run(frame: Any, parts: int, watch: Callable[[str], object]) -> spark.SparkResult:
        return spark.detect(frame, Options(effort=effort), parts=parts, watch=watch)

    one = as_bytes(rows, findings, detection.outcomes)
    return Prepared(table_of(rows), len(rows), ("time", "detect", "weigh"), run, one)


def planted_rows(data: Path, worlds: int | None) -> list[Row]:
    """The rows of some worlds of each set."""
    folders = sorted(path for path in data.iterdir() if (path / "blind.jsonl.gz").exists())
    return [
        named(row, f"{folder.name}/")
        for folder in folders
        for world in islice(_lines(folder / "blind.jsonl.gz"), worlds)
        for row in rows_of(world)
    ]


def named(row: Row, prefix: str) -> Row:
    """The row under other names."""
    target = None if row.target is None else prefix + row.target
    return msgspec.structs.replace(row, agent=prefix + row.agent, conversation=prefix + row.conversation, target=target)


def table_of(rows: Iterable[Row]) -> pa.Table:
    """Rows as a table of ROWS."""
    return pa.Table.from_batches(row_batches(rows)).drop_columns(
        ["summary", "event_time", "profile", "claims", "beside"]
    )


def as_bytes(rows: Iterable[Row], findings: Iterable[Finding], outcomes: tuple[Any, ...]) -> Run:
    """Rows by conversation and place, without their texts as ``audit`` gives them, and findings in their order."""
    ordered = sorted(rows, key=lambda row: (row.conversation, row.position, row.id))
    plain = [encode(msgspec.structs.replace(row, text=None, hits=())) for row in ordered]
    return Run(plain, [encode(finding) for finding in findings], outcomes, [])


def compared(one: Run, other: Run) -> str:
    """What differs, in words; nothing where every byte is the same."""
    for name in ("rows", "findings"):
        left, right = getattr(one, name), getattr(other, name)
        if len(left) != len(right):
            return f"{len(right)} {name} instead of {len(left)}"
        differing = sum(a != b for a, b in zip(left, right, strict=True))
        if differing:
            return f"{differing} of {len(left)} {name} differ"
    return "" if one.outcomes == other.outcomes else "the outcomes differ"


def growth(arguments: argparse.Namespace) -> bool:
    """Rows a second of detection, one process and two executors."""
    options, rules = Options(effort=None), load_rules()
    base = planted_rows(arguments.data, arguments.worlds)
    with tempfile.TemporaryDirectory(prefix="undersong-spark-") as name, session(Path(name), messages=SHORT) as opened:
        warm = str(Path(name) / "warm.parquet")
        pq.write_table(table_of(base[:200]), warm)
        spark.detect(opened.read.parquet(warm), options, parts=2).close()
        for size in arguments.rows:
            path = str(Path(name) / f"{size}.parquet")
            write_copies(base, size, path)
            began = time.monotonic()
            result = spark.detect(opened.read.parquet(path), options, parts=arguments.parts)
            seconds = time.monotonic() - began
            result.close()
            began, cpu = time.monotonic(), time.process_time()
            rows = list(rows_in(pq.ParquetFile(path).iter_batches(10_000)))
            detection = RowSearch(rows).detect(rules)
            findings = with_confidence(detection.findings, rows, rules)
            alone, used = time.monotonic() - began, time.process_time() - cpu
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
            same = [encode(each) for each in findings] == [encode(each) for each in result.findings]
            print(
                f"{size:,} rows: two executors {size / seconds:,.0f} rows/s ({seconds:.0f} s), one process "
                f"{size / alone:,.0f} rows/s ({alone:.0f} s, {used:.0f} s of CPU, {memory:.1f} GiB at most), "
                f"{len(findings):,} findings, {'equal' if same else 'DIFFERENT'}",
                flush=True,
            )
            del rows, detection, findings
    return True


def write_copies(base: Sequence[Row], size: int, path: str) -> None:
    """So many rows, copies of worlds under other names, a thousand at a time."""
    writer = None
    for some in _copies(base, size):
        table = table_of(some)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def _copies(base: Sequence[Row], size: int) -> Iterator[list[Row]]:
    left = size
    for number in count():
        if left <= 0:
            return
        yield [named(row, f"{number}/") for row in base[:left]]
        left -= len(base)


def skew(arguments: argparse.Namespace) -> bool:
    """The fullest partition where half of all belongs to one agent, or one conversation."""
    base = planted_rows(arguments.data, arguments.worlds)
    rows = [row for some in _copies(base, arguments.rows) for row in some]
    half = [msgspec.structs.replace(row, agent="busy") if place % 2 else row for place, row in enumerate(rows)]
    with tempfile.TemporaryDirectory(prefix="undersong-spark-") as name, session(Path(name), messages=SHORT) as opened:
        path = str(Path(name) / "skewed.parquet")
        pq.write_table(table_of(half), path)
        frame, parts = opened.read.parquet(path), arguments.parts
        placed = spark._by_agent(frame.withColumn("beside", sql.lit(None).cast("string")), parts)
        for title, layout in (("by hash", frame.repartition(parts, "agent")), ("placed", placed)):
            sizes = sorted(row["count"] for row in layout.groupBy(sql.spark_partition_id()).count().collect())
            print(f"{len(half):,} rows, half of one agent, {parts} parts {title}: {sizes}", flush=True)
        began = time.monotonic()
        result = spark.detect(frame, Options(effort=None), parts=parts)
        print(f"  detected in {time.monotonic() - began:.0f} s, {len(result.findings):,} findings", flush=True)
        result.close()
        long = [
            Conversation(id=f"c{n}", source_format="bench", messages=tuple(_said(f"c{n}", size)))
            for n, size in enumerate([arguments.messages // 2, *[50] * (arguments.messages // 100)])
        ]
        pq.write_table(pa.Table.from_batches(message_batches(long)), path)
        began = time.monotonic()
        audited = spark.audit(opened.read.parquet(path), Options(effort=None), parts=parts)
        print(
            f"{arguments.messages:,} messages, half of one conversation: audited in {time.monotonic() - began:.0f} s, "
            f"{audited.corpus.states['scored']:,} scored",
            flush=True,
        )
        audited.close()
    return True


def _said(conversation: str, size: int) -> Iterator[Message]:
    for place, message in enumerate(generated_messages(size, 10, 1)):
        names = {"conversation": conversation, "author": message["agent"], "agent": message["agent"]}
        yield Message(id=f"m{place}", position=place, role="agent", text=message["text"], **names)


def main() -> None:
    """Run one of the three; exit code 1 where something is not equal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("equal", "growth", "skew"))
    parser.add_argument("--sets", nargs="+", default=["talks", "generated", "planted"])
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--worlds", type=int, help="of each planted set; default: all")
    parser.add_argument("--parts", type=int, nargs="+", default=[1, 3, 17])
    parser.add_argument("--kill", nargs="*", metavar="STEP", help="steps to kill an executor in; default: each")
    data = os.environ.get("UNDERSONG_PLANTED")
    parser.add_argument("--data", type=Path, default=data and Path(data), help="folder of planted sets")
    arguments = parser.parse_args()
    if arguments.what != "equal":
        arguments.parts = arguments.parts[0] if arguments.parts != [1, 3, 17] else 8
    if arguments.what == "skew":
        arguments.rows = arguments.rows[0]
    sys.exit(not {"equal": equal, "growth": growth, "skew": skew}[arguments.what](arguments))


if __name__ == "__main__":
    main()
