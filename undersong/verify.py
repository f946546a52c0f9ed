"""Check a report folder against its manifest: every file, input, quote, rule and model by its hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from undersong import __version__
from undersong.errors import UndersongError, UsageError
from undersong.manifest import NAME, RUN, SCHEMA, Manifest, canonical, digest_of, text_hash
from undersong.models import Case, Finding, InputFile, Message, Noun, decode

INTERNAL = "this is not a report that undersong wrote"


class Discrepancy(Noun, frozen=True, kw_only=True):
    """One thing that no longer agrees: what, where, and both values where there are two."""

    what: str
    where: str
    expected: str = ""
    found: str = ""

    def __str__(self) -> str:
        values = f" (expected {self.expected}, found {self.found})" if self.expected or self.found else ""
        return f"{self.where}: {self.what}{values}"


def verify(
    report_dir: Path,
    inputs: Sequence[Path] = (),
    installed: Mapping[str, str] | None = None,
    *,
    rules: Sequence[str | Path] | None = None,
) -> tuple[Discrepancy, ...]:
    """Everything that differs from the manifest of ``report_dir``; empty where all agrees.

    ``inputs`` are the files or folders that the report was made from; without any, inputs are not compared.
    ``installed`` maps names of rules, prompts and models to SHA-256; by default those of this installation, with the
    pattern files ``rules`` where the report was made with others than the shipped ones. Broken
    files are named, never raised; ``run.json`` is not covered. Raises UsageError where there is no such folder.
    """
    report_dir = Path(report_dir)
    if not report_dir.is_dir():
        what = "is not a folder" if report_dir.exists() else "no such folder"
        raise UsageError(what, where=str(report_dir), remedy="name the folder of a report, such as undersong-report")
    data = _bytes(report_dir / NAME)
    if isinstance(data, Discrepancy):
        return (data,)
    manifest, found = _manifest(data)
    if manifest is None:
        return tuple(found)
    found += _files(report_dir, manifest)
    found += _inputs(inputs, manifest)
    found += _evidence(report_dir, manifest)
    found += _installed(manifest, installed_hashes(manifest, rules) if installed is None else installed)
    return tuple(found)


def installed_hashes(manifest: Manifest, rules: Sequence[str | Path] | None = None) -> dict[str, str]:
    """The hashes of this installation's rules and of the judges that the manifest names, where they can be opened.

    ``rules`` are the pattern files of a report that was made with other patterns than the shipped ones.
    """
    from undersong.judges import open_judge
    from undersong.patterns import load_rules
    from undersong.patterns.replicas import noise_hashes
    from undersong.scan import load_book
    from undersong.verdict import rule_hashes

    hashes = (
        load_book().hashes
        | rule_hashes()
        | noise_hashes()
        | {f"patterns/{rule.id}": rule.hash for rule in load_rules(rules)}
    )
    judges = {str(manifest.parameters.get("judge", "")), *(use.judge for use in manifest.judges)} - {""}
    for name in sorted(judges):
        try:
            hashes |= open_judge(name).hashes
        except UndersongError:
            continue  # its files are then named as not installed
    return hashes


def _bytes(path: Path) -> bytes | Discrepancy:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return Discrepancy(what="is missing", where=path.name)
    except OSError as error:
        return Discrepancy(what=f"cannot be read: {error.strerror}", where=path.name)


def _manifest(data: bytes) -> tuple[Manifest | None, list[Discrepancy]]:
    """The manifest where it can be understood, and what is wrong with it."""
    try:
        value: Any = json.loads(data.decode("utf-8"))
        form = canonical(value)
    except UnicodeDecodeError as error:
        return None, [Discrepancy(what=f"is not UTF-8, at byte {error.start}", where=NAME)]
    except (ValueError, RecursionError) as error:
        return None, [Discrepancy(what=f"is not valid JSON: {error}", where=NAME)]
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        return None, [Discrepancy(what=INTERNAL, where=NAME, expected=SCHEMA, found=_schema(value))]
    found = []
    if form != data:
        found.append(Discrepancy(what="is not in its canonical form", where=NAME))
    if value.get("digest") != digest_of(value):
        said = str(value.get("digest"))
        found.append(Discrepancy(what="digest does not agree", where=NAME, expected=digest_of(value), found=said))
    try:
        return msgspec.convert(value, type=Manifest), found
    except msgspec.ValidationError as error:
        return None, [*found, Discrepancy(what=f"does not have the form of a manifest: {error}", where=NAME)]


def _schema(value: Any) -> str:
    return str(value.get("schema", "no schema")) if isinstance(value, dict) else "no object"


def _files(report_dir: Path, manifest: Manifest) -> Iterator[Discrepancy]:
    present = {path.name for path in report_dir.iterdir()} - {NAME, RUN}
    for name, entry in sorted(manifest.files.items()):
        if name != Path(name).name:
            yield Discrepancy(what="is a file outside the report folder", where=name)
        elif name not in present:
            yield Discrepancy(what="is missing", where=name)
        else:
            yield from _compared(report_dir / name, name, entry.sha256)
    for name in sorted(present - manifest.files.keys()):
        yield Discrepancy(what="is not in the manifest", where=name)


def _compared(path: Path, name: str, expected: str) -> Iterator[Discrepancy]:
    try:
        found = _hash(path)
    except OSError as error:
        yield Discrepancy(what=f"cannot be read: {error.strerror}", where=name)
        return
    if found != expected:
        yield Discrepancy(what="has changed", where=name, expected=expected, found=found)


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _inputs(inputs: Sequence[Path], manifest: Manifest) -> Iterator[Discrepancy]:
    given = [file for path in inputs for file in _walk(Path(path))]
    if not inputs:
        return
    used: set[Path] = set()
    for file in given:
        if not file.exists():
            used.add(file)
            yield Discrepancy(what="no such file", where=str(file))
    missing = {file.name for file in used}
    for entry in manifest.inputs:
        files = [file for file in given if _is_named(file, entry) and file not in used]
        used.update(files)
        if files:
            results = [list(_compared(file, entry.name, entry.sha256)) for file in files]
            if all(results):
                yield from (msgspec.structs.replace(each, what=f"input {each.what}") for each in results[0])
        elif Path(entry.name).name not in missing:
            yield from _renamed(entry, given, used)
    for file in given:
        if file not in used:
            yield Discrepancy(what="is not an input of this report", where=str(file))


def _renamed(entry: InputFile, given: Sequence[Path], used: set[Path]) -> Iterator[Discrepancy]:
    """An input that was not given by its name: the same bytes under another name, or nothing."""
    for file in given:
        if file not in used and file.is_file() and not list(_compared(file, entry.name, entry.sha256)):
            used.add(file)
            what = "input has the same content under another name"
            yield Discrepancy(what=what, where=entry.name, expected=Path(entry.name).name, found=file.name)
            return
    yield Discrepancy(what="input was not given by this name", where=entry.name, expected=entry.sha256)


def _walk(path: Path) -> list[Path]:
    return sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]


def _is_named(file: Path, entry: InputFile) -> bool:
    """The same path, or the same last part: a report may be checked elsewhere than where it was made."""
    return str(file) == entry.name or file.name == Path(entry.name).name


def _evidence(report_dir: Path, manifest: Manifest) -> Iterator[Discrepancy]:
    """The cited messages have the hashes of the manifest, and every quote stands in its message."""
    case = _decoded(report_dir / "case.json", lambda data: decode(data, Case))
    if isinstance(case, Discrepancy):
        yield case
        return
    hashes = {(each.conversation, each.id): each.sha256 for each in manifest.messages}
    texts: dict[str, list[Message]] = {}
    for message in case.cited:
        texts.setdefault(text_hash(message.text), []).append(message)
        if hashes.get((message.conversation, message.id)) != text_hash(message.text):
            yield Discrepancy(what="cited message does not agree with its hash", where=message.id)
    findings = _decoded(report_dir / "findings.jsonl", _lines)
    if isinstance(findings, Discrepancy):
        yield findings
        return
    quotes = [quote for finding in findings for quote in finding.quotes]
    quotes += [quote for session in case.sessions for each in session.deductions for quote in each.quotes]
    yield from (
        Discrepancy(what="quote does not stand in its message", where=quote.message_id)
        for quote in quotes
        if not any(message.text[quote.start : quote.end] == quote.text for message in texts.get(quote.sha256, ()))
    )


def _lines(data: bytes) -> list[Finding]:
    return [decode(line, Finding) for line in data.split(b"\n") if line]


def _decoded(path: Path, read: Callable[[bytes], Any]) -> Any:
    data = _bytes(path)
    if isinstance(data, Discrepancy):
        return data
    try:
        return read(data)
    except UnicodeDecodeError as error:
        return Discrepancy(what=f"is not UTF-8, at byte {error.start}", where=path.name)
    except (msgspec.DecodeError, RecursionError) as error:
        return Discrepancy(what=f"cannot be read as JSON: {error}", where=path.name)


def _installed(manifest: Manifest, installed: Mapping[str, str]) -> Iterator[Discrepancy]:
    if manifest.version != __version__:
        what = "made with another version"
        yield Discrepancy(what=what, where="undersong", expected=manifest.version, found=__version__)
    for name, expected in sorted(manifest.hashes.items()):
        if name not in installed:
            yield Discrepancy(what="is not installed here", where=name, expected=expected, found="nothing")
        elif installed[name] != expected:
            yield Discrepancy(what="made with another version", where=name, expected=expected, found=installed[name])
