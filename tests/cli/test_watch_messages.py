"""``undersong watch`` over messages: scored, kept, told once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.conftest import Undersong
from tests.monitor.worlds import COLD, PLAIN, START, WARM, Reader, scored
from undersong.judges.protocol import JUDGES, Judge
from undersong.stores.sqlite import SQLiteStore

RULE = ("--rule", "love_bombing_literal")
MOODS = [WARM] * 3 + [COLD]


def open_judge(_: str) -> Judge:
    """A judge like any other: this module opens it."""
    judge = Reader()
    judge.down = Path("down").exists()
    return judge


def line(place: int, mood: tuple[float, float], **more: object) -> str:
    time = START.replace(hour=place).isoformat()
    message = {"id": f"m{place}", "conversation": "t", "author": "kira", "role": "agent", "target": "bo", "time": time}
    return json.dumps(message | {"text": scored("Hello.", mood)} | more) + "\n"


@pytest.fixture
def messages(undersong: Undersong, monkeypatch: pytest.MonkeyPatch) -> Path:
    assert undersong  # its folder is the one we are in
    monkeypatch.setitem(JUDGES, "reader", __name__)
    path = Path("messages.jsonl")
    path.write_text("".join(line(place, mood) for place, mood in enumerate(MOODS)))
    return path


def printed_findings(out: str) -> list[object]:
    return [tuple(each.get("message_ids", ())) or each for each in map(json.loads, out.splitlines())]


def test_messages_are_kept_and_each_finding_is_told_once(undersong: Undersong, messages: Path) -> None:
    watch = ("watch", str(messages), "--no-follow", "--judge", "reader", "--store", "here.db", *RULE)
    first, again = undersong(*watch), undersong(*watch)
    assert (first.code, printed_findings(first.out)) == (0, [("m0", "m1", "m2", "m3")])
    assert json.loads(first.out)["quotes"][-1]["text"] == "Hello. 0.1 0.9"
    assert (again.code, again.out) == (0, "")
    assert "1 rule ran; messages, scores and findings are kept in here.db" in again.err
    with SQLiteStore(Path("here.db"), read_only=True) as store:
        assert store.counts()["messages"] == 4
        assert str(store.conversation("t")[0].messages[3].source_ref) == "messages.jsonl:4"


def test_a_late_line_takes_back_what_was_told_and_says_why(undersong: Undersong, messages: Path) -> None:
    watch = ("watch", str(messages), "--no-follow", "--judge", "reader", *RULE)
    (finding,) = map(json.loads, undersong(*watch).out.splitlines())
    with messages.open("a") as file:
        file.write(line(9, PLAIN, time=START.replace(hour=2, minute=30).isoformat()))
    (line_out,) = map(json.loads, undersong(*watch).out.splitlines())
    assert line_out["retracted"] == finding["finding_id"]
    assert line_out["reason"].startswith("messages that came late")


def test_a_finding_that_a_late_line_changes_keeps_its_id(undersong: Undersong, messages: Path) -> None:
    watch = ("watch", str(messages), "--no-follow", "--judge", "reader", *RULE)
    (finding,) = map(json.loads, undersong(*watch).out.splitlines())
    with messages.open("a") as file:
        file.write(line(9, COLD, time=START.replace(hour=2, minute=30).isoformat()))
    (again,) = map(json.loads, undersong(*watch).out.splitlines())
    assert (again["finding_id"], again["message_ids"]) == (finding["finding_id"], ["m0", "m1", "m2", "m9"])


def test_a_judge_that_fails_ends_with_its_code_and_is_asked_by_the_next_run(
    undersong: Undersong, messages: Path
) -> None:
    watch = ("watch", str(messages), "--no-follow", "--judge", "reader", *RULE)
    Path("down").touch()
    failed = undersong(*watch)
    assert (failed.code, failed.out, failed.err.count("the judge failed")) == (4, "", 1)
    Path("down").unlink()
    assert printed_findings(undersong(*watch).out) == [("m0", "m1", "m2", "m3")]


def test_without_a_judge_the_offline_one_scores_and_rules_that_cannot_speak_are_named(undersong: Undersong) -> None:
    ran = undersong("watch", "samples/memory_thread.json", "--no-follow")
    assert ran.code == 0, ran.err
    assert Path("undersong-report.db").is_file()
    assert "dependency_loop" in ran.err


def test_a_warning_is_told_apart_from_findings_and_once(undersong: Undersong, messages: Path) -> None:
    messages.write_text("".join(line(place, mood) for place, mood in enumerate([(0.5, 0.1)] * 3 + [COLD] * 2)))
    watch = ("watch", str(messages), "--no-follow", "--judge", "reader", "--emerging", "--rule", "darvo_literal")
    (warning,) = (each["emerging"] for each in map(json.loads, undersong(*watch).out.splitlines()))
    assert (warning["agent"], warning["seen"], warning["missing"]) == ("kira", ["DENY", "ATTACK"], ["REVERSE"])
    assert undersong(*watch).out == ""


def test_what_is_asked_for_answers_later_is_no_watch(undersong: Undersong, messages: Path) -> None:
    ran = undersong("watch", str(messages), "--judge", "reader", "--batch")
    assert (ran.code, "undersong audit" in ran.err) == (2, True)


def test_a_growing_file_is_followed_until_an_interrupt_and_the_next_run_goes_on(undersong: Undersong) -> None:
    path = Path("messages.jsonl")
    path.write_text('{"id": "1", "conversation": "t", "role": "user", "text": "Does it work?"}\n')
    command = [sys.executable, "-m", "undersong", "watch", str(path), "--poll", "0.05", "--store", "u.db"]
    as_in_a_terminal = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a job in the background ignores it
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=as_in_a_terminal
    ) as process:
        with path.open("a") as file:
            file.write('{]\n{"id": "2", "conversation": "t", "role": "assistant", "text": "It does."}\n')
        assert process.stderr is not None
        assert "messages.jsonl:2" in process.stderr.readline()
        os.kill(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=120)
    assert (process.returncode, "Traceback" in errors) == (0, False)
    assert undersong("watch", str(path), "--no-follow", "--store", "u.db").code == 0
    with SQLiteStore(Path("u.db"), read_only=True) as store:
        assert [message.id for message in store.conversation("t")[0].messages] == ["1", "2"]


@pytest.mark.parametrize("broken", ["garbage here", '{"id": "x", "tex', "\x00"])
def test_a_broken_first_line_is_told_and_the_rest_is_read(undersong: Undersong, messages: Path, broken: str) -> None:
    messages.write_text(f"{broken}\n{messages.read_text()}")
    ran = undersong("watch", str(messages), "--no-follow", "--judge", "reader", "--store", "here.db", *RULE)
    assert (ran.code, printed_findings(ran.out)) == (0, [("m0", "m1", "m2", "m3")])
    assert "record: messages.jsonl:1: line is not valid JSON" in ran.err


PARTS = {  # the first and the second part of a thread, each its own file, as (id, minute of its time, None: without)
    "the second is later": ([("a1", 1), ("a2", 2), ("a3", 3)], [("b1", 4), ("b2", 5)]),
    "the second has what was missing": ([("a1", 1), ("a2", 5), ("a3", 9)], [("b1", 2), ("b2", 6)]),
    "the second comes first": ([("a1", 7), ("a2", 8)], [("b1", 1), ("b2", 2), ("b3", 3)]),
    "no times": ([("b1", None), ("b2", None)], [("a1", None), ("a2", None), ("a3", None)]),
    "some times": ([("a1", 1), ("a2", None)], [("b1", 2), ("b2", None)]),
    "one moment": ([("b1", 1), ("b2", 1)], [("a1", 1), ("a2", 1)]),
    "what was there again": ([("a1", 1), ("a2", 2)], [("a1", 1), ("a2", 2), ("b1", 3)]),
}


@pytest.mark.parametrize("name", PARTS)
def test_the_parts_of_a_thread_in_two_files_are_in_the_order_of_an_audit_of_both(
    undersong: Undersong, messages: Path, name: str
) -> None:
    del messages
    both = []
    for number, part in enumerate(PARTS[name]):
        lines = [line(0, PLAIN, id=one, time=minute and f"2026-03-01T10:0{minute}:00Z") for one, minute in part]
        both += [text for text in lines if text not in both]
        path = Path(f"day{number}.jsonl")
        path.write_text("".join(lines))
        for _ in range(2):  # the second time nothing is new
            watched = undersong("watch", str(path), "--no-follow", "--judge", "reader", "--store", "live.db", *RULE)
            assert watched.code == 0, watched.err
    Path("all.jsonl").write_text("".join(both))
    undersong("audit", "all.jsonl", "--judge", "reader", "--store", "batch.db")
    orders = []
    for store_name in ("live.db", "batch.db"):
        with SQLiteStore(Path(store_name), read_only=True) as store:
            orders.append([(m.position, m.id) for m in store.conversation("t")[0].messages])
    assert orders[0] == orders[1]
