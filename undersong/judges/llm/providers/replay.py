"""``--judge replay:FILE``: the answers of an earlier run, from the file that `undersong judge export` wrote."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from undersong.errors import JudgeError
from undersong.judges.limits import LedgerEntry, MemoryLedger, RunLimits
from undersong.judges.llm.judge import judge_of
from undersong.judges.llm.model_spec import tier_specs_of
from undersong.judges.panel import Panel
from undersong.judges.protocol import Judge, panel_names

VERSION = 1


class ReplayHeader(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first line of a replay file: who was asked, under which prompts."""

    undersong_replay: int
    judge: str
    prompt_hash: str


def replay_lines(judge: str, prompt_hash: str, answers: Iterable[LedgerEntry]) -> Iterator[bytes]:
    """The lines of a replay file."""
    yield msgspec.json.encode(ReplayHeader(VERSION, judge, prompt_hash)) + b"\n"
    for answer in answers:
        yield msgspec.json.encode(answer) + b"\n"


def read_replay(path: Path) -> tuple[ReplayHeader, MemoryLedger]:
    """Raises JudgeError naming file and line of what cannot be read."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise JudgeError(f"cannot be read: {error.strerror}", where=str(path)) from error
    kinds = (ReplayHeader, *[LedgerEntry] * (len(lines) - 1))
    records = []
    for number, (line, kind) in enumerate(zip(lines, kinds, strict=False), 1):
        try:
            records.append(msgspec.json.decode(line, type=kind))
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            remedy = "a replay file is written by `undersong judge export`"
            raise JudgeError(
                f"not a line of a replay file: {error}", where=f"{path}:{number}", remedy=remedy
            ) from error
    if not records or records[0].undersong_replay != VERSION:
        raise JudgeError("not a replay file of this version", where=str(path), remedy="export it again")
    return records[0], MemoryLedger(records[1:])


def open_judge(argument: str, limits: RunLimits) -> Judge:
    """The judge of the recorded run, who is not asked again: what is not in the file is a failed message."""
    header, ledger = read_replay(Path(argument))
    limits = msgspec.structs.replace(limits, ledger=ledger)
    judges = [judge_of(tier_specs_of(name), limits, asks=False) for name in panel_names(header.judge)]
    if judges[0].prompt_hash != header.prompt_hash:
        what = "was recorded under other prompts than this version asks"
        raise JudgeError(what, where=argument, remedy="use the version of undersong that recorded it")
    return judges[0] if len(judges) == 1 else Panel(judges, limits)
