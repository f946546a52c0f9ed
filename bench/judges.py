"""LLM judges: throughput against a server of fixed speed, memory, kills; and quality where a key is present.

python bench/judges.py                     throughput at 16 and 64, a server that takes 200 ms, beside bare sockets
python bench/judges.py --memory 20000      memory over so many calls
python bench/judges.py --kills 40          kill -9 during a run, then the same command again (--copies: as in kill.py)
python bench/judges.py --faults            a table of kinds of faults: state, requests, cost, and what is kept
python bench/judges.py --judge NAME --data DIR   the development sets through a real judge, as bench/offline.py prints
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import numpy as np
from killable import Command, run_here

from undersong import cli
from undersong.errors import JudgeError
from undersong.judges.ledger import SQLiteLedger
from undersong.judges.limits import RunLimits
from undersong.judges.protocol import Judge, Question, open_judge
from undersong.models import TRAITS, Message, Route, Scan

DELAY = 0.2
TURNS = 3  # of bare sockets and judge, one after the other
SERVER = Path(__file__).with_name("judge_server.py")
WORDS = "the report was late again and nobody had read the log so please send me the numbers before we go"


@contextmanager
def server(*arguments: str) -> Iterator[int]:
    """A judge server in a process of its own; its port."""
    command = [sys.executable, str(SERVER), *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())
        assert process.stdin is not None
        process.stdin.close()


def question(number: int, text: str = "") -> Question:
    """A focused question about a message of some hundred characters."""
    dice = random.Random(number)
    text = text or f"{number} {' '.join(dice.choices(WORDS.split(), k=80))}"
    message = Message(
        id=f"m{number}", conversation="c", position=number, author="a", agent="a", role="agent", text=text
    )
    route = Route(message_id=message.id, tier="focused", tier_before="focused", depth="standard", width="message")
    return Question(message=message, scan=Scan(message_id=message.id), route=route)


@contextmanager
def asked_over(*arguments: str, **terms: Any) -> Iterator[Judge]:
    """A judge over a server of its own, with a ledger in a file."""
    with (
        server(*arguments) as port,
        tempfile.TemporaryDirectory() as folder,
        SQLiteLedger(Path(folder) / "store.db") as ledger,
    ):
        yield open_judge(f"openai:m@http://127.0.0.1:{port}/v1", RunLimits(ledger=ledger, **terms))


def throughput(concurrency: int, seconds: float) -> None:
    """Questions a second through the ledger, beside bare sockets in turn, and what 200 ms each let through at most."""
    count = int(concurrency / DELAY * seconds)
    bare, judged, states = Spent(), Spent(), Counter[str]()
    with asked_over("--delay", str(DELAY), concurrency=concurrency) as judge:
        judge.evaluate([question(-1)])  # libraries loaded
        for turn in range(TURNS):
            questions = [question(turn * count + number) for number in range(count)]
            bodies = [body_of(judge, each) for each in questions[: count // 2]]
            with bare.counting(len(bodies)):
                asyncio.run(send_all(address_of(judge), bodies, concurrency))
            with judged.counting(count):
                states.update(each.state for each in judge.evaluate(questions))
    most = concurrency / DELAY
    print(
        f"concurrency {concurrency}: {judged.rate:.1f} a second of {most:.0f} possible = {judged.rate / most:.1%}, "
        f"bare sockets {bare.rate / most:.1%}, judged / bare {judged.rate / bare.rate:.1%}; "
        f"{judged.ms_per_question:.2f} ms CPU each, bare {bare.ms_per_question:.2f}; {dict(states)}"
    )


class Spent:
    """Seconds of clock and CPU over so many questions."""

    def __init__(self) -> None:
        self._count, self._wall, self._cpu = 0, 0.0, 0.0

    @contextmanager
    def counting(self, count: int) -> Iterator[None]:
        """Count what happens inside as so many questions."""
        wall, cpu = time.monotonic(), time.process_time()
        yield
        self._wall += time.monotonic() - wall
        self._cpu += time.process_time() - cpu
        self._count += count

    @property
    def rate(self) -> float:
        """Questions a second."""
        return self._count / self._wall

    @property
    def ms_per_question(self) -> float:
        """Milliseconds of CPU a question."""
        return 1000 * self._cpu / self._count


def address_of(judge: Judge) -> tuple[str, int]:
    """Host and port of a judge over a server of ours."""
    address = urlsplit(judge.name.partition("@")[2])
    return str(address.hostname), int(address.port or 80)


def body_of(judge: Judge, asked_question: Question) -> bytes:
    """The request that a judge would send."""
    from undersong.judges.llm.prompts import render_question

    sent = judge.keyed_request(asked_question, render_question(asked_question)).request  # type: ignore[attr-defined]
    messages = [{"role": "system", "content": sent.system}, {"role": "user", "content": sent.user}]
    return json.dumps({"model": "m", "messages": messages, "response_format": sent.schema}).encode()


async def send_all(address: tuple[str, int], bodies: Sequence[bytes], concurrency: int) -> None:
    """Send them over bare sockets and read the answers, without a look at them: the floor of any client."""
    waiting = iter(bodies)

    async def work() -> None:
        reader, writer = await asyncio.open_connection(*address)
        for body in waiting:
            head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: here\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
            lines = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            await reader.readexactly(int(lines.partition("content-length: ")[2].partition("\r")[0]))
        writer.close()

    await asyncio.gather(*(work() for _ in range(concurrency)))


def memory(calls: int) -> None:
    """The process's memory after each tenth of the calls, in groups as a run makes them."""
    group, sizes = 500, []
    with asked_over() as judge:
        for first in range(0, calls, group):
            judge.evaluate([question(number) for number in range(first, min(calls, first + group))])
            sizes.append(resident())
    tenths = " ".join(f"{size:.0f}" for size in sizes[:: max(1, len(sizes) // 10)])
    print(f"{calls} calls, MiB after each tenth: {tenths}, at the end {sizes[-1]:.0f}")
    half = sizes[len(sizes) // 2]
    print(f"growth over the second half: {sizes[-1] - half:+.1f} MiB ({sizes[-1] / half - 1:+.1%})")


def resident() -> float:
    """MiB that this process holds now."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return pages * resource.getpagesize() / 2**20


def corpus(path: Path, messages: int) -> None:
    """A conversation in which every third message is flagged."""
    with path.open("w") as lines:
        for n in range(messages):
            text = f"You owe me this after everything I did, {n}." if n % 3 == 0 else question(n).message.text
            row = {"id": f"m{n}", "conversation": f"c{n // 40}", "author": f"a{n % 4}", "role": "agent", "text": text,
                   "time": f"2026-03-{1 + n // 600:02d}T{n // 60 % 10:02d}:{n % 60:02d}:00Z"}  # fmt: skip
            lines.write(json.dumps(row) + "\n")


def words(folder: Path, talk: Path, port: int) -> list[str]:
    """The command that audits by the server's judge."""
    spec = f"openai:m@http://127.0.0.1:{port}/v1"
    return ["-m", "undersong", "audit", str(talk), "--out", str(folder / "report"), "--judge", spec,
            "--all", "--no-chance", "--concurrency", "16"]  # fmt: skip


def report(folder: Path) -> dict[str, bytes]:
    """Name → bytes of the report, without the times of the run."""
    return {path.name: path.read_bytes() for path in (folder / "report").iterdir() if path.name != "run.json"}


def kills(count: int, messages: int, seed: int, copies: bool) -> int:
    """How many of so many killed runs lose or repeat more than they may."""
    dice, wrong, repeated, killed = random.Random(seed), 0, 0, 0
    with tempfile.TemporaryDirectory() as name:
        base, talk = Path(name), Path(name) / "talk.jsonl"
        corpus(talk, messages)
        # one port for all, since the address is part of the judge's name
        with server("--delay", "0.02", "--log", str(base / "log")) as port:
            for name in ("warm", "undisturbed"):  # the first run fills the server's cache, which the usage shows
                (base / name).mkdir()
            main = cli.main if copies else None
            if copies:
                run_here(words(base / "warm", talk, port), base)
            else:
                Command(words(base / "warm", talk, port)).finish()
            began = time.monotonic()
            Command(words(base / "undisturbed", talk, port), main).finish()
            seconds, wanted = time.monotonic() - began, report(base / "undisturbed")
            for number in range(count):
                folder = base / f"run{number}"
                folder.mkdir()
                before = len((base / "log").read_text().splitlines())
                command = Command(words(folder, talk, port), main)
                time.sleep(dice.uniform(0.2, 1.0) * seconds)
                killed += command.poll() is None
                command.kill_group()
                command.wait()
                Command(words(folder, talk, port), main).finish()
                delivered = Counter((base / "log").read_text().splitlines()[before:])
                again = [key for key, times in delivered.items() if times > 1]
                repeated += len(again)
                bad = report(folder) != wanted or len(delivered) != messages or max(delivered.values()) > 2
                wrong += bad
                if bad:
                    print(f"kill {number}: {len(delivered)} answers, most often {max(delivered.values())}")
    print(f"{count} runs of {messages} messages ({seconds:.1f} s undisturbed), {killed} killed while running")
    print(f"{count - wrong} reports equal to the undisturbed one, {wrong} not")
    print(f"{repeated} answers of {count * messages} asked once more, none oftener")
    return wrong or not killed


def quality(judge: Judge, data: Path, seed: int, sample: int | None) -> None:
    """The labelled posts through a judge: the figures of bench/offline.py."""
    from undersong.training.datasets import read_labels
    from undersong.training.evaluation import measure
    from undersong.training.model_card import table, thresholds, within

    rows = read_labels(data / "moltbook_traits.jsonl.gz")
    rows = rows if sample is None else random.Random(seed).sample(rows, sample)
    evaluations = judge.evaluate([question(number, row.text) for number, row in enumerate(rows)])
    read = [(row, each.traits) for row, each in zip(rows, evaluations, strict=True) if each.traits is not None]
    scores = np.array([[traits[trait] for trait in TRAITS] for _, traits in read])
    figures = measure([row for row, _ in read], scores, seed)
    print(
        f"{judge.name}: {len(read)} of {len(rows)} messages scored; {dict(Counter(each.state for each in evaluations))}"
    )
    print(f"Spearman with the labels [95 % over authors]\n\n{table(figures)}\n")
    print(f"{within(figures)}\n\n{thresholds(figures)}\n")
    usage = msgspec.structs.asdict(judge.budget.usage)  # type: ignore[attr-defined]
    print(f"tokens and cost: {usage}; cached share {usage['cached'] / max(usage['input'], 1):.0%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=6.0, help="of each of three turns at each concurrency")
    parser.add_argument("--memory", type=int, metavar="CALLS")
    parser.add_argument("--kills", type=int)
    parser.add_argument("--copies", action="store_true")
    parser.add_argument("--faults", action="store_true")
    parser.add_argument("--provider", default="openai", choices=("openai", "anthropic"), help="of the faults")
    parser.add_argument("--messages", type=int, default=400, help="of a run that is killed")
    parser.add_argument("--judge")
    parser.add_argument("--sample", type=int, help="so many labelled messages instead of all")
    parser.add_argument("--data", type=Path, default=os.environ.get("UNDERSONG_DATA"))
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.judge:
        try:
            judge = open_judge(options.judge, RunLimits())
            if options.data is None:
                sys.exit("give --data DIR or set UNDERSONG_DATA")
            quality(judge, Path(options.data), options.seed, options.sample)
        except JudgeError as error:
            print(f"not measured: {error}")
    elif options.faults:
        from judge_faults import table

        print(table(options.provider))
    elif options.memory:
        memory(options.memory)
    elif options.kills:
        sys.exit(kills(options.kills, options.messages, options.seed, options.copies))
    else:
        for concurrency in (16, 64):
            throughput(concurrency, options.seconds)


if __name__ == "__main__":
    main()
