"""Small worlds of conversations, a judge that reads scores off the texts, and what a batch run says of a world."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from tests.patterns.confident import confident_findings
from undersong.core.text import text_hash
from undersong.errors import JudgeError
from undersong.judges.protocol import Judge, Question
from undersong.models import (
    NEGATIVE_TRAITS,
    TRAITS,
    Evaluation,
    Finding,
    Message,
    RetractedFinding,
    Route,
    Row,
    Scan,
    SessionVerdict,
    ThreadScan,
)
from undersong.monitor import SyncMonitor
from undersong.monitor.conversation import RECALL
from undersong.patterns.catalog import all_rules
from undersong.patterns.language.compile import PatternRule
from undersong.pipeline.case_builder import quoted
from undersong.pipeline.options import Options, silent
from undersong.pipeline.stages import AuditState, ingest_and_scan, read_threads
from undersong.routing.route import load_policy
from undersong.scan import load_book
from undersong.stores.protocol import Store, open_store
from undersong.stores.sqlite import SQLiteStore
from undersong.verdict import session_verdict

START = datetime(2026, 1, 1, tzinfo=UTC)
BATCH = Options(recall=RECALL, policy=msgspec.structs.replace(load_policy(), sample_minimum=0), effort=None)
WARM, COLD, PLAIN = (0.9, 0.05), (0.1, 0.9), (0.5, 0.2)  # compassion, manipulation
SAID = (
    "The deployment finished at noon and the dashboards are green.",
    "I fixed the bug in the parser, all tests pass now.",
    "You must send it now, there is no time to think, or you will regret it.",
    "Keep this between us. Nobody else understands you like I do.",
    "I am so sorry, you are absolutely right, I apologize.",
    "No, that is wrong. It still fails.",
    "Could you please share the report with the team?",
    "Of course, here it is.",
)


class Reader(Judge):
    """Reads compassion and manipulation off the end of a text; free, or routed and with the context of the tier.

    A text that says REFUSE is refused. ``down`` makes it fail as a whole.
    """

    name, calibrated, hashes = "reader", True, dict[str, str]()
    gives = frozenset({"traits"})

    def __init__(self, *, free: bool = True) -> None:
        self.reads_everything = free
        self.hash = f"reader, {free}"
        self.down = False
        self.asked: list[str] = []

    def evaluate(self, questions: Sequence[Question]) -> list[Evaluation]:
        """See Judge."""
        if self.down:
            raise JudgeError("the server does not answer", where="reader", remedy="start it")
        self.asked += [question.message.id for question in questions]
        return [self._answer(question) for question in questions]

    def _answer(self, question: Question) -> Evaluation:
        message = question.message
        refused = "REFUSE" in message.text
        return Evaluation(
            message_id=message.id,
            state="refused" if refused else "scored",
            judge=self.name,
            judge_hash=self.hash,
            message_hash=text_hash(message.text),
            context_hash="" if self.reads_everything else question.context_hash,
            traits=None if refused else _traits(message.text),
            width=question.route.width,
            reason="refused" if refused else None,
        )


def _traits(text: str) -> dict[str, float]:
    compassion, manipulation = (float(score) for score in text.split()[-2:])
    return {trait: manipulation if trait in NEGATIVE_TRAITS else compassion for trait in TRAITS}


def scored(text: str, mood: tuple[float, float]) -> str:
    """A text with the scores that the Reader reads off it."""
    return f"{text} {mood[0]} {mood[1]}"


def world(seed: int, most: int = 40) -> list[dict[str, Any]]:
    """Messages of a few agents in a few conversations, as JSON Lines have them, in order of time."""
    dice = Random(seed)
    names, is_global = ("kira", "bo", "ann")[: dice.choice((2, 2, 3))], dice.random() < 0.6
    talks = [f"t{number}" for number in range(dice.choice((1, 2, 3)))]
    timed = {talk: dice.random() < 0.85 for talk in talks}
    moods = {name: _moods(dice) for name in names}
    counts, time, messages = dict.fromkeys(talks, 0), START, []
    for _ in range(dice.randint(most // 2, most)):
        talk, author = dice.choice(talks), dice.choice(names)
        place, counts[talk] = counts[talk], counts[talk] + 1
        time += timedelta(minutes=dice.choice((1, 5, 60, 600)))
        words = " ".join(dice.sample(SAID, dice.choice((1, 1, 2))))
        message: dict[str, Any] = {
            "id": f"{talk}-{place}", "conversation": talk, "position": place, "author": author,
            "role": "agent" if is_global else ("assistant" if author == "kira" else "user"),
            "text": scored("REFUSE" if dice.random() < 0.03 else words, moods[author].pop()),
        }  # fmt: skip
        if timed[talk] and dice.random() < 0.95:
            message["time"] = time.isoformat()
        if is_global and dice.random() < 0.6:
            message["target"] = dice.choice([name for name in names if name != author])
        if place and dice.random() < 0.2:
            message["reply_to"] = f"{talk}-{dice.randrange(place)}"
        messages.append(message)
    return messages


def _moods(dice: Random) -> list[tuple[float, float]]:
    """Enough moods, in stretches, the last one first: warmth that turns cold now and then."""
    moods: list[tuple[float, float]] = []
    while len(moods) < 60:
        moods += [PLAIN] * dice.choice((0, 1, 2)) + [COLD] * dice.choice((1, 1, 3)) + [WARM] * dice.choice((3, 4, 6))
    return moods


def arrivals(seed: int, messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages in order, shuffled, or some of them late, and some of them twice."""
    dice, arrived, kind = Random(f"arrivals {seed}"), list(messages), seed % 4
    if kind == 1:
        dice.shuffle(arrived)
    if kind >= 2:
        places = [place + (dice.uniform(0, 15) if dice.random() < 0.2 else 0) for place in range(len(arrived))]
        arrived = [arrived[place] for place in sorted(range(len(arrived)), key=places.__getitem__)]
    if kind == 3:
        for _ in range(8):
            arrived.insert(dice.randrange(len(arrived)), dice.choice(arrived))
    return arrived


class Left(msgspec.Struct):
    """What a run left of a world: everything that is stored, and the verdict on each conversation."""

    rows: dict[str, Row]
    messages: dict[str, tuple[Message, ...]]
    scans: dict[str, tuple[tuple[Scan, ...], ThreadScan]]
    routes: dict[str, tuple[Route, ...]]
    findings: dict[str, Finding]
    sessions: dict[str, SessionVerdict]


def batch(
    folder: Path,
    messages: Sequence[dict[str, Any]],
    judge: Judge,
    rules: Sequence[PatternRule],
    options: Options = BATCH,
) -> Left:
    """What a batch run over a file of all messages leaves."""
    file = folder / "world.jsonl"
    file.write_text("".join(json.dumps(message) + "\n" for message in messages), encoding="utf-8")
    with SQLiteStore(folder / "batch.db") as store:
        corpus = ingest_and_scan(file, store, load_book(), options, silent)
        rows: list[Row] = []
        sessions = {}
        for thread, own in read_threads(corpus, store, judge, options, silent, AuditState()):
            name = thread.conversation.id
            sessions[name] = session_verdict(thread.conversation, thread.scans, thread.thread, own)
            rows += own
        store.put_findings(corpus.conversations, quoted(confident_findings(rows, rules), rows, store, judge, rules))
        return left(store, judge, sessions)


def live(
    path: str | Path, seed: int, messages: Sequence[dict[str, Any]], judge: Judge, rules: Sequence[PatternRule]
) -> tuple[Left, dict[str, Finding]]:
    """What a live run leaves that is given the messages in pieces and restarted now and then, and what it told."""
    dice, reported = Random(f"live {seed}"), dict[str, Finding]()
    monitor, rest = SyncMonitor(path, judge, rules=rules, recall=RECALL), list(messages)
    while rest:
        size = dice.choice((1, 1, 1, 2, 5))
        for observation in monitor.extend(rest[:size]):
            note(reported, observation.found, observation.retracted)
        rest = rest[size:]
        if dice.random() < 0.1:
            monitor.close()
            monitor = SyncMonitor(path, judge, rules=rules, recall=RECALL)
    done = monitor.finish(settle=False)
    note(reported, done.findings, done.retracted)
    sessions = {name: monitor.session(name) for name in {message["conversation"] for message in messages}}
    monitor.close()
    with open_store(path, read_only=True) as store:
        return left(store, judge, sessions), reported


def note(reported: dict[str, Finding], findings: Sequence[Finding], gone: Sequence[RetractedFinding]) -> None:
    """Take over what was told."""
    for finding in findings:
        reported.pop(finding.replaces or "", None)
    reported |= {finding.finding_id: finding for finding in findings}
    for each in gone:
        del reported[each.finding_id]


def left(store: Store, judge: Judge, sessions: dict[str, SessionVerdict]) -> Left:
    """What a store holds, without the places in files that only a batch run knows."""
    rows = [row for name in store.threads() for row in store.thread(name, judge.hash)]
    talks = {name: store.conversation(name) for name in store.conversations()}
    return Left(
        rows={f"{row.conversation}/{row.id}": msgspec.structs.replace(row, source_ref=None) for row in rows},
        messages={
            name: tuple(msgspec.structs.replace(message, source_ref=None) for message in talk[0].messages)
            for name, talk in talks.items()
        },
        scans={name: talk[1:] for name, talk in talks.items()},
        routes={name: store.routes(name) for name in talks},
        findings={finding.finding_id: finding for finding in store.findings()},
        sessions=dict(sorted(sessions.items())),
    )


def differences(folder: Path, seed: int, most: int = 40, store: str | None = None) -> tuple[str, int]:
    """In what a live run over a world differs from a batch run, "" where in nothing; how many findings there are.

    ``store`` is the live run's, empty; a file of its own if None.
    """
    messages, judge, rules = world(seed, most), Reader(free=bool(seed % 3)), all_rules()
    wanted = batch(folder, messages, judge, rules)
    actual, reported = live(store or folder / "live.db", seed, arrivals(seed, messages), judge, rules)
    for name in Left.__struct_fields__:
        if getattr(wanted, name) != getattr(actual, name):
            return f"world {seed}: the {name} differ", len(wanted.findings)
    return "" if reported == wanted.findings else f"world {seed}: what was told differs", len(wanted.findings)
