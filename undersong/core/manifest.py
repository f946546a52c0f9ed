"""The manifest's form: canonical JSON with a digest over itself, read and written by one pair of functions.

Canonical is what ``canonical`` prints: keys sorted by code point, no spaces, only ASCII (the rest as ``\\uXXXX``), one
line feed at the end. The digest is the SHA-256 of the canonical manifest without its ``digest`` key, so that one
number, kept elsewhere, shows whether anything in the folder changed. It shows change; it does not prove authorship.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec

from undersong.models import InputFile, Record

NAME = "manifest.json"
RUN = "run.json"  # times of the run: the one file that the manifest does not cover
SCHEMA = "undersong-manifest-1"
# what others put beside a manifest: signatures (``undersong sign``), and a time stamp with its request (RFC 3161)
BESIDE = frozenset({f"{NAME}.sig", f"{RUN}.sig", f"{NAME}.tsq", f"{NAME}.tsr"})


class FileHash(Record, frozen=True, kw_only=True):
    """One file of the report folder."""

    sha256: str
    size: int


class MessageHash(Record, frozen=True, kw_only=True):
    """One message that the report quotes: SHA-256 over its whole text in UTF-8."""

    conversation: str
    id: str
    sha256: str


class JudgeUse(Record, frozen=True, kw_only=True):
    """A judge, the hash over its model and prompt, and how many messages it scored."""

    judge: str
    judge_hash: str | None
    messages: int


class Manifest(Record, frozen=True, kw_only=True):
    """Everything that a report stands on, by hash; ``hashes`` are rules, prompts and model artefacts by name."""

    schema: str
    version: str
    parameters: dict[str, Any]
    inputs: tuple[InputFile, ...]
    files: dict[str, FileHash]
    hashes: dict[str, str]
    messages: tuple[MessageHash, ...]
    judges: tuple[JudgeUse, ...]


def stored_manifest(folder: Path) -> dict[str, Any]:
    """The manifest that undersong wrote into ``folder``, as JSON; empty where there is none that can be read."""
    try:
        value = json.loads((folder / NAME).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) and value.get("schema") == SCHEMA else {}


def is_report(folder: Path) -> bool:
    """Whether ``folder`` holds a manifest that undersong wrote."""
    return bool(stored_manifest(folder))


def canonical(value: Any) -> bytes:
    """A JSON value in its one canonical form; raises ValueError for NaN and infinity."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.encode("ascii") + b"\n"


def digest_of(value: dict[str, Any]) -> str:
    """SHA-256 over the canonical form without the key ``digest``."""
    return hashlib.sha256(canonical({key: value[key] for key in value if key != "digest"})).hexdigest()


def seal(manifest: Manifest) -> tuple[bytes, str]:
    """The bytes of ``manifest.json`` and the digest that they carry."""
    value: dict[str, Any] = msgspec.to_builtins(manifest)
    digest = digest_of(value)
    return canonical(value | {"digest": digest}), digest
