"""JSON Schemas (2020-12) of the files of a report, made from the types that they are written from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, TypedDict

import msgspec

from undersong.core.manifest import Manifest
from undersong.models import Case, Conversation, Finding, Lead, LedgerClaim, Level, Quote, Review, Row, SequenceReading
from undersong.models.finding import FindingStatus
from undersong.report.deductions import DeductionRecord

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class SealedManifest(Manifest, frozen=True, kw_only=True):
    """Everything that a report stands on, by hash. ``digest``: SHA-256 over the canonical file without that key."""

    digest: str


class RunTimes(TypedDict):
    """When the run began (ISO 8601, UTC) and how many seconds it took."""

    started: str
    seconds: float


class ResultRecord(TypedDict):
    """A finding, points deducted from a session, or a moment of it; null where a key does not apply to its type."""

    type: Literal["finding", "deduction", "smoking_gun", "distress", "protective", "conduct", "candidate"]
    id: str
    name: str
    title: str
    group: str
    level: Level | None
    session: str | None
    agent: str | None
    target: str | None
    message_ids: list[str]
    position: int | None
    start: str | None
    end: str | None
    points: int | None
    confidence: float | None
    status: FindingStatus | None
    reading: str | None
    strength: float | None
    chance: float | None
    q: float | None
    stability: float | None
    basis: str | None
    quotes: list[Quote]
    source: str | None
    explanation: str | None


class OutputSchema(NamedTuple):
    """What a program of ours writes: the type of the document, or of each line of it, which may be of ``others``."""

    name: str
    kind: Any
    lines: bool
    what: str
    others: tuple[Any, ...] = ()

    @property
    def file(self) -> str:
        """The name of the file of the schema."""
        name = self.name.removesuffix(".json").removesuffix(".jsonl")
        return f"{name.replace(' --', '-').replace(' ', '-')}.schema.json"


FILES = (
    OutputSchema("case.json", Case, lines=False, what="all that the report says but the lists below"),
    OutputSchema("findings.jsonl", Finding, lines=True, what="a finding"),
    OutputSchema("leads.jsonl", Lead, lines=True, what="a lead"),
    OutputSchema("claims.jsonl", LedgerClaim, lines=True, what="what an agent says of its work, and its state"),
    OutputSchema("points.jsonl", DeductionRecord, lines=True, what="points that were deducted, with the words"),
    OutputSchema("reviews.jsonl", Review, lines=True, what="what a person decided of a finding, lead or claim"),
    OutputSchema("evaluations.jsonl", Row, lines=True, what="a message with its scores and signals, without its text"),
    OutputSchema("sequence_readings.jsonl", SequenceReading, lines=True, what="what a judge read in a whole sequence"),
    OutputSchema("conversations.jsonl", Conversation, lines=True, what="a conversation that is shown in full"),
    OutputSchema("manifest.json", SealedManifest, lines=False, what="the hashes of all of these and of the inputs"),
    OutputSchema("run.json", RunTimes, lines=False, what="when the run began and how long it took"),
    OutputSchema("report.json", Case, lines=False, what="the whole case, with `--format json`"),
    OutputSchema("results.jsonl", ResultRecord, lines=True, what="a result as a flat record, with `--format jsonl`"),
)


def json_schema(output: OutputSchema, *, closed: bool = False) -> dict[str, Any]:
    """The schema of a document, or of each of its lines. A key that has a default is written, too: it is required.

    Later versions may add keys. ``closed`` allows none but those of this version.
    """
    (*kinds,), parts = msgspec.json.schema_components((output.kind, *output.others))
    whole = kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    made = msgspec.json.decode(msgspec.json.encode({**whole, "$defs": parts}), type=dict[str, Any])
    for part in _objects(made):
        always = part.get("required", [])
        part["required"] = [name for name, value in part["properties"].items() if name in always or "default" in value]
        if closed:
            part["additionalProperties"] = False
    for part in _described(made):
        part["description"] = " ".join(part["description"].split())
    title = f"a line of {output.name}" if output.lines else output.name
    return {"$schema": DIALECT, "$id": f"urn:undersong:schema:{output.name.replace(' ', ':')}", "title": title} | made


def _objects(schema: Any) -> Iterator[dict[str, Any]]:
    """Every part of a schema that is an object with keys of its own."""
    yield from (part for part in _parts(schema) if isinstance(part.get("properties"), dict))


def _described(schema: Any) -> Iterator[dict[str, Any]]:
    yield from (part for part in _parts(schema) if isinstance(part.get("description"), str))


def _parts(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from _parts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _parts(inner)
