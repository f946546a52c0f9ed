"""Rows of a scan: whatever the batches, the processes and the order of the lines, those of one message at a time."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from undersong.formats import jsonl, spool
from undersong.formats.ingest import gather, read
from undersong.models import Conversation, Row, encode
from undersong.pipeline.options import Options
from undersong.pipeline.scan_export import stream
from undersong.pipeline.scan_export.stream import scan_rows
from undersong.routing.budget import TRIAGE, draws, level_of, within_share
from undersong.routing.route import load_policy, propose, route, with_upgrades
from undersong.scan import load_book, scan_conversation

WORDS = (
    "the plan for",
    "monday",
    "is late",
    "again",
    "nobody",
    "looked at",
    "the numbers",
    "I sent",
    "please",
    "check",
)
SAID = (
    "You owe me this after everything I did, and you will regret it.",
    "I apologize, you are right. I have fixed it now.",
    "Keep this between us, there is no time to think.",
    'Ünder “quotes” we said: naïve, ﬁne, 日本語, "tier":"deep","triage":1',
    "  ",
    "",
)
POLICY = load_policy()


def corpus(path: Path, *, seed: int = 1, threads: int = 30, length: int = 12, mixed: bool = False) -> Path:
    """Agents who talk in several threads at once, to each other and to all; ``mixed``: line by line in turn."""
    dice = random.Random(seed)
    lines: list[tuple[Any, dict[str, Any]]] = []
    for thread in range(threads):
        for place in range(length):
            text = dice.choice(SAID) if dice.random() < 0.3 else " ".join(dice.choices(WORDS, k=dice.randrange(5, 60)))
            record = {
                "id": f"m{thread}.{place}" if dice.random() < 0.9 else None,
                "conversation": f"t{thread}",
                "author": f"agent{dice.randrange(6)}",
                "role": dice.choice(["agent", "agent", "user", "assistant"]),
                "target": dice.choice([None, "agent1", "agent2"]),
                "time": f"2026-03-{1 + thread % 28:02d}T{place:02d}:00:00Z",
                "text": text,
            }
            lines.append(((place, thread) if mixed else (thread, place), record))
    rows = [json.dumps(said) for _, said in sorted(lines, key=lambda entry: entry[0])]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def written(path: Path | list[Path], **chosen: Any) -> tuple[bytes, bytes]:
    rows, threads = bytearray(), bytearray()
    scan_rows(path, Options(**chosen), rows.extend, write_thread=threads.extend)
    return bytes(rows), bytes(threads)


def one_at_a_time(path: Path | list[Path], share: float, seed: int = 0) -> tuple[bytes, bytes]:
    """The slow and obvious way, without batches, levels or splicing; ``also`` of no thread."""
    book = load_book()
    talks = [each for each in read(path) if isinstance(each, Conversation)]
    scanned = [scan_conversation(talk, book) for talk in talks]
    also = _also(talks, scanned)
    drafts = [propose(talk, *each, POLICY, also.get(talk.id, {})) for talk, each in zip(talks, scanned, strict=True)]
    asked = [
        (level_of(rank, scan.triage), draw)
        for talk, (scans, _), each in zip(talks, scanned, drafts, strict=True)
        for rank, scan, draw in zip(each.ranks, scans, draws(seed, talk.messages).tolist(), strict=True)
    ]
    cut = _cut(asked, share)
    left_out = sorted(draw for level, draw in asked if level > cut.level and draw < 1.0)
    rate = 1.0 if len(left_out) < 30 else max(POLICY.sample_rate, float(np.nextafter(left_out[29], 1.0)))
    rows, threads = [], []
    for talk, (scans, thread) in zip(talks, scanned, strict=True):
        routes = route(talk, scans, thread, POLICY, rate=rate, seed=seed, cut=cut, also=also.get(talk.id, {}))
        rows += map(Row.of, talk.messages, scans, routes)
        threads.append(with_upgrades(thread, talk, routes))
    return b"".join(encode(row) + b"\n" for row in rows), b"".join(encode(each) + b"\n" for each in threads)


def _cut(asked: list[tuple[int, float]], share: float) -> Any:
    from undersong.routing.budget import DemandHistogram

    demand = DemandHistogram()
    demand.add(np.array([level for level, _ in asked], dtype=np.int16), np.ones(len(asked)))
    return within_share(demand, share)


def _also(talks: list[Conversation], scanned: list[Any]) -> dict[str, dict[int, str]]:
    from undersong.routing.lookback import LookBackIndex

    earlier = LookBackIndex(POLICY.look_back)
    for talk, (scans, thread) in zip(talks, scanned, strict=True):
        ranks = propose(talk, scans, thread, POLICY).ranks
        for place, (message, scan, rank) in enumerate(zip(talk.messages, scans, ranks, strict=True)):
            score = scan.triage if rank == TRIAGE else None
            earlier.add(talk.id, place, message, flagged=bool(scan.total), score=score)
    also: dict[str, dict[int, str]] = {}
    for match in earlier.look_back_messages():
        also.setdefault(match.conversation, {})[match.place] = match.flag
    return also


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.45, 0.8, 1.0])
def test_rows_are_those_of_one_message_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: float, mixed: bool
) -> None:
    path = corpus(tmp_path / "c.jsonl", mixed=mixed)
    slow = one_at_a_time(path, share)
    assert b"reading backwards" in slow[0]
    assert share in (0.0, 1.0) or b"to the same target" in slow[0]
    for piece in (1, 9_000, stream.PIECE):
        monkeypatch.setattr(stream, "PIECE", piece)
        assert written(path, budget_share=share) == slow


@pytest.mark.parametrize("signals", [("phrases",), ("phrases", "threads"), None])
@pytest.mark.parametrize("mixed", [False, True])
def test_two_processes_write_the_rows_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, signals: tuple[str, ...] | None, mixed: bool
) -> None:
    monkeypatch.setattr(stream, "PIECE", 2_000)
    path = corpus(tmp_path / "c.jsonl", mixed=mixed)
    chosen = {} if signals is None else {"signals": signals}
    assert written(path, processes=2, **chosen) == written(path, **chosen)


def apart(folder: Path) -> list[Path]:
    """Files in which hardly a conversation is whole where it is read: it goes on in the other file, its lines come by
    turns, its name is that of another format's, its agents have names of another conversation, a line is in doubt."""
    lines = corpus(folder / "c.jsonl").read_text(encoding="utf-8").splitlines()
    dice = random.Random(7)
    messages = [json.loads(line) for line in lines]
    for entry in messages[:200]:
        entry["role"], entry["author"] = "agent", dice.choice(["t3/agent1", "t99/agent1", "agent1"])
    messages[30]["text"] = ["in", "doubt"]
    for entry in messages[100:140]:
        entry["position"] = int(entry["time"][11:13])
    mixed = messages[:60] + sorted(messages[60:180], key=lambda entry: str(entry["time"])) + messages[180:330]
    again = [*messages[330:], *messages[5:8], *messages[300:320]]
    transcript = folder / "t20.txt"
    transcript.write_text("user: You owe me this.\n\nassistant: I apologize, you are right.\n", encoding="utf-8")
    paths = [transcript]
    for name, own in (("a.jsonl", mixed), ("b.jsonl", again)):
        (folder / name).write_text("".join(json.dumps(each) + "\n" for each in own) + "broken\n", encoding="utf-8")
        paths.append(folder / name)
    return paths


@pytest.mark.parametrize("processes", [1, 2])
def test_conversations_that_are_not_whole_where_they_are_read_are_written_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: int
) -> None:
    paths = apart(tmp_path)
    slow = one_at_a_time(paths, 0.45)
    assert b'"conversation":"t20~2"' in slow[0]
    assert b'"agent":"~t3/agent1"' in slow[0]
    for buffer, part in ((spool.BUFFER, jsonl.PART), (1, 1), (50, 7)):
        monkeypatch.setattr(spool, "BUFFER", buffer)
        monkeypatch.setattr(jsonl, "PART", part)
        assert written(paths, budget_share=0.45, processes=processes) == slow


def resumed(folder: Path) -> list[Path]:
    """Files that tell only at their end that two conversations go on, and that a third has the name of another's."""
    path = corpus(folder / "c.jsonl")
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([*lines, *lines[30:33], lines[270].replace("late", "early")]) + "\n", encoding="utf-8")
    transcript = folder / "t11.txt"
    transcript.write_text("user: You owe me this.\n\nassistant: I apologize, you are right.\n", encoding="utf-8")
    return [path, transcript]


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("piece", [1, 9_000, stream.PIECE])
def test_conversations_that_go_on_after_they_were_scanned_are_scanned_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int, processes: int
) -> None:
    paths = resumed(tmp_path)
    slow = one_at_a_time(paths, 0.45)
    monkeypatch.setattr(spool, "BUFFER", 50)
    monkeypatch.setattr(stream, "PIECE", piece)
    assert written(paths, budget_share=0.45, processes=processes) == slow


@pytest.mark.parametrize("mixed", [False, True])
def test_conversations_are_handed_out_while_the_input_is_read_until_one_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mixed: bool
) -> None:
    monkeypatch.setattr(spool, "BUFFER", 50)
    with spool.Spool(early=True) as spooled:
        items = list(gather(corpus(tmp_path / "c.jsonl", mixed=mixed), spooled, hashed=False))
        early = [item for item in items if isinstance(item, spool.SpooledConversation)]
        assert [item.number for item in early] == list(range(29 if mixed else 28))  # mixed: those of the first buffer
        assert spooled.is_whole(range(len(early))) is not mixed
        assert all(item.decoded() == item._replace(read=()).decoded() for item in early)
        left = spooled.stored([] if mixed else [range(len(early))])
        names = [item.conversation for item in ([] if mixed else early)] + [item.conversation for item in left]
        assert names == [f"t{thread}" for thread in range(30)]


def test_without_triage_thirty_unflagged_messages_are_sampled_all_the_same(tmp_path: Path) -> None:
    rows, _ = written(corpus(tmp_path / "c.jsonl"), signals=("phrases", "threads"))
    assert sum(row["sampled"] for row in map(msgspec.json.decode, rows.splitlines())) == 30


def test_rows_without_text_differ_in_nothing_else(tmp_path: Path) -> None:
    path = corpus(tmp_path / "c.jsonl")
    bare = bytearray()
    scan_rows(path, Options(), bare.extend, text=False)
    with_text = [msgspec.json.decode(line) for line in written(path)[0].splitlines()]
    assert [row | {"text": None} for row in with_text] == [msgspec.json.decode(line) for line in bare.splitlines()]


@pytest.mark.parametrize("many", [1, 10**9], ids=["put together", "one after the other"])
def test_mended_rows_are_the_same_in_any_number_of_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, many: int
) -> None:
    path = corpus(tmp_path / "c.jsonl")
    wanted = written(path)
    monkeypatch.setattr(stream, "MANY", many)
    assert written(path) == wanted
