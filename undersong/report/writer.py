"""The report folder: written as a whole or not at all, and replaced only where it is ours."""

from __future__ import annotations

import errno
import hashlib
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from undersong.core.manifest import (
    BESIDE,
    NAME,
    RUN,
    SCHEMA,
    FileHash,
    JudgeUse,
    Manifest,
    MessageHash,
    canonical,
    seal,
    stored_manifest,
)
from undersong.core.owned_folder import is_owned, owned_folder, remove_abandoned
from undersong.core.text import text_hash
from undersong.errors import StoreError, UndersongError, UsageError
from undersong.models import Case, Conversation, Row, SessionVerdict, encode
from undersong.patterns.catalog import all_rules
from undersong.patterns.language.compile import PatternRule
from undersong.report.aggregates import RowAggregates, write_rows
from undersong.report.deductions import deduction_records
from undersong.report.finding_view import rule_words
from undersong.report.order import detailed_sessions, order_findings
from undersong.report.render import pages, write_exports
from undersong.report.view_model import DETAIL, view

CASE, FINDINGS, EVALUATIONS = "case.json", "findings.jsonl", "evaluations.jsonl"
SEQUENCES, LEADS = "sequence_readings.jsonl", "leads.jsonl"
REVIEWS = "reviews.jsonl"  # what people had decided of these conversations; only where they had
WORK = "work.md"  # one page, where coding agents work
CLAIMS = "claims.jsonl"  # the ledgers of all sessions
POINTS = "points.jsonl"  # every deduction as a flat record, made from case.json
CONVERSATIONS = "conversations.jsonl"  # the sessions that are shown in full, with every message
DATA = frozenset(
    {CASE, FINDINGS, EVALUATIONS, CONVERSATIONS, SEQUENCES, LEADS, CLAIMS, REVIEWS}
)  # what all other files of a report are made from
ConversationLookup = Callable[[str], Conversation | None]


def write(
    case: Case,
    rows: Iterable[Row],
    out_dir: Path,
    *,
    run: Mapping[str, Any] | None = None,
    rules: Iterable[PatternRule] | None = None,
    conversations: ConversationLookup | None = None,
    formats: Sequence[str] = (),
) -> str:
    """Write the report of ``case`` into ``out_dir`` and return the digest of its manifest.

    ``rows`` are read once and need not fit into memory; the folder holds them without texts. ``run`` (the times of
    the run) goes into ``run.json``, which the manifest does not cover; ``rules`` (default: the shipped ones) are those
    whose words stand beside their findings. ``conversations`` gives the conversation of an id, for the transcripts of
    the sessions that are shown in full; without it there are none. ``formats`` are some of ``render.FORMATS``.
    The same arguments give the same bytes.
    Nothing is left half written: the folder appears as a whole. Raises UsageError where ``out_dir`` is not ours to
    replace or cannot be written.
    """
    detailed = detailed_sessions(case, DETAIL)
    with new_folder(Path(out_dir)) as folder:
        transcripts = _conversations(detailed, conversations)
        (folder / CONVERSATIONS).write_bytes(b"".join(encode(each) + b"\n" for each in transcripts))
        aggregates = write_rows(
            rows,
            folder / EVALUATIONS,
            (each.conversation for each in detailed),
            _staged(case),
            {each.agent for each in order_findings(case.findings)[:DETAIL]},
        )
        meanings = rule_words(all_rules() if rules is None else rules)
        arranged = view(case, aggregates, detailed, meanings, transcripts)
        texts = {
            "report.html": pages.render_html(arranged),
            **dict(pages.render_pages(arranged)),
            "forensic_audit_report.md": pages.render_markdown(arranged),
            pages.DETAILS: pages.render_details(arranged),
            "risk_graph.svg": pages.render_charts(arranged),
        }
        if arranged.work is not None:
            texts[WORK] = pages.render_work(arranged)
        for name, text in texts.items():
            (folder / name).write_bytes(text.encode("utf-8"))
        (folder / FINDINGS).write_bytes(b"".join(encode(finding) + b"\n" for finding in case.findings))
        (folder / LEADS).write_bytes(b"".join(encode(lead) + b"\n" for lead in case.leads))
        if case.sequences:
            (folder / SEQUENCES).write_bytes(b"".join(encode(each) + b"\n" for each in case.sequences))
        if case.reviews:
            (folder / REVIEWS).write_bytes(b"".join(encode(review) + b"\n" for review in case.reviews))
        claims = (claim for session in case.sessions for claim in session.claims)
        (folder / CLAIMS).write_bytes(b"".join(encode(claim) + b"\n" for claim in claims))
        (folder / POINTS).write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in deduction_records(case)))
        (folder / CASE).write_bytes(encode(_without_lists(case)) + b"\n")
        write_exports(formats, case, folder / EVALUATIONS, folder, meanings)
        sealed, digest = seal(_manifest(case, aggregates, folder))
        (folder / NAME).write_bytes(sealed)
        if run is not None:
            (folder / RUN).write_bytes(canonical(dict(run)))
    return digest


def _without_lists(case: Case) -> Case:
    """The case without what has a file of its own."""
    sessions = tuple(msgspec.structs.replace(session, claims=()) for session in case.sessions)
    return msgspec.structs.replace(case, findings=(), sequences=(), leads=(), reviews=(), sessions=sessions)


def _conversations(detailed: Iterable[SessionVerdict], lookup: ConversationLookup | None) -> list[Conversation]:
    """The conversations of the detailed sessions, as far as they are to be had."""
    loaded = (lookup(each.conversation) for each in detailed) if lookup else ()
    return [each for each in loaded if each is not None]


def _staged(case: Case) -> Iterator[tuple[str, str]]:
    """The messages of the findings that are shown in full, by conversation and id."""
    for finding in order_findings(case.findings)[:DETAIL]:
        for conversation in finding.conversations:
            yield from ((conversation, message_id) for message_id in finding.message_ids)


def _manifest(case: Case, aggregates: RowAggregates, folder: Path) -> Manifest:
    return Manifest(
        schema=SCHEMA,
        version=case.version,
        parameters=case.parameters,
        inputs=case.inputs,
        files={path.name: _file_hash(path) for path in sorted(folder.iterdir())},
        hashes=case.hashes,
        messages=tuple(
            MessageHash(conversation=message.conversation, id=message.id, sha256=text_hash(message.text))
            for message in case.cited
        ),
        judges=tuple(
            JudgeUse(judge=judge, judge_hash=judge_hash, messages=messages)
            for (judge, judge_hash), messages in sorted(aggregates.judges.items(), key=lambda item: str(item[0]))
        ),
    )


def _file_hash(path: Path) -> FileHash:
    with path.open("rb") as file:
        return FileHash(sha256=hashlib.file_digest(file, "sha256").hexdigest(), size=path.stat().st_size)


PARTIAL, OLD = ".partial", ".old"  # endings of what stands beside a report while it is written
DROPPINGS = frozenset({".DS_Store", "Thumbs.db", "desktop.ini"})  # what desktops leave in any folder that is looked at
TAKES = 10  # attempts to take the place of a report that others are replacing too
OWNER_ONLY = 0o600  # a report quotes private messages; its folder is 0700
_MEDIUM = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG}  # the disk's fault, not that of the folder's name
_TAKEN = {errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT}  # somebody else was quicker


def check_folder(folder: Path) -> None:
    """Raise UsageError where ``folder`` is not a report of ours, empty, or still to be made."""
    if not folder.exists() and not folder.is_symlink():
        return
    if not folder.is_dir():
        raise UsageError("is a file, not a folder", where=str(folder), remedy="choose another folder")
    foreign = sorted({path.name for path in folder.iterdir()} - DROPPINGS - _ours(folder))
    if foreign:
        names = ", ".join(foreign[:3]) + (", …" if len(foreign) > 3 else "")
        remedy = "choose another folder, or move those files away"
        raise UsageError(f"holds files that no report of undersong wrote ({names})", where=str(folder), remedy=remedy)


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A temporary sibling to write into; it takes the place of ``folder`` when the block ends without an error.

    Only the owner can read what is written. Two runs with the same ``folder`` have a sibling each; the one that ends
    last stays. Raises UsageError where ``folder`` is not ours or cannot be made, StoreError where the disk fails.
    """
    folder = folder.resolve()
    check_folder(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _recover(folder)
        with owned_folder(folder.parent, f".{folder.name}.", PARTIAL) as partial:
            yield partial
            for path in partial.iterdir():
                path.chmod(OWNER_ONLY)
            _replace(folder, partial)
    except OSError as error:
        raise _refusal(folder, error) from error
    finally:
        _recover(folder)


def _replace(folder: Path, partial: Path) -> None:
    """Put ``partial`` in the place of ``folder``; what stood there is kept until the new one stands."""
    old = partial.with_suffix(OLD)
    for attempt in range(TAKES):
        try:
            if folder.exists():
                folder.rename(old)
            partial.rename(folder)
            break
        except OSError as error:
            if error.errno not in _TAKEN or attempt == TAKES - 1:
                raise
            shutil.rmtree(old, ignore_errors=True)
    shutil.rmtree(old, ignore_errors=True)


def _recover(folder: Path) -> None:
    """Undo what an interrupted writing left behind; the report that was there comes back."""
    backups = [path for path in _beside(folder, OLD) if not is_owned(path.with_suffix(PARTIAL))]
    backups.sort(key=_age)
    if backups and not folder.exists():
        with suppress(OSError):  # another run was quicker
            backups.pop(0).rename(folder)
    for leftover in (*backups, *_beside(folder, PARTIAL)):
        remove_abandoned(leftover)


def _beside(folder: Path, suffix: str) -> list[Path]:
    """Our temporary siblings of ``folder``."""
    try:
        return [path for path in folder.parent.iterdir() if _is_sibling(path.name, folder.name, suffix)]
    except OSError:  # a folder that cannot be listed holds nothing to tidy; writing into it says why
        return []


def _is_sibling(name: str, folder: str, suffix: str) -> bool:
    """``.out.x1y2z3_a.partial`` is one of ``out``, ``.out.copy.partial`` is not."""
    return re.fullmatch(rf"\.{re.escape(folder)}(?:\.[a-z0-9_]{{8}})?{re.escape(suffix)}", name) is not None


def _age(path: Path) -> float:
    """Seconds since the folder was last changed; 0 where it is gone."""
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return 0.0


def _refusal(folder: Path, error: OSError) -> UndersongError:
    what = f"cannot be written: {error.strerror}"
    if error.errno in _MEDIUM:
        return StoreError(what, where=str(folder), remedy="free some space or choose another disk with --out")
    return UsageError(what, where=str(folder), remedy="choose another folder")


def _ours(folder: Path) -> set[str]:
    """The names that the manifest in ``folder`` covers; empty where there is none that can be read."""
    files = stored_manifest(folder).get("files")
    return {NAME, RUN, *BESIDE, *files} if isinstance(files, dict) else set()
