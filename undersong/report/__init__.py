"""A Case as a folder that a person can read and a stranger can check."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from undersong.manifest import NAME, RUN, SCHEMA, FileHash, JudgeUse, Manifest, MessageHash, canonical, seal, text_hash
from undersong.models import Case, Conversation, Row, SessionVerdict, encode
from undersong.patterns import PatternRule, all_rules
from undersong.report import html, markdown, svg
from undersong.report.exports import check_formats, formats_of, write_exports
from undersong.report.folder import check_folder, new_folder
from undersong.report.order import detailed_sessions, order_findings
from undersong.report.rule_words import rule_words
from undersong.report.tally import RowAggregates, write_rows
from undersong.report.view import DETAIL, view

__all__ = [
    "CASE",
    "CONVERSATIONS",
    "DATA",
    "EVALUATIONS",
    "FINDINGS",
    "ConversationLookup",
    "check_folder",
    "check_formats",
    "formats_of",
    "write",
]
CASE, FINDINGS, EVALUATIONS = "case.json", "findings.jsonl", "evaluations.jsonl"
CONVERSATIONS = "conversations.jsonl"  # the sessions that are told in full, with every message
DATA = frozenset({CASE, FINDINGS, EVALUATIONS, CONVERSATIONS})  # what all other files of a report are made from
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
    the sessions that are told in full; without it there are none. ``formats`` are some of ``exports.FORMATS``.
    The same arguments give the same bytes.
    Nothing is left half written: the folder appears as a whole. Raises UsageError where ``out_dir`` is not ours to
    replace or cannot be written.
    """
    detailed = detailed_sessions(case, DETAIL)
    with new_folder(Path(out_dir)) as folder:
        transcripts = _conversations(detailed, conversations)
        (folder / CONVERSATIONS).write_bytes(b"".join(encode(each) + b"\n" for each in transcripts))
        aggregates = write_rows(rows, folder / EVALUATIONS, (each.conversation for each in detailed), _staged(case))
        meanings = rule_words(all_rules() if rules is None else rules)
        arranged = view(case, aggregates, detailed, meanings, transcripts)
        texts = {
            "report.html": html.render(arranged),
            **dict(html.render_pages(arranged)),
            "forensic_audit_report.md": markdown.render(arranged),
            "risk_graph.svg": svg.render_charts(arranged),
        }
        for name, text in texts.items():
            (folder / name).write_bytes(text.encode("utf-8"))
        (folder / FINDINGS).write_bytes(b"".join(encode(finding) + b"\n" for finding in case.findings))
        (folder / CASE).write_bytes(encode(msgspec.structs.replace(case, findings=())) + b"\n")
        write_exports(formats, case, folder / EVALUATIONS, folder, meanings)
        sealed, digest = seal(_manifest(case, aggregates, folder))
        (folder / NAME).write_bytes(sealed)
        if run is not None:
            (folder / RUN).write_bytes(canonical(dict(run)))
    return digest


def _conversations(detailed: Iterable[SessionVerdict], lookup: ConversationLookup | None) -> list[Conversation]:
    """The conversations of the detailed sessions, as far as they are to be had."""
    loaded = (lookup(each.conversation) for each in detailed) if lookup else ()
    return [each for each in loaded if each is not None]


def _staged(case: Case) -> Iterator[tuple[str, str]]:
    """The messages of the findings that are told in full, by conversation and id."""
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
