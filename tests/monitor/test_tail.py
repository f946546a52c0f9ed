"""A file of messages that is watched leaves in the store what an audit of it leaves, however it grew."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

import msgspec
import pytest

from tests.monitor import worlds
from tests.patterns.confident import confident_findings
from undersong.errors import UsageError
from undersong.formats import format_by_name
from undersong.judges.protocol import Judge, open_judge
from undersong.models import Conversation, Finding, Message, Problem, Row
from undersong.monitor import SyncMonitor
from undersong.monitor.watch import DetectedInput, detect_input, watch_messages
from undersong.patterns.catalog import all_rules
from undersong.patterns.language.compile import PatternRule
from undersong.pipeline.case_builder import quoted
from undersong.pipeline.options import silent
from undersong.pipeline.stages import AuditState, ingest_and_scan, read_threads
from undersong.scan import load_book
from undersong.stores.erasure import forget
from undersong.stores.protocol import Store
from undersong.stores.sqlite import SQLiteStore
from undersong.verdict import session_verdict

SAMPLES = Path(__file__).parents[1] / "samples"
GROWING = (
    "claude-code/9f1c.jsonl",
    "codex/rollout-2026-02-02.jsonl",
    "jsonl/harbour.jsonl",
    "openai/chats.jsonl",
)


@pytest.fixture(scope="module")
def judge() -> Judge:
    return open_judge("offline")


def grown(data: bytes, dice: Random) -> Iterator[list[bytes]]:
    """The lines of a file in random pieces."""
    lines = data.split(b"\n")
    while lines:
        size = dice.choice((1, 1, 2, 7))
        yield lines[:size]
        lines = lines[size:]


def watched(
    file: Path, store: Path, judge: Judge, rules: tuple[PatternRule, ...], seed: int = 0, stops: int = 2
) -> tuple[dict[str, Finding], list[Problem]]:
    """What is told of a file that grows; the run is stopped some times and begins anew with the same lines."""
    dice, findings, problems = Random(seed), dict[str, Finding](), list[Problem]()
    data = file.read_bytes()
    ends = sorted(dice.sample(range(data.count(b"\n")), min(stops, data.count(b"\n"))))
    for stop in [*ends, None]:
        part = data if stop is None else b"\n".join(data.split(b"\n")[:stop])
        with SyncMonitor(store, judge, rules=rules, recall=worlds.RECALL) as monitor:
            detected = detect_input(grown(part, dice), file.name, messages=True)
            items = watch_messages(detected.lines, detected.form or format_by_name("jsonl"), file, file.name, monitor)
            for item in items:
                if isinstance(item, Problem):
                    problems.append(item)
                    continue
                assert all(findings.get(each.finding_id) != each for each in item.findings)  # nothing is told again
                worlds.note(findings, item.findings, item.retracted)
    return findings, problems


def audited(file: Path, store: Path, judge: Judge, rules: tuple[PatternRule, ...]) -> worlds.Left:
    """What a batch run over the file leaves."""
    with SQLiteStore(store) as opened:
        corpus = ingest_and_scan(file, opened, load_book(), worlds.BATCH, silent)
        rows: list[Row] = []
        sessions = {}
        for thread, own in read_threads(corpus, opened, judge, worlds.BATCH, silent, AuditState()):
            talk = thread.conversation
            sessions[talk.id] = session_verdict(talk, thread.scans, thread.thread, own)
            rows += own
        opened.put_findings(corpus.conversations, quoted(confident_findings(rows, rules), rows, opened, judge, rules))
        return left(opened, judge, sessions)


def left(store: Store, judge: Judge, sessions: dict[str, object]) -> worlds.Left:
    return worlds.left(store, judge, sessions)  # type: ignore[arg-type]


def compare(file: Path, folder: Path, judge: Judge, seed: int) -> int:
    """Fail where the watch of a file differs from its audit; how many findings there are."""
    rules = all_rules()
    wanted = audited(file, folder / f"batch{seed}.db", judge, rules)
    findings, _ = watched(file, folder / f"live{seed}.db", judge, rules, seed)
    with SyncMonitor(folder / f"live{seed}.db", judge, rules=rules, recall=worlds.RECALL) as monitor:
        sessions = {name: monitor.session(name) for name in wanted.messages}
    with SQLiteStore(folder / f"live{seed}.db", read_only=True) as live:
        live_state = left(live, judge, dict(sessions))
        heads = {name: head(live, name) for name in wanted.messages}
    with SQLiteStore(folder / f"batch{seed}.db", read_only=True) as batch:
        assert heads == {name: head(batch, name) for name in wanted.messages}
    for name in worlds.Left.__struct_fields__:
        assert getattr(live_state, name) == getattr(wanted, name), name
    assert findings == wanted.findings
    return len(wanted.findings)


def head(store: Store, name: str) -> Conversation:
    """A conversation with the places of its messages."""
    return store.conversation(name)[0]


@pytest.mark.parametrize("sample", GROWING)
def test_a_watched_file_of_any_live_format_leaves_what_an_audit_leaves(
    sample: str, tmp_path: Path, judge: Judge
) -> None:
    file = tmp_path / Path(sample).name
    file.write_bytes((SAMPLES / sample).read_bytes())
    compare(file, tmp_path, judge, len(sample))


@pytest.mark.parametrize("seed", range(6))
def test_so_do_lines_without_ids_places_or_conversations_and_repeated_ones(seed: int, tmp_path: Path) -> None:
    dice, lines = Random(f"lines {seed}"), []
    for message in worlds.arrivals(4 * seed + 3 * (seed % 2), worlds.world(seed, 30)):
        line = dict(message)
        for key in ("position", "conversation") if seed % 3 == 0 else ("position", "id") if seed % 3 == 1 else ():
            line.pop(key)
        lines.append(json.dumps(line))
        if dice.random() < 0.05:
            lines.append(json.dumps(line | {"text": worlds.scored("Another text.", worlds.COLD)}))
    file = tmp_path / "lines.jsonl"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    compare(file, tmp_path, worlds.Reader(free=bool(seed % 2)), seed)


def lines_of(*messages: dict[str, object]) -> list[bytes]:
    return [json.dumps({"conversation": "t"} | message).encode() for message in messages]


def make_line(number: int, text: str = "Hello.", **more: object) -> dict[str, object]:
    return {"id": f"m{number}", "author": "kira", "text": worlds.scored(text, worlds.WARM)} | more


def problems_and_ids(folder: Path, lines: list[bytes], judge: Judge) -> tuple[list[Problem], list[str]]:
    """The problems of some lines, and the ids of the messages in the store afterwards."""
    with SyncMonitor(folder / "u.db", judge) as monitor:
        items = list(watch_messages([lines], format_by_name("jsonl"), "-", "-", monitor))
    with SQLiteStore(folder / "u.db", read_only=True) as store:
        messages: tuple[Message, ...] = store.conversation("t")[0].messages if store.length("t") else ()
    return [each for each in items if isinstance(each, Problem)], [each.id for each in messages]


def test_a_bad_line_is_named_once_and_the_rest_goes_on(tmp_path: Path) -> None:
    problems, ids = problems_and_ids(
        tmp_path, [b"{]", *lines_of(make_line(0), {"author": "kira"}, make_line(1))], worlds.Reader()
    )
    assert [each.where for each in problems] == ["-:1", "-:3"]
    assert ids == ["m0", "m1"]


def test_a_conversation_that_was_forgotten_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    problems_and_ids(tmp_path, lines_of(make_line(0)), worlds.Reader())
    with SQLiteStore(tmp_path / "u.db") as store:
        forget(store, "t", worlds.START)
    problems, ids = problems_and_ids(
        tmp_path, lines_of(make_line(0), make_line(1), make_line(2, conversation="other")), worlds.Reader()
    )
    assert ["told to forget" in each.what for each in problems] == [True]
    with SQLiteStore(tmp_path / "u.db", read_only=True) as store:
        assert (ids, list(store.conversations())) == ([], ["other"])


def test_a_judge_that_fails_is_told_once_and_asked_again(tmp_path: Path) -> None:
    judge = worlds.Reader()
    judge.down = True

    def lines() -> Iterator[list[bytes]]:
        yield lines_of(make_line(0))
        yield lines_of(make_line(1))
        judge.down = False
        yield lines_of(make_line(2))

    with SyncMonitor(tmp_path / "u.db", judge) as monitor:
        items = list(watch_messages(lines(), format_by_name("jsonl"), "-", "-", monitor))
        assert [each.kind for each in items if isinstance(each, Problem)] == ["judge"]
        assert monitor.failure is None
        assert [row.state for row in monitor.rows("t")] == ["scored"] * 3


@pytest.mark.parametrize(
    ("line", "messages", "form"),
    [
        (b'{"id": "1", "agent": "a", "traits": null, "text": "x"}', False, None),
        (b'{"id": "1", "agent": "a", "state": "unread", "text": "x"}', False, None),
        (b'{"id": "1", "agent": "a", "state": "unread", "text": "x"}', True, "jsonl"),
        (b'{"id": "1", "agent": "a", "text": "x"}', False, "jsonl"),
        (b'{"role": "user", "content": "x"}', False, "openai"),
        (b'{"timestamp": "2026-01-01T00:00:00Z", "type": "session_meta", "payload": {}}', False, "codex"),
        (b"{]", False, None),
    ],
)
def test_the_first_line_says_what_a_file_holds(line: bytes, messages: bool, form: str | None) -> None:
    detected: DetectedInput = detect_input(iter([[b""], [line], [b""]]), "-", messages=messages)
    assert (detected.form.name if detected.form else None) == form
    assert list(detected.lines) == [[b""], [line], [b""]]


def test_lines_that_could_be_anything_are_told_once_while_more_are_waited_for() -> None:
    counts: list[int] = []
    line = b'{"role": "user", "content": "x"}'
    lines = iter([[b""], [b"Minutes of a walk", b"To buy: bread"], [b"and salt"], [line], [b""]])
    form = detect_input(lines, "-", unclear=counts.append).form
    assert form is not None
    assert form.name == "openai"  # lines that are no objects are passed over, and whoever reads them says so
    assert counts == [2]
    detect_input(iter([[line], [b""]]), "-", unclear=counts.append)
    assert counts == [2]


def test_plain_text_is_refused_with_a_remedy(tmp_path: Path) -> None:
    with SyncMonitor(tmp_path / "u.db", worlds.Reader()) as monitor, pytest.raises(UsageError, match="undersong audit"):
        list(watch_messages([[b"User: hi"]], format_by_name("text"), "-", "-", monitor))


def test_a_message_that_is_there_is_not_new_after_a_restart(tmp_path: Path) -> None:
    message = {
        "id": "1",
        "conversation": "t",
        "author": "a",
        "time": "2026-01-01T10:00:00+02:00",
        "text": make_line(0)["text"],
    }
    judge = worlds.Reader()
    with SyncMonitor(tmp_path / "u.db", judge) as monitor:
        first = monitor.observe(message)
    with SyncMonitor(tmp_path / "u.db", judge) as monitor:
        again = monitor.observe(message)
    assert (first.is_new, again.is_new) == (True, False)
    assert msgspec.structs.replace(again, is_new=True) == first
