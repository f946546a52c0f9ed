"""The inputs that are given again: each one found by its name or by its content, and compared byte for byte."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from undersong.core.hashing import text_hash
from undersong.core.manifest import Manifest
from undersong.formats.ingest import input_files
from undersong.models import InputFile, Message, Row
from undersong.pipeline.evaluate import RoutedThread
from undersong.pipeline.options import Options, silent
from undersong.pipeline.stages import ingest_and_scan, routed_threads
from undersong.routing.route import Policy
from undersong.scan import load_book
from undersong.stores.erasure import PSEUDONYM, digest, pseudonym
from undersong.stores.protocol import Redaction, Tombstone
from undersong.stores.sqlite import temporary_store
from undersong.verdict import session_verdict
from undersong.verify.content import Content
from undersong.verify.manifest_check import Discrepancy, NotPossibleError, compare_file
from undersong.verify.recompute import AGAIN, messages_of, unlike_scan
from undersong.verify.turns import parts_of, unknown, unlike_input


class NamedFile(NamedTuple):
    """A file that was given, and its name as a report would write it."""

    path: Path
    name: str


def inputs(paths: Sequence[Path], manifest: Manifest, reported: Collection[str] = ()) -> Iterator[Discrepancy]:
    """How the files and folders at ``paths`` differ from the inputs of the manifest; nothing without any path.

    A folder is searched as the audit searches it: what is never read there, such as pages, databases and reports, is
    passed over, and so are files of which the report tells a problem (their names in ``reported``).
    """
    if not paths:
        return
    missing = [path for path in paths if not path.exists()]
    yield from (Discrepancy(what="no such file", where=str(path)) for path in missing)
    files = [NamedFile(*each) for path in paths if path.exists() for each in input_files(path)]
    named, rest = _named(manifest.inputs, files)
    for entry, file in named:
        mismatches = compare_file(file.path, entry.name, entry.sha256)
        yield from (msgspec.structs.replace(each, what=f"input {each.what}") for each in mismatches)
    used = {file.path for _, file in named}
    gone = {path.name for path in missing}
    for entry in (each for each in rest if Path(each.name).name not in gone):
        for discrepancy in _renamed(entry, files, used):
            if not (discrepancy.found and manifest.parameters.get("redacted")):  # else its name may be masked
                yield discrepancy
    for file in files:
        if file.path not in used and file.name not in reported:
            yield Discrepancy(what="is not an input of this report", where=str(file.path))


def in_order(paths: Sequence[Path], manifest: Manifest) -> list[Path]:
    """The given files of the manifest's inputs in its order: conversations without an id are named by it."""
    files = [NamedFile(*each) for path in paths if path.exists() for each in input_files(path)]
    by_name = {entry.name: file.path for entry, file in _named(manifest.inputs, files)[0]}
    if len(by_name) < len(manifest.inputs):  # masked names: by content
        by_name |= {entry.name: file.path for entry in manifest.inputs for file in files if _agrees(file, entry)}
    return [by_name[entry.name] for entry in manifest.inputs if entry.name in by_name]


def _named(
    entries: Sequence[InputFile], files: Sequence[NamedFile]
) -> tuple[list[tuple[InputFile, NamedFile]], list[InputFile]]:
    """Each input with the file of its name, and the inputs without one.

    The whole name first; a report may be checked elsewhere than where it was made, so then the file with which most of
    the path's end agrees, among equals one with the same content.
    """
    pairs: list[tuple[InputFile, NamedFile]] = []
    by_name = {file.name: file for file in files}
    later, without = [], []
    for entry in entries:
        file = by_name.pop(entry.name, None)
        if file is None:
            later.append(entry)
        else:
            pairs.append((entry, file))
    free: dict[str, list[NamedFile]] = {}
    for file in by_name.values():
        free.setdefault(file.path.name, []).append(file)
    for entry in later:
        candidates = free.get(Path(entry.name).name)
        if not candidates:
            without.append(entry)
            continue
        nearest = max(candidates, key=partial(_nearness, entry=entry))
        candidates.remove(nearest)
        pairs.append((entry, nearest))
    return pairs, without


def _nearness(file: NamedFile, entry: InputFile) -> tuple[bool, int]:
    return _agrees(file, entry), _common_end(file.path, entry.name)


def _common_end(path: Path, name: str) -> int:
    """How many parts the two paths have in common, counted from the file's name."""
    count = 0
    for one, other in zip(reversed(path.parts), reversed(Path(name).parts), strict=False):
        if one != other:
            break
        count += 1
    return count


def _renamed(entry: InputFile, files: Sequence[NamedFile], used: set[Path]) -> Iterator[Discrepancy]:
    """An input that was not given by its name: the same bytes under another name, or nothing."""
    same = next((file for file in files if file.path not in used and _agrees(file, entry)), None)
    if same is None:
        yield Discrepancy(what="input was not given by this name", where=entry.name, expected=entry.sha256)
        return
    used.add(same.path)
    what = "input has the same content under another name"
    yield Discrepancy(what=what, where=entry.name, expected=Path(entry.name).name, found=same.path.name)


def _agrees(file: NamedFile, entry: InputFile) -> bool:
    return file.path.is_file() and not list(compare_file(file.path, entry.name, entry.sha256))


ROUTED = ("tier", "tier_before", "width", "sampled", "reasons")


def replay_inputs(content: Content, inputs: Sequence[Path]) -> Iterator[Discrepancy]:
    """Messages, free signals, routes and scores that do not come out of the inputs, the files in their order.

    Raises NotPossibleError, once the texts are compared, where conversations have other names than in the report, as
    those without an id of their own can have after a file was renamed.
    """
    rows = {(row.conversation, row.id): row for row in content.rows}
    verdicts = {session.conversation: session for session in content.case.sessions}
    options = options_of(content.case.parameters)
    forgotten, parts = _forgotten(content.rows, inputs, options), parts_of(content)
    with temporary_store() as store:
        for name in forgotten:
            store.redact(Redaction(name=name, tombstone=_tombstone(name)))
        corpus = ingest_and_scan(inputs, store, load_book(), options, silent)
        texts = {text_hash(m.text) for name in corpus.conversations for m in store.conversation(name)[0].messages}
        yield from _texts(content, texts)
        if set(corpus.conversations) != verdicts.keys():
            raise NotPossibleError("the conversations have other names here")
        yield from unknown(parts, corpus.conversations)
        for thread in routed_threads(corpus, store, options):
            yield from unlike_input(parts.get(thread.conversation.id, ()), thread.conversation)
            yield from _thread(thread, rows)
            reported = verdicts[thread.conversation.id]
            judged = _judged(thread, rows)
            again = session_verdict(thread.conversation, thread.scans, thread.thread, judged, reported.confirmations)
            names = [name for name in again.__struct_fields__ if getattr(reported, name) != getattr(again, name)]
            if names:
                where = f"session {thread.conversation.id}"
                yield Discrepancy(what=f"{', '.join(names)}: {AGAIN} from the inputs", where=where)


def _forgotten(rows: Iterable[Row], inputs: Sequence[Path], options: Options) -> list[str]:
    """The agents of the inputs for whom the report has a pseudonym, since its store was told to forget them."""
    pseudonyms = {name for row in rows for name in (row.agent, row.target) if name and name.startswith(PSEUDONYM)}
    if not pseudonyms:
        return []
    with temporary_store() as store:
        corpus = ingest_and_scan(inputs, store, load_book(), options, silent)
        messages = (message for name in corpus.conversations for message in store.conversation(name)[0].messages)
        named = {name for message in messages for name in (message.agent, message.target) if name}
    return sorted(name for name in named if pseudonym(name) in pseudonyms)


def _tombstone(name: str) -> Tombstone:
    return Tombstone(kind="agent", digest=digest(name), forgotten=datetime(1970, 1, 1, tzinfo=UTC), messages=0)


def options_of(parameters: Mapping[str, Any]) -> Options:
    """What the audit was asked for, from the parameters of its report."""
    router = {name.removeprefix("router_"): value for name, value in parameters.items() if name.startswith("router_")}
    since = parameters.get("since")
    return Options(
        source_format=parameters.get("source_format"),
        read_all=parameters.get("read_all") is True,
        budget_share=parameters.get("budget_share"),
        recall=parameters.get("recall"),
        seed=parameters.get("seed", 0),
        only=tuple(parameters.get("only", ())),
        since=None if since is None else datetime.fromisoformat(since),
        policy=msgspec.convert(router, Policy) if router else None,
    )


def _texts(content: Content, texts: set[str]) -> Iterator[Discrepancy]:
    reported: list[Message] = [*messages_of(content.conversations), *content.case.cited]
    missing = {message.id: None for message in reported if text_hash(message.text) not in texts}
    yield from (Discrepancy(what="its text stands in no input", where=message_id) for message_id in missing)


def _thread(thread: RoutedThread, rows: Mapping[tuple[str, str], Row]) -> Iterator[Discrepancy]:
    for scan, route in zip(thread.scans, thread.routes, strict=True):
        row = rows.get((thread.conversation.id, scan.message_id))
        if row is None:
            yield Discrepancy(what="stands in the inputs and not in evaluations.jsonl", where=scan.message_id)
            continue
        names = unlike_scan(row, scan) + [name for name in ROUTED if getattr(row, name) != getattr(route, name)]
        if names:
            yield Discrepancy(what=f"{', '.join(names)}: {AGAIN} from the inputs", where=row.id)


def _judged(thread: RoutedThread, rows: Mapping[tuple[str, str], Row]) -> list[Row]:
    """The rows of a thread as the verdict saw them: with texts and hits, and with the scores of the report."""
    return [
        msgspec.structs.replace(row, text=message.text, hits=scan.hits)
        for message, scan in zip(thread.conversation.messages, thread.scans, strict=True)
        if (row := rows.get((thread.conversation.id, message.id))) is not None
    ]
