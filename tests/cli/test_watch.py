"""``undersong watch``: rows that are still being written."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec
import pytest

from tests.conftest import Undersong
from undersong.cli.watch import _show
from undersong.errors import InputError
from undersong.models import Problem
from undersong.monitor.watch import WatchUpdate, watch
from undersong.patterns.catalog import load_rules
from undersong.patterns.live import Changes, LiveDetector

WARM = {"compassion": 0.8, "goodwill": 0.8, "manipulation": 0.1, "fabrication": 0.1}
COLD = {"compassion": 0.1, "goodwill": 0.2, "manipulation": 0.7, "fabrication": 0.1}


def row(number: int, traits: dict[str, float] | None, **more: object) -> bytes:
    day = f"2026-01-{number:02}T00:00:00Z"
    value = {"id": str(number), "agent": "kira", "target": "bo", "time": day, "position": number, "traits": traits}
    return json.dumps(value | more).encode() + b"\n"


CYCLE = b"".join([*(row(n, WARM) for n in range(1, 7)), row(7, COLD)])
LATER = row(30, WARM)


def printed(out: str) -> list[object]:
    lines = [json.loads(line) for line in out.splitlines()]
    return [line.get("retracted") or line["message_ids"] for line in lines]


class NothingLeftError(Exception):
    """Nothing is left to write."""


def enough() -> bytes:
    raise NothingLeftError


def watched_items(path: Path, write: Callable[[], object]) -> list[object]:
    """Per piece of the file the findings with their messages and why others fell, or the line of a problem."""
    seen: list[object] = []
    with suppress(NothingLeftError):
        for item in watch(path, LiveDetector(load_rules(names=["love_bombing"])), write):
            if isinstance(item, Problem):
                seen.append(item.where.rpartition(":")[2])
            else:
                findings = [(finding.status, *finding.message_ids) for finding in item.findings]
                seen.append((findings, [gone.reason for gone in item.retracted]))
    return seen


def test_what_is_found_is_printed_as_detect_does(undersong: Undersong) -> None:
    Path("rows.jsonl").write_bytes(CYCLE)
    ran = undersong("watch", "rows.jsonl", "--no-follow", "--rule", "love_bombing")
    assert (ran.code, printed(ran.out)) == (0, [["1", "2", "3", "4", "5", "6", "7"]])
    assert undersong("detect", "rows.jsonl", "--no-chance", "--rule", "love_bombing").out == ran.out


def test_rules_that_cannot_speak_are_named(undersong: Undersong) -> None:
    Path("rows.jsonl").write_bytes(CYCLE)
    errors = undersong("watch", "rows.jsonl", "--no-follow").err
    assert "dependency_loop" in errors
    assert errors.count("needs indicators, which no read message has") == 1  # one line for all of them


@pytest.mark.parametrize("option", ["--emerging", "--all", "--store=other.db", "--recall=0.9"])
def test_what_is_for_messages_alone_is_refused_for_rows(undersong: Undersong, option: str) -> None:
    Path("rows.jsonl").write_bytes(CYCLE)
    ran = undersong("watch", "rows.jsonl", "--no-follow", option)
    assert (ran.code, "are for messages; rows.jsonl holds rows without texts" in ran.err) == (2, True)
    assert not Path("other.db").exists()


def test_a_bad_line_is_named_and_the_rest_goes_on(undersong: Undersong) -> None:
    Path("rows.jsonl").write_bytes(b"{]\n" + CYCLE.rstrip(b"\n"))
    ran = undersong("watch", "rows.jsonl", "--no-follow", "--rule", "love_bombing")
    assert "rows.jsonl:1" in ran.err
    assert len(printed(ran.out)) == 1


@pytest.mark.parametrize("content", [None, b"", b"\n\n"])
def test_a_file_without_rows_is_no_run_without_findings(undersong: Undersong, content: bytes | None) -> None:
    if content is not None:
        Path("rows.jsonl").write_bytes(content)
    assert undersong("watch", "rows.jsonl", "--no-follow").code == 3


def test_standard_input_is_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CYCLE)))
    items = list(watch("-", LiveDetector(load_rules(names=["love_bombing"])), pause=pytest.fail))
    assert [len(item.findings) for item in items if isinstance(item, Changes)] == [1, 0]


def test_rows_are_told_as_they_are_written_half_lines_wait_and_what_was_unread_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    first = b"".join([*(row(n, None if n == 3 else WARM) for n in range(1, 7)), row(7, COLD)])
    path.write_bytes(first[:-20])
    parts = iter([first[-20:], LATER, row(3, COLD), b"{]\n", row(3, WARM)])

    def write() -> None:
        with path.open("ab") as file:
            file.write(next(parts, None) or enough())

    seen = watched_items(path, write)
    bound = "1", "2", "4", "5", "6", "7"
    assert seen[:3] == [([], []), ([("open", *bound)], []), ([("settled", *bound)], [])]
    assert seen[3] == ([("settled", "4", "5", "6", "7")], [])  # it replaces the one before
    assert seen[4:] == ["10", "11"]


def test_of_two_lines_with_one_id_watch_and_detect_keep_the_same_and_name_the_other(undersong: Undersong) -> None:
    for repeated in (row(3, COLD), row(3, None)):
        Path("rows.jsonl").write_bytes(CYCLE + repeated)
        ran = undersong("watch", "rows.jsonl", "--no-follow", "--rule", "love_bombing")
        other = undersong("detect", "rows.jsonl", "--no-chance", "--rule", "love_bombing")
        assert (ran.out, len(printed(ran.out))) == (other.out, 1)
        assert all("rows.jsonl:8: row '3' repeats the id of line 3" in each.err for each in (ran, other))


def test_a_file_that_another_one_replaced_is_refused_however_long_that_is(tmp_path: Path) -> None:
    path, other = tmp_path / "rows.jsonl", tmp_path / "new.jsonl"
    path.write_bytes(CYCLE)
    other.write_bytes(CYCLE + LATER)
    with pytest.raises(InputError, match="was replaced while it was watched"):
        list(watch(path, LiveDetector(load_rules(names=["love_bombing"])), lambda: other.replace(path)))


def test_a_file_that_became_shorter_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(CYCLE)
    with pytest.raises(InputError, match="became shorter"):
        list(watch(path, LiveDetector(load_rules(names=["love_bombing"])), lambda: path.write_bytes(LATER)))


def test_an_interrupt_ends_the_watch_in_order(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(CYCLE + LATER)
    command = [sys.executable, "-m", "undersong", "watch", str(path), "--rule", "love_bombing", "--poll", "0.05"]
    as_in_a_terminal = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a job in the background ignores it
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=as_in_a_terminal
    ) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["pattern"] == "love_bombing"
        os.kill(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 0
    assert "Traceback" not in errors


def test_a_finding_that_is_hardly_likely_is_counted_and_not_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(CYCLE)
    items = list(watch(path, LiveDetector(load_rules(names=["love_bombing"]))))
    (finding,) = [each for item in items if not isinstance(item, Problem) for each in item.findings]
    faint = WatchUpdate((msgspec.structs.replace(finding, confidence=0.05),))
    likely = WatchUpdate((msgspec.structs.replace(finding, confidence=0.6),))
    _show([faint])
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "1 finding of a confidence under .1 not printed\n")
    _show([faint, likely, faint])
    shown = capsys.readouterr()
    assert ([json.loads(line)["confidence"] for line in shown.out.splitlines()], shown.err) == ([0.6, 0.05], "")
